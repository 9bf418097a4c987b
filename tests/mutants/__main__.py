"""Plant each mutant of the named rooms, and search for a test that notices."""

from __future__ import annotations

import argparse
import hashlib
import json
import queue
import random
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path

from tests.mutants import lists
from tests.mutants.judge import Baseline, Verdict, judge, stages
from tests.mutants.lists import ROOT, BadList, Mutant
from tests.mutants.trees import Stopped, Tree


class Run:
    """The mutants of one run, their verdicts, and the file that keeps these."""

    def __init__(self, mutants: list[Mutant], given: argparse.Namespace, root: Path) -> None:
        self.mutants = mutants
        self.verdicts: dict[str, Verdict] = {}
        self._failure: BaseException | None = None
        self._given = given
        self._root = root
        self._todo: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
        self._baseline = Baseline()
        self._lock = threading.Lock()
        self._is_ending = False
        self._trees: list[Tree] = []
        self._kept: dict[str, list[object]] = {}
        if given.json:
            self._digest = _digest(root)
            self._kept = _read(given.json, self._digest)

    def run(self) -> None:
        """Judge all mutants, each worker in a copy of its own."""
        for mutant in self.mutants:
            self._todo.put(mutant)
        with ThreadPoolExecutor(self._given.processes) as pool:
            workers = [pool.submit(self._work) for _ in range(self._given.processes)]
            try:
                for worker in as_completed(workers):
                    worker.result()
            except BaseException:
                # A second signal would leave copies behind.
                for number in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, signal.SIG_IGN)
                self._is_ending = True
                for tree in self._trees:
                    tree.stop()
                raise

    def _work(self) -> None:
        with suppress(queue.Empty, Stopped), Tree(self._root) as tree:
            self._trees.append(tree)
            while not self._is_ending:
                self._judge(self._todo.get_nowait(), tree)

    def _judge(self, mutant: Mutant, tree: Tree) -> None:
        given = self._given
        todo = stages(mutant, self._root, slow=given.slow, wide=given.wide)
        key = f"{mutant.id} {hashlib.sha256(mutant.change.encode()).hexdigest()[:16]}"
        before = Verdict(*self._kept[key]) if key in self._kept else None  # type: ignore[arg-type]
        if before is None or not before.is_caught:
            passed = before.passed if before else ()
            todo = [stage for stage in todo if stage.name not in passed]
            verdict = judge(mutant, tree, todo, self._baseline)
            verdict = verdict._replace(passed=(*passed, *verdict.passed))
        else:
            verdict = before
        with self._lock:
            self.verdicts[mutant.id] = verdict
            self._kept[key] = list(verdict)
            if given.json:
                kept = {"tree": self._digest, "verdicts": self._kept}
                given.json.write_text(json.dumps(kept, indent=1) + "\n")
            print(_line(mutant, verdict), flush=True)


def _line(mutant: Mutant, verdict: Verdict) -> str:
    if verdict.is_caught:
        word = "hung" if verdict.hung else "caught"
        told = f"by {verdict.test}{' (slow)' if verdict.speed == 'slow' else ''}"
    else:
        word, told = "SURVIVED", mutant.survives or mutant.breaks
    return f"{word:<9}{verdict.seconds:7.1f} s  {mutant.room}: {mutant.id}  {told}"


def _digest(root: Path) -> str:
    """Return a hash of all files of code and tests but the mutants'."""
    found = hashlib.sha256()
    for top in (*lists.CODE, "tests"):
        for path in sorted((root / top).rglob("*")):
            if path.is_file() and not {"__pycache__", "mutants"} & set(path.parts):
                found.update(f"{path.relative_to(root)} {path.stat().st_size}\n".encode())
                found.update(path.read_bytes())
    return found.hexdigest()


def _read(path: Path, digest: str) -> dict[str, list[object]]:
    """Return the verdicts of an earlier run, if the tree is the same."""
    if not path.exists():
        return {}
    kept = json.loads(path.read_text())
    return kept["verdicts"] if kept["tree"] == digest else {}


def table(mutants: list[Mutant], verdicts: dict[str, Verdict]) -> str:
    """Return the totals of each room and of all."""
    columns = ("mutants", "fast", "slow", "survived")
    counts: dict[str, Counter[str]] = {}
    for mutant in mutants:
        verdict = verdicts[mutant.id]
        for row in (mutant.room, "together"):
            counts.setdefault(row, Counter()).update(["mutants", verdict.speed or "survived"])
    together = counts.pop("together")
    width = max(map(len, ("together", *counts)))
    lines = [f"{'':<{width}}" + "".join(f"{name:>10}" for name in columns)]
    for row, count in [*sorted(counts.items()), ("together", together)]:
        lines.append(f"{row:<{width}}" + "".join(f"{count[name]:>10}" for name in columns))
    fast = together["fast"] / together["mutants"]
    caught = fast + together["slow"] / together["mutants"]
    return "\n".join([*lines, f"{fast:.1%} caught by fast tests, {caught:.1%} by any."])


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a room, an id, or FILE.toml")
    parser.add_argument("--sample", type=int, metavar="N", help="number of mutants to judge")
    parser.add_argument(
        "--seed", default="1", help="any text; it decides which mutants are in the sample"
    )
    parser.add_argument("--slow", action="store_true", help="run slow tests after the fast ones")
    parser.add_argument("--wide", action="store_true", help="run all tests, at last")
    parser.add_argument("-j", "--processes", type=int, default=1, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep verdicts, and go on there")
    return parser.parse_args(words)


def main(words: list[str], root: Path = ROOT) -> int:
    """Judge the named mutants and print a table; return 1 if an unmarked one survived."""
    given = _arguments(words)
    try:
        mutants = lists.chosen(given.names)
        wrong = [each for mutant in mutants for each in lists.misfits(mutant, root)]
        if wrong:
            raise BadList("\n".join(wrong))
    except BadList as error:
        print(error, file=sys.stderr)
        return 2
    if not given.slow:
        mutants = [mutant for mutant in mutants if not mutant.slow]
    if given.sample is not None:
        size = min(given.sample, len(mutants))
        mutants = random.Random(given.seed).sample(mutants, size)
    if not mutants:
        print("nothing to judge")
        return 0
    begin = time.monotonic()
    run = Run(mutants, given, root)
    run.run()
    print(f"\n{table(mutants, run.verdicts)}")
    survivors = [mutant for mutant in mutants if not run.verdicts[mutant.id].is_caught]
    for mutant in survivors:
        print(_line(mutant, run.verdicts[mutant.id]))
    print(f"{time.monotonic() - begin:.0f} s")
    return 1 if any(not mutant.survives for mutant in survivors) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("interrupted; --json FILE keeps the verdicts and goes on there")
