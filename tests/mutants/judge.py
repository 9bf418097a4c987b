"""Which tests should notice a mutant, and whether one of them does."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.mutants.lists import Mutant
from tests.mutants.trees import Tree

ELSEWHERE = {
    "embedlog/broker/apis": ("tests/apis", "tests/golden"),
    "wire/schemas": ("tests/wire",),
}
"""Folders of code whose tests have another place than the folder of the same name."""
WIDE = "tests"
NO_BEHAVIOUR = ("tests/mutants", "tests/test_*.py", "tests/benchmarks")
"""Patterns of tests that look at the text of the code, or are no tests."""


class Speed(NamedTuple):
    """The marks and limits of the fast tests, or of all."""

    name: str
    marks: str
    limit_s: int
    """Time limit of a test."""


FAST = Speed("fast", "not slow and not interop", 30)
SLOW = Speed("slow", "not interop", 300)
"""The slow tests with the fast ones, which try more examples than in a fast run."""


class Stage(NamedTuple):
    """Paths to run together, and paths below them that an earlier stage has run."""

    speed: Speed
    paths: tuple[str, ...]
    done: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.speed.name} {' '.join(self.paths)}"


class Verdict(NamedTuple):
    """The end of a search for a test that notices a mutant."""

    speed: str
    """`fast` or `slow`; empty for a survivor."""
    test: str
    """The test that noticed; for a survivor, empty."""
    hung: bool
    seconds: float
    """Time of the search."""
    passed: tuple[str, ...]
    """Names of the stages that noticed nothing."""

    @property
    def is_caught(self) -> bool:
        return bool(self.speed)


class Baseline:
    """Tests that fail or pass in a tree without mutants, as far as it was necessary to ask."""

    def __init__(self) -> None:
        self.passing: set[str] = set()
        self.failing: set[str] = set()


def stages(mutant: Mutant, root: Path, *, slow: bool = False, wide: bool = False) -> list[Stage]:
    """Return what to run, the narrowest paths first, and all fast tests before slow ones."""
    found = []
    for speed in (FAST, SLOW)[: 1 + slow]:
        done: tuple[str, ...] = ()
        for paths in _paths(mutant, root, wide):
            fresh = tuple(path for path in paths if not _is_below(path, done))
            if fresh:
                found.append(Stage(speed, fresh, done))
                done += fresh
    return found


def _is_below(path: str, done: tuple[str, ...]) -> bool:
    return any(f"{path}/".startswith(f"{each}/") or path.startswith(f"{each}::") for each in done)


def _paths(mutant: Mutant, root: Path, wide: bool) -> Iterator[tuple[str, ...]]:
    yield mutant.tests
    module = mutant.file.removesuffix(".py").removesuffix("/__init__")
    folders = _folders(module, root)
    if folders:
        yield tuple(_naming(module, root / folders[-1], root))
    for folder in folders:
        yield (folder,)
    if wide:
        yield (WIDE,)


def _folders(module: str, root: Path) -> list[str]:
    """Return the folders of tests for a module, the innermost first."""
    found: list[str] = []
    parts = module.split("/")
    for size in range(len(parts), 0, -1):
        code = "/".join(parts[:size])
        own = f"tests/{code.removeprefix('embedlog/')}"
        found += ELSEWHERE.get(code, ())
        if code != "embedlog":
            found.append(own)
    return [folder for folder in dict.fromkeys(found) if (root / folder).is_dir()]


@functools.lru_cache(maxsize=64)
def _texts(folder: Path) -> dict[Path, str]:
    return {path: path.read_text() for path in sorted(folder.rglob("test_*.py"))}


def _naming(module: str, folder: Path, root: Path) -> list[str]:
    """Return the test files named as the module, then the importers of the module."""
    name, dotted = module.rpartition("/")[2], module.replace("/", ".")
    parent, _, last = dotted.rpartition(".")
    imports = re.compile(
        rf"^\s*(?:from {re.escape(dotted)} import|import {re.escape(dotted)}\b"
        rf"|from {re.escape(parent)} import [^#\n]*\b{re.escape(last)}\b)",
        re.MULTILINE,
    )
    texts = _texts(folder)
    named = [path for path in texts if path.stem == f"test_{name.strip('_')}"]
    importing = [path for path, text in texts.items() if imports.search(text)]
    return [str(path.relative_to(root)) for path in dict.fromkeys(named + importing)]


def judge(mutant: Mutant, tree: Tree, todo: list[Stage], baseline: Baseline) -> Verdict:
    """Run stages until a test notices the mutant."""
    begin = time.monotonic()
    passed: list[str] = []
    for stage in todo:
        while True:
            with tree.planted(mutant):
                outcome = tree.pytest(*_arguments(stage, baseline), limit_s=stage.speed.limit_s)
            if outcome.failed is None:
                passed.append(stage.name)
                break
            if _passes_without(outcome.failed, stage, tree, baseline):
                seconds = time.monotonic() - begin
                last_line = outcome.log.rpartition("\n")[2]
                test = outcome.failed or f"pytest: {last_line}"
                return Verdict(stage.speed.name, test, outcome.hung, seconds, tuple(passed))
    return Verdict("", "", False, time.monotonic() - begin, tuple(passed))


def _arguments(stage: Stage, baseline: Baseline) -> list[str]:
    left_out = [f"--ignore-glob={pattern}" for pattern in _ignored(stage)]
    for test in [*(path for path in stage.done if "::" in path), *sorted(baseline.failing)]:
        left_out.append(f"--deselect={test}" if "::" in test else f"--ignore={test}")
    return [
        *("-m", stage.speed.marks),
        *left_out,
        *stage.paths,
    ]


def _ignored(stage: Stage) -> list[str]:
    done = [path for path in stage.done if "::" not in path]
    return [*done, *NO_BEHAVIOUR] if stage.paths == (WIDE,) else done


def _passes_without(test: str, stage: Stage, tree: Tree, baseline: Baseline) -> bool:
    """Run a test, or if pytest itself failed the whole stage, without the mutant."""
    if test and test in baseline.passing:
        return True
    asked = stage._replace(paths=(test,), done=()) if test else stage
    outcome = tree.pytest(*_arguments(asked, baseline), limit_s=stage.speed.limit_s)
    if outcome.failed is None:
        baseline.passing.add(test)
        return True
    if not test:
        raise RuntimeError(f"pytest fails without a mutant, in {stage.name}:\n{outcome.log}")
    baseline.failing.add(test)
    return False
