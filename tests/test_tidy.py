"""The style guide as failing tests: sizes, names of files, words that may not appear."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path
    for folder in ("embedlog", "wire", "tests", "examples", ".ci")
    for path in (ROOT / folder).rglob("*.py")
)
CODE = [path for path in SOURCES if path.parts[len(ROOT.parts)] in {"embedlog", "wire"}]

FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 60
LINE_LENGTH_MAX = 100


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", CODE, ids=_name)
def test_a_file_holds_one_idea(path: Path) -> None:
    lines = path.read_text().count("\n")
    assert lines <= FILE_LINES_MAX, f"{_name(path)}: {lines} lines"


@pytest.mark.parametrize("path", CODE, ids=_name)
def test_functions_fit_on_a_screen(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            assert size <= FUNCTION_LINES_MAX, f"{_name(path)}:{node.lineno} {node.name}: {size}"


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_lines_fit(path: Path) -> None:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        assert len(line) <= LINE_LENGTH_MAX, f"{_name(path)}:{number}: {len(line)} characters"


@pytest.mark.parametrize("path", CODE, ids=_name)
def test_every_module_says_what_it_is(path: Path) -> None:
    if path.name == "__init__.py" and not path.read_text().strip():
        return
    assert ast.get_docstring(ast.parse(path.read_text())), f"{_name(path)}: no module docstring"


@pytest.mark.parametrize("path", CODE, ids=_name)
def test_public_definitions_say_what_the_caller_must_know(path: Path) -> None:
    if "schemas" in path.parts:
        return
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if isinstance(node, ast.FunctionDef) and node.name in {"handle", "main"}:
            continue  # an API file's card, or the command's help, says it
        assert ast.get_docstring(node), f"{_name(path)}:{node.lineno} {node.name}: no docstring"


FORBIDDEN = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError")


@pytest.mark.parametrize("path", CODE, ids=_name)
def test_nothing_is_left_for_later(path: Path) -> None:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        assert not FORBIDDEN.search(line), f"{_name(path)}:{number}: {line.strip()}"


def test_only_a_threads_top_frame_catches_everything() -> None:
    allowed = {
        "embedlog/aio/threads.py",  # the coroutine that waits raises it
        "embedlog/broker/dispatch.py",
        "embedlog/broker/heavy_requests.py",  # the top frame of its thread
        "embedlog/client/interceptors.py",  # a user's code, which must not stop the client
        "embedlog/client/user_code.py",  # what it caught is raised when the work is done
        "embedlog/runtime/at_exit.py",  # the top frame when the interpreter ends
        "embedlog/runtime/scheduler.py",
        "embedlog/spark/discovery/pyspark_embedlog/__init__.py",  # else Spark finds no source
        "embedlog/spark/pipeline/decode/foreign.py",  # becomes the record's dead letter
        "wire/net/listener.py",
    }
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ExceptHandler):
                continue
            caught = node.type
            names = {getattr(n, "id", "") for n in ast.walk(caught)} if caught else {"bare"}
            if names & {"bare", "Exception", "BaseException"} and _name(path) not in allowed:
                ends = any(isinstance(n, ast.Raise) for n in ast.walk(node))
                assert ends, f"{_name(path)}:{node.lineno} catches everything and goes on"


def test_every_lock_has_its_place_in_the_order() -> None:
    allowed = {
        "embedlog/runtime/locks.py",
        "embedlog/runtime/lock_order.py",
        "wire/net/poller.py",  # the last one of all: `Rank.WAKER`
    }
    makers = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "allocate_lock"}
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or _name(path) in allowed:
                continue
            called = ast.unparse(node.func)
            if called == "asyncio.Lock":
                continue  # tasks wait for it, and no thread
            assert called.rpartition(".")[2] not in makers, (
                f"{_name(path)}:{node.lineno} makes a lock without a rank: see runtime/locks.py"
            )


def test_the_api_folder_mirrors_the_schemas() -> None:
    schemas = {path.stem for path in (ROOT / "wire/schemas").glob("*.py")}
    apis = {path.stem for path in (ROOT / "embedlog/broker/apis").glob("*.py")}
    assert apis <= schemas | {"__init__"}, apis - schemas
