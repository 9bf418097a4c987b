"""KeyboardInterrupt wherever one may come: all is done or nothing, and no lock stays taken.

Each interrupt has a fresh log or cluster. Afterwards another thread must get on with it, the same
thread must be able to do the operation again, everything that was there before is there, nothing
is there twice, and it can be closed. `opcodes` says where interrupts may come.
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
"""Interrupts of logs; those of clusters, which take longer, are fewer: see `Scenario.cost`."""
SOAK_COUNT = 1_000_000

STUCK_AFTER_S = 20.0
SLOW_AFTER_S = 5.0
"""A step takes some milliseconds: one that takes so long waited for what never came."""


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
    """A file system in memory, if there is one: no disk is lost here, and many are synced."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _opcode_count(kind: type[Scenario], base: str) -> int:
    """How many opcodes the operation has when nobody interrupts it; what it loads is loaded."""
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
        report.fail(f"{where}: it became {error!r}:\n{trace}")
    finally:
        countdown.stop()
        held_here().clear()
    # Between the opcodes of a `with` a lock stays with its thread. It is another thread's view
    # that counts: for that one a lock must be free.
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
    """An interrupt that comes in a finalizer is shown and forgotten by Python itself."""
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
    """Do it in a thread; where it hangs, if it does."""
    problems: list[str] = []
    thread = threading.Thread(target=lambda: problems.append(_here(step)), daemon=True)
    thread.start()
    thread.join(STUCK_AFTER_S)
    if not thread.is_alive():
        return problems[0]
    frame = sys._current_frames().get(thread.ident or 0)
    return "it is stuck:\n" + "".join(traceback.format_stack(frame)[-4:])
