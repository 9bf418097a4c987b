"""KeyboardInterrupt at any possible place: an operation is done or not, and no lock stays locked.

Each interrupt has a fresh log or cluster. Afterwards another thread must be able to work on it, and
the same thread to repeat the operation. All earlier records are there, none is there twice, and the
log or cluster can be closed. `opcodes` knows the places of interrupts.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator

from embedlog.runtime.lock_order import held_here
from tests.crash.interrupted import SCENARIOS, Scenario
from tests.crash.opcodes import Countdown
from tests.crash.report import Options, Report
from tests.support.sizes import size

CI_COUNT = size(1_500, full=15_000)
"""Interrupts of logs. Clusters take longer and get fewer: see `Scenario.cost`."""
SOAK_COUNT = 1_000_000

STUCK_AFTER_S = 20.0
SLOW_AFTER_S = 5.0
"""Steps take milliseconds: a longer one waits for ever."""


def run(options: Options) -> Report:
    report = Report("interrupts", options)
    chance = random.Random(options.seed)
    with (
        _finalizers_counted(report),
        tempfile.TemporaryDirectory(prefix="crash-", dir=_memory()) as base,
    ):
        for name, kind in SCENARIOS.items():
            share = options.count // len(SCENARIOS) // kind.cost
            opcodes = _opcode_count(kind, base)
            chosen = range(1, opcodes + 1)
            if len(chosen) > share:
                chosen = sorted(chance.sample(chosen, share))
            report.note(f"{name}: {len(chosen):,} of {opcodes:,} places")
            for opcode in chosen:
                _interrupt(report, name, kind, base, opcode)
    return report


def _memory() -> str | None:
    """Return a file system in memory, if there is one: the disk is not tested here, and syncs are
    many.
    """
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _opcode_count(kind: type[Scenario], base: str) -> int:
    """Return the number of opcodes of an undisturbed operation, after one run for its imports."""
    for _ in range(2):
        scenario = _fresh(kind, base)
        countdown = Countdown(1 << 60, lambda: None, scenario.roots, interrupts_only=True)
        countdown.start()
        try:
            scenario.work()
        finally:
            countdown.stop()
        scenario.close()
    return (1 << 60) - countdown.left


def _fresh(kind: type[Scenario], base: str) -> Scenario:
    directory = tempfile.mkdtemp(dir=base)
    return kind(directory)


def _interrupt(report: Report, name: str, kind: type[Scenario], base: str, opcode: int) -> None:
    where = f"{name}, place {opcode}"
    scenario = _fresh(kind, base)
    countdown = Countdown(opcode, _raise, scenario.roots, interrupts_only=True)
    countdown.start()
    try:
        scenario.work()
        report.add("not reached, or swallowed")
    except KeyboardInterrupt as interrupt:
        report.add("interrupts")
        where += "".join(traceback.format_tb(interrupt.__traceback__)[-3:-2])
    except BaseException as error:
        countdown.stop()
        trace = "".join(traceback.format_tb(error.__traceback__)[-3:])
        report.fail(f"{where}: turned into {error!r}:\n{trace}")
    finally:
        countdown.stop()
        held_here().clear()
    # Within a `with` statement, an interrupted thread may still hold a lock. Only other threads
    # count: for them the lock must be free.
    steps: tuple[tuple[str, Callable[[], object], bool], ...] = (
        ("another thread", scenario.look, True),
        ("the same again", scenario.work, False),
        ("another thread after that", scenario.look, True),
        ("the close", scenario.close, False),
    )
    for what, step, in_thread in steps:
        started = time.monotonic()
        problem = _in_thread(step) if in_thread else _here(step)
        elapsed = time.monotonic() - started
        if not problem and elapsed > SLOW_AFTER_S:
            problem = f"it took {elapsed:.0f} s"
        if problem:
            report.fail(f"{where}: {what}: {problem}")
            return
    shutil.rmtree(scenario.directory, ignore_errors=True)


@contextlib.contextmanager
def _finalizers_counted(report: Report) -> Iterator[None]:
    """Count interrupts inside finalizers: Python only prints these."""
    former = sys.unraisablehook

    def count(unraisable: sys.UnraisableHookArgs) -> None:
        if unraisable.exc_type is KeyboardInterrupt:
            report.add("lost in finalizers")
        else:
            report.fail(f"in {unraisable.object!r}: {unraisable.exc_value!r}")

    sys.unraisablehook = count
    try:
        yield
    finally:
        sys.unraisablehook = former


def _raise() -> None:
    raise KeyboardInterrupt


def _here(step: Callable[[], object]) -> str:
    try:
        step()
    except Exception as error:
        return "".join(traceback.format_exception(error)[-3:])
    return ""


def _in_thread(step: Callable[[], object]) -> str:
    """Run it in a thread; return where it hangs, if it does."""
    problems: list[str] = []
    thread = threading.Thread(target=lambda: problems.append(_here(step)), daemon=True)
    thread.start()
    thread.join(STUCK_AFTER_S)
    if not thread.is_alive():
        return problems[0]
    frame = sys._current_frames().get(thread.ident or 0)
    return "it is stuck:\n" + "".join(traceback.format_stack(frame)[-4:])
