"""For all tests: locks check their order, and Hypothesis needs no time limit of its own."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

VIOLATIONS = Path(tempfile.mkdtemp(prefix="embedlog-locks-"))
"""Folder in which this process and its children record locks that were taken in a wrong order."""
# Set before any import of the package, because some locks are made by imports.
os.environ["EMBEDLOG_CHECK_LOCKS"] = str(VIOLATIONS)

# Keep bytecode whatever the environment says. Without it, each process that runs tests compiles
# every module and rewrites its asserts in ten seconds; a process that a test starts takes a third
# of a second.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from embedlog.runtime.locks import Rank, ranked_rlock  # noqa: E402
from tests.support import jvm, left_over  # noqa: E402
from tests.support.schedule import LONG, Scheduling, uses_session  # noqa: E402
from tests.support.sizes import BRIEF  # noqa: E402
from wire.net import poller  # noqa: E402
from wire.records.known import KNOWN  # noqa: E402

# The drivers that tests start inherit this path.
os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(jvm.OPTIONS))
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(jvm.options("spark")))

# `wire` knows no ranks.
poller.RLock = lambda: ranked_rlock(Rank.WAKER)  # type: ignore[misc,assignment]

settings.register_profile(
    "untimed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("brief", settings.get_profile("untimed"), max_examples=BRIEF)


pytest_plugins = ["pytester"]
"""For the tests of our own plugin. Only the uppermost conftest may ask for it."""
if not entry_points(group="pytest11", name="embedlog"):  # the project is not installed
    pytest_plugins.append("embedlog.testing.pytest_plugin")

MEMORY = Path("/dev/shm")
FORMER_FILE = pytest.StashKey[str]()
"""The file whose tests ran before those of the present file."""
TOLD_THREADS = pytest.StashKey[dict[int, str]]()
"""The threads of librdkafka for which a file has failed already."""
CLIENT_END_S = 10.0
"""How long a client of librdkafka may take to end."""
ROOM = 1 << 30
"""Free bytes needed for tests in memory: no fast test takes more than a tenth of them."""


def pytest_configure(config: pytest.Config) -> None:
    """Without slow tests, as in bare `pytest`, give properties fewer examples and keep directories
    in memory if there is space. Waiting for the disk took a third of the time.
    """
    is_brief = _is_brief(config)
    settings.load_profile("brief" if is_brief else "untimed")
    if is_brief and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def _is_brief(config: pytest.Config) -> bool:
    """Return whether slow tests are left out, as in bare `pytest`."""
    chosen: str = config.option.markexpr
    return "not slow" in chosen and " or " not in chosen


def _leave_out_middle_cases(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the first and the last case of each test with parameters."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = {item for each in cases.values() for item in each[1:-1]}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(trylast=True)  # after the markers have been obeyed
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Bare `pytest` runs two cases of each test; if files or folders are named, all cases run.

    Start long files early, so that short ones fill the workers at the end.

    The files that share the Spark session come first, as one worker runs all of them, then the
    longest ones. Other files with slow tests follow in reverse order.
    """
    if _is_brief(config) and config.args_source != pytest.Config.ArgsSource.ARGS:
        _leave_out_middle_cases(config, items)
    slow: dict[Path, int] = {}
    for item in items:
        if item.get_closest_marker("slow") or item.get_closest_marker("interop"):
            file = item.nodeid.partition("::")[0]
            urgency = len(LONG) + 1 if uses_session(file) else _urgency_of(file)
            slow.setdefault(item.path, -1 - len(slow) - len(items) * urgency)
    items.sort(key=lambda item: slow.get(item.path, 0))


def _urgency_of(file: str) -> int:
    """Return a number that is the higher the earlier a long file has to start; 0 for others."""
    return len(LONG) - LONG.index(file) if file in LONG else 0


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile` one worker runs all files that use the Spark session."""
    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collect no garbage during the collection, and less often after it. Collected tests are no
    garbage; searching them took a fifth of the time here and a tenth in the tests, which leave
    little.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(5_000)
        gc.enable()


@pytest.fixture(autouse=True)
def locks_are_taken_in_order() -> Iterator[None]:
    """Fail the test for a violation, even in another thread, or if a handler swallowed
    the error.
    """
    yield
    told = [path.read_text() for path in VIOLATIONS.iterdir()]
    for path in VIOLATIONS.iterdir():
        path.unlink()
    assert not told, "\n".join(told)


@pytest.fixture(autouse=True)
def batches_are_unknown() -> None:
    """Empty the caches of batches, which choose the decoder: a test shall not depend on the tests
    that ran before it.
    """
    KNOWN.forget()


@pytest.fixture(scope="module", autouse=True)
def clients_of_librdkafka_have_ended(request: pytest.FixtureRequest) -> None:
    """Fail if an earlier file left a client of librdkafka: its threads go on asking the closed
    brokers, and open descriptors, during the tests after it. At the end of a file its last test
    still refers to its fixtures.
    """
    stash = request.config.stash
    former, stash[FORMER_FILE] = stash.get(FORMER_FILE, ""), request.node.nodeid
    told = stash.setdefault(TOLD_THREADS, {})
    if "confluent_kafka" not in sys.modules or left_over.librdkafka().keys() <= told.keys():
        return
    gc.collect()  # a dropped client with a callback is a cycle
    deadline = time.monotonic() + CLIENT_END_S
    while (left := left_over.librdkafka()).keys() - told.keys():
        if time.monotonic() > deadline:
            stash[TOLD_THREADS] = left
            pytest.fail(f"threads of librdkafka run after {former}: {sorted(left.values())}")
        time.sleep(0.01)


@pytest.fixture
def lock_violations(locks_are_taken_in_order: None) -> Iterator[list[str]]:
    """Return this process's violations to a test that violates the order on purpose."""
    from embedlog.runtime import lock_order

    lock_order.violations.clear()
    yield lock_order.violations
    lock_order.violations.clear()
    for path in VIOLATIONS.iterdir():
        path.unlink()


def pytest_sessionfinish() -> None:
    shutil.rmtree(VIOLATIONS, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run bare `pytest` in two processes, each file in one of them. Named tests, or a given number
    of processes, change this.
    """
    if "PYTEST_XDIST_WORKER" in os.environ or hasattr(config, "workerinput"):
        return  # this is one of the two processes
    is_bare = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if is_bare and config.getoption("numprocesses", None) is None and not config.option.usepdb:
        config.option.numprocesses = 2
        config.option.dist = "loadfile"
