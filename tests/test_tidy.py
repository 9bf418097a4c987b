"""The style guide as failing tests: sizes, names of files, words that may not appear."""

from __future__ import annotations

import ast
import functools
import gc
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from embedlog import errors
from wire.error_codes import ErrorCode

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path
    for folder in ("embedlog", "wire", "tests", "examples", ".ci")
    for path in (ROOT / folder).rglob("*.py")
)
CODE = [path for path in SOURCES if path.parts[len(ROOT.parts)] in {"embedlog", "wire"}]

NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make"}
PATCHES = {"monkeypatch.setattr", "patch.object", "setattr", "getattr"}
# The patterns begin with their keyword: a pattern with a prefix would be slower to search for.
PRIVATE_NAME = re.compile(
    r"_(?:(?<=\bdef _)|(?<=\bclass _)|(?<=\bself\._)|(?<=^_))[A-Za-z]\w*", re.MULTILINE
)
NAMED_PRIVATE = re.compile(r"_(?<=[.\"]_)(?<!\bself\._)(?<!\bcls\._)[A-Za-z]\w*")

FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 60
LINE_LENGTH_MAX = 100
CLASS_METHODS_MAX = 20
CLASS_ATTRIBUTES_MAX = 15

LARGE_CLASSES = {
    "Admin": "Kafka's calls; `aio` has the same",
    "Broker": "the door, and the common parts of all APIs",
    "Brokers": "the test kit's way into the brokers and both coordinators",
    "Cluster": "the calls of a cluster's owner",
    "ClusterMember": "the life of a broker, one method a step",
    "Consumer": "Kafka's calls; `aio` has the same",
    "Faults": "the list of rules, and a method for each named fault",
    "Group": "a test's handle: a property each value, a method each change",
    "GroupShard": "the operations on groups: a method each",
    "Hold": "a rule, and the requests that it holds",
    "InProcessTransport": "a transport's calls, and the append without a request",
    "Job": "the facts about a job, and the ways to end it",
    "Kafka": "the calls of a test; each part is a class of its own",
    "KafkaContainer": "testcontainers' calls",
    "LogTasks": "recurring work of a data directory: a method each",
    "LoneMember": "the life of the only broker, one method a step",
    "MovedScheduler": "the real scheduler, and the steps of a jump",
    "Partition": "a test's handle: a property each value, a method each change",
    "Producer": "Kafka's calls; `aio` has the same",
    "Proxy": "the calls of a test on a cluster that is not its own",
    "RemoteKafka": "the calls of `Kafka`, for type checkers alone",
    "ShareConsumer": "Kafka's calls; `aio` has the same",
    "Queue": "the calls of a queue's users",
    "SharedCluster": "the calls of `Cluster` that any of several processes can make",
    "SimulatedKafka": "a `Kafka`",
    "Taker": "the ways of a job into a process and out of it, a method each",
    "Topic": "the calls of a test that reads a topic or writes to it",
    "TransactionShard": "the operations on transactional ids: a method each",
    "_Parser": "the grammar of Protobuf: a method a rule",
}
"""Classes with more than CLASS_METHODS_MAX methods, and why each is one idea."""

REACHES_INSIDE = {
    "tests/crash/planted_bugs.py",  # breaks parts on request
    "tests/simulation/cluster/planted.py",
    "tests/simulation/cluster/test_relocations.py",
    "tests/simulation/share/planted.py",
    "tests/simulation/transactions/planted.py",  # plants bugs
    "tests/storage/relocation/test_planted.py",
    "tests/sharing/memory_broker.py",  # gives a broker a share coordinator that fails on request
    "tests/interop/groups/workers/aio_kafka.py",  # private names of another library
}
"""Tests that break the code on purpose may use names that are private to a class or a module."""

FORBIDDEN = re.compile(r"(TODO|FIXME|XXX|HACK)\b|NotImplementedError")


@pytest.fixture(scope="module", autouse=True)
def _trees_are_forgotten() -> Iterator[None]:
    """Forget the syntax trees, a million nodes: they would slow the garbage collector of all later
    tests by seconds.
    """
    gc.disable()
    yield
    for cached in (_text, _tree, _nodes, _classes, _imported):
        cached.cache_clear()
    gc.enable()


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@functools.cache
def _text(path: Path) -> str:
    return path.read_text()


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(_text(path))


@functools.cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return the nodes that the tests below examine, at any depth."""
    kinds = {
        ast.AsyncFunctionDef,
        ast.Call,
        ast.ClassDef,
        ast.ExceptHandler,
        ast.FunctionDef,
        ast.ImportFrom,
    }
    return tuple(node for node in ast.walk(_tree(path)) if type(node) in kinds)


def _found(pattern: re.Pattern[str], paths: list[Path]) -> Iterator[tuple[str, str]]:
    """Return the place of each match, and its first group or the whole match."""
    for path in paths:
        for match in pattern.finditer(_text(path)):
            line = _text(path).count("\n", 0, match.start()) + 1
            yield f"{_name(path)}:{line}", match[min(1, pattern.groups)]


def test_a_file_holds_one_idea() -> None:
    sizes = {_name(path): _text(path).count("\n") for path in CODE}
    assert not [each for each in sizes.items() if each[1] > FILE_LINES_MAX]


def test_functions_fit_on_a_screen() -> None:
    found = [
        f"{_name(path)}:{node.lineno} {node.name}: {size} lines"
        for path in CODE
        for node in _nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (size := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert not found


@functools.cache
def _classes() -> dict[str, ast.ClassDef]:
    """Return every class by its full name, as in `embedlog.storage.log.log.Log`."""
    return {
        f"{_module(path)}.{node.name}": node
        for path in CODE
        for node in _nodes(path)
        if isinstance(node, ast.ClassDef)
    }


def _module(path: Path) -> str:
    return _name(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


MODULES = {_module(path): path for path in CODE}


@functools.cache
def _imported(module: str) -> dict[str, str]:
    """Return the full name of each name that a module imports."""
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in _nodes(MODULES[module])
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _with_bases(place: str) -> Iterator[ast.ClassDef]:
    """Yield the class, and its bases if they belong to the library."""
    yield _classes()[place]
    module = place.rpartition(".")[0]
    for base in _classes()[place].bases:
        name = getattr(base, "id", "")
        found = _imported(module).get(name, f"{module}.{name}")
        if found in _classes() and found != place:
            yield from _with_bases(found)


def _methods(place: str) -> set[str]:
    return {
        member.name
        for each in _with_bases(place)
        for member in each.body
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _attributes(place: str) -> set[str]:
    return {
        part.attr
        for each in _with_bases(place)
        for part in ast.walk(each)
        if isinstance(part, ast.Attribute)
        and isinstance(part.ctx, ast.Store)
        and isinstance(part.value, ast.Name)
        and part.value.id == "self"
    }


def _above(most: int, count: Callable[[str], set[str]]) -> dict[str, int]:
    """Return the classes for which `count` finds more than `most` names."""
    return {
        place.rpartition(".")[2]: len(found)
        for place in _classes()
        if len(found := count(place)) > most
    }


def test_a_large_class_has_a_reason() -> None:
    """Inherited methods count, as a class cut by inheritance is as large as before."""
    assert _above(CLASS_METHODS_MAX, _methods).keys() == LARGE_CLASSES.keys()


def test_a_class_stores_few_attributes() -> None:
    assert not _above(CLASS_ATTRIBUTES_MAX, _attributes)


@functools.cache
def _private_names() -> frozenset[str]:
    """Return the library's names that begin with one underscore."""
    found = {name for path in CODE for name in PRIVATE_NAME.findall(_text(path))}
    return frozenset(found - NAMED_TUPLES)


def _reached(path: Path) -> Iterator[str]:
    """Yield the private names of the library that a test uses, except on its own objects."""
    named = set(NAMED_PRIVATE.findall(_text(path)))
    if not named & _private_names():
        return  # most tests: no need to parse them
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Attribute) and node.attr in _private_names():
            owner = node.value
            is_own = isinstance(owner, ast.Name) and owner.id in {"self", "cls"}
            is_own |= isinstance(owner, ast.Call) and ast.unparse(owner.func) == "super"
            if not is_own:
                yield f"{_name(path)}:{node.lineno} {ast.unparse(node)}"
        elif isinstance(node, ast.Call):
            texts = [part.value for part in node.args if isinstance(part, ast.Constant)]
            private = [text for text in texts if text in _private_names()]
            if private and ast.unparse(node.func) in PATCHES:
                yield f"{_name(path)}:{node.lineno} {private}"


def test_tests_do_not_reach_inside() -> None:
    tests = [path for path in SOURCES if _name(path).startswith("tests/")]
    found = {_name(path): list(_reached(path)) for path in tests}
    broken = {name: places for name, places in found.items() if places}
    assert not broken.keys() - REACHES_INSIDE, [
        place for name in broken.keys() - REACHES_INSIDE for place in broken[name]
    ]
    done = REACHES_INSIDE - broken.keys()
    assert not done, f"these reach inside no more: strike them from the table: {done}"


def test_lines_fit() -> None:
    long = re.compile(f"^.{{{LINE_LENGTH_MAX + 1},}}$", re.MULTILINE)
    assert not list(_found(long, SOURCES))


def test_every_module_has_a_docstring() -> None:
    found = [
        _name(path)
        for path in CODE
        if not ast.get_docstring(_tree(path))
        and (path.name != "__init__.py" or _text(path).strip())
    ]
    assert not found


def test_public_definitions_have_docstrings() -> None:
    found = [
        f"{_name(path)}:{node.lineno} {node.name}"
        for path in CODE
        if "schemas" not in path.parts
        for node in _tree(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
        # The card of an API, or the help of a command, says it.
        and not (isinstance(node, ast.FunctionDef) and node.name in {"handle", "main"})
        and not ast.get_docstring(node)
    ]
    assert not found


def test_the_packages_hold_only_code() -> None:
    """Such as no file that a merge or an editor has left behind."""
    found = [
        _name(path)
        for package in ("embedlog", "wire")
        for path in (ROOT / package).rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.suffix not in {".py", ".properties"}
        and path.name != "py.typed"
    ]
    assert not found


def test_nothing_is_left_for_later() -> None:
    assert not list(_found(FORBIDDEN, CODE))


def test_only_the_top_frame_of_a_thread_catches_everything() -> None:
    allowed = {
        "embedlog/aio/threads.py",  # the coroutine that waits raises it
        "embedlog/runtime/ahead.py",  # the top frame of its thread; the caller raises it
        "embedlog/broker/dispatch.py",
        "embedlog/testing/faults/user_code.py",  # the rule raises the error when it ends
        "embedlog/server/heavy_requests.py",  # the top frame of its thread
        "embedlog/client/interceptors.py",  # a user's code, which must not stop the client
        "embedlog/client/user_code.py",  # the caught error is raised when the work is done
        "embedlog/queue/delays/mover.py",  # the top frame of its thread, which begins again
        "embedlog/queue/working/worker.py",  # a failure of a job, which the job's record names
        "embedlog/runtime/outer_call.py",  # the outer call has an outcome of its own
        "embedlog/runtime/at_exit.py",  # the top frame at the end of the interpreter
        "embedlog/runtime/scheduler.py",
        "embedlog/spark/discovery/pyspark_embedlog/__init__.py",  # else Spark has no source
        "embedlog/testing/on_demand/transactions.py",  # the caught error is the held answer
        "embedlog/testing/waits/aio.py",  # the coroutine that waits raises it
        "embedlog/testing/waits/requests.py",  # the waiting thread raises it
        "embedlog/spark/pipeline/decode/foreign.py",  # becomes the record's dead letter
        "wire/net/connection.py",  # a service or peer that fails ends its connection
        "wire/net/listener.py",
    }
    for path in CODE:
        for node in _nodes(path):
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
        "wire/net/poller.py",  # `Rank.WAKER`, the last of the ranks
    }
    makers = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "allocate_lock"}
    for path in CODE:
        for node in _nodes(path):
            if not isinstance(node, ast.Call) or _called(node) not in makers:
                continue
            # Asyncio's locks make tasks wait, and no threads.
            assert _name(path) in allowed or ast.unparse(node.func) == "asyncio.Lock", (
                f"{_name(path)}:{node.lineno} makes a lock without a rank: see runtime/locks.py"
            )


def test_the_api_folder_mirrors_the_schemas() -> None:
    schemas = {path.stem for path in (ROOT / "wire/schemas").glob("*.py")}
    apis = {path.stem for path in (ROOT / "embedlog/broker/apis").glob("*.py")}
    assert apis <= schemas | {"__init__"}, apis - schemas


def _error_code(name: str) -> int | None:
    """Return the error name that a constant such as `INVALID_TOPIC` stands for; empty if none."""
    known = vars(ErrorCode)
    bare = name.lstrip("_")
    found = known.get(bare, known.get(f"{bare}_EXCEPTION"))
    return found if isinstance(found, int) and bare != "NONE" else None


def _numbers(path: Path) -> Iterator[tuple[int, str, int]]:
    """Yield line, name and value of every numeric constant of a module or its classes."""
    bodies = [_tree(path).body, *(n.body for n in _tree(path).body if isinstance(n, ast.ClassDef))]
    for node in (node for body in bodies for node in body):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            text = ast.unparse(node.value)
            if isinstance(target, ast.Name) and re.fullmatch(r"-?\d+", text):
                yield node.lineno, target.id, int(text)


def _called(node: ast.Call) -> str:
    """Return the last name of the called function."""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def test_error_codes_have_one_vocabulary() -> None:
    """A code is `ErrorCode.X`, its error `errors.X`; `error_for` is for codes of a peer."""
    found = [
        f"{_name(path)}:{line} {name} retypes ErrorCode"
        for path in CODE
        if _name(path) != "wire/error_codes.py"
        for line, name, value in _numbers(path)
        if value == _error_code(name)
    ]
    found += [
        f"{_name(path)}:{node.lineno} error_for({code}) has a class"
        for path in CODE
        for node in _nodes(path)
        if isinstance(node, ast.Call)
        and _called(node) == "error_for"
        and re.fullmatch(r"-?\d+|ErrorCode\.\w+", code := ast.unparse(node.args[0]))
    ]
    assert not found


def test_every_error_that_is_named_exists() -> None:
    """The type checker accepts every name, because `errors.__getattr__` serves them."""
    named = re.compile(r"(?<![\w.])(?:embedlog\.)?errors\.([A-Z]\w+)")
    assert not [each for each in _found(named, CODE) if not hasattr(errors, each[1])]


def test_only_the_command_prints() -> None:
    """Users get warnings, errors, or lines of `logging`."""
    allowed = {
        "embedlog/runtime/lock_order.py",  # a check for tests, whose error may get lost
        "embedlog/spark/pipeline/sinks/topics.py",  # the sink that prints rows
        "wire/logger.py",  # a warning when `logging` itself cannot be loaded
    }
    printing = {"print", "print_exc", "print_exception", "print_stack"}
    found = [
        f"{_name(path)}:{node.lineno}"
        for path in CODE
        if not _name(path).startswith("embedlog/cli/") and _name(path) not in allowed
        for node in _nodes(path)
        if isinstance(node, ast.Call)
        and (
            _called(node) in printing
            or (_called(node) == "write" and ast.unparse(node.func).startswith("sys.std"))
        )
    ]
    assert not found
