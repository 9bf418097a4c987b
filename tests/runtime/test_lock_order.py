"""Locks that check their order: every violation is found and reported."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from dis import opmap
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from embedlog.runtime.lock_order import CheckedLock, LockOrderViolation, held_here
from embedlog.runtime.locks import (
    RING_FREE,
    Rank,
    checked_order,
    closed_gate,
    ranked_lock,
    ranked_rlock,
)
from tests.conftest import VIOLATIONS

ROOT = Path(__file__).resolve().parent.parent.parent
checked = checked_order().lock


@pytest.fixture(autouse=True)
def violations(lock_violations: list[str]) -> Iterator[list[str]]:
    """The violations that the test has caused."""
    yield lock_violations
    assert held_here() == []


def outer() -> CheckedLock:
    return checked(Rank.CONTROLLER, is_reentrant=True)


def inner(*, is_reentrant: bool = True) -> CheckedLock:
    return checked(Rank.PARTITION, is_reentrant=is_reentrant)


def test_locks_are_checked_while_tests_run() -> None:
    assert isinstance(ranked_lock(Rank.SEEKING), CheckedLock)
    assert isinstance(ranked_rlock(Rank.SEEKING), CheckedLock)


def test_ranks_differ() -> None:
    ranks = [value for name, value in vars(Rank).items() if not name.startswith("_")]
    assert len(set(ranks)) == len(ranks)
    assert set(ranks) > RING_FREE


def test_locks_may_be_taken_in_order_and_again(violations: list[str]) -> None:
    first, second = outer(), inner()
    with first, second, first, second:
        assert held_here() == [first, second]
    with second:
        assert held_here() == [second]
    assert not violations


def test_a_lock_further_up_is_refused_with_both_stacks(violations: list[str]) -> None:
    first, second = outer(), inner()

    def hold_and_ask() -> None:
        with second:
            first.acquire()

    with pytest.raises(LockOrderViolation, match="CONTROLLER.*under.*PARTITION") as refused:
        hold_and_ask()
    assert str(refused.value).count("hold_and_ask") == 2
    assert violations == [str(refused.value)]
    assert not first.locked()


def test_a_second_lock_of_a_rank_is_refused(violations: list[str]) -> None:
    with inner(), pytest.raises(LockOrderViolation), inner():
        pass


def test_passes_of_producers_may_hold_each_other(violations: list[str]) -> None:
    with checked(Rank.DRIVER, True), checked(Rank.DRIVER, True):
        assert len(held_here()) == 2
    assert not violations


def test_a_plain_lock_taken_again_by_its_holder_is_refused(violations: list[str]) -> None:
    lock = inner(is_reentrant=False)
    with lock:
        assert not lock.acquire(blocking=False)
        with pytest.raises(LockOrderViolation):
            lock.acquire()


def test_a_lock_may_be_tried_without_waiting_in_any_order_and_counts_as_held(
    violations: list[str],
) -> None:
    first, second, innermost = outer(), inner(), checked(Rank.PENDING, True)
    with second:
        assert first.acquire(blocking=False)
        with innermost:
            assert held_here() == [second, first, innermost]
        first.release()
    assert not violations
    first.acquire()
    with second, pytest.raises(LockOrderViolation):
        outer().acquire()
    first.release()


def test_locks_of_another_thread_do_not_count(violations: list[str]) -> None:
    lock = inner()
    seen: list[object] = []
    with lock:
        other = threading.Thread(target=lambda: seen.extend([held_here(), lock.locked()]))
        other.start()
        other.join()
    assert seen == [[], True]
    assert not lock.locked()


class Interrupted(BaseException):
    """Stands for KeyboardInterrupt, which would end the test run."""


RETURN = opmap["RETURN_VALUE"]
"""No code of the function follows this one, so the interpreter checks for no signal after it."""


def test_an_interrupt_leaves_no_lock_taken() -> None:
    left = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal left
        if frame.f_code is not CheckedLock.acquire.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_code.co_code[frame.f_lasti] != RETURN:
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise Interrupted
        return trace

    opcodes = 0
    while left <= 0:
        opcodes += 1
        left = opcodes
        lock = outer()
        sys.settrace(trace)
        try:
            lock.acquire()
        except Interrupted:
            assert not lock.locked(), opcodes
        finally:
            sys.settrace(None)
    assert opcodes > 20
    lock.release()


def test_a_gate_may_be_opened_by_another_thread(violations: list[str]) -> None:
    gate = closed_gate()
    assert gate.locked()
    threading.Thread(target=gate.release).start()
    assert gate.acquire(timeout=30)


SWALLOWED = """
from embedlog.runtime.locks import Rank, ranked_lock
with ranked_lock(Rank.PARTITION):
    try:
        ranked_lock(Rank.CONTROLLER).acquire()
    except BaseException:
        pass
"""


def test_a_violation_in_a_child_that_swallows_it_is_found(violations: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "LockOrderViolation" in done.stderr
    (path,) = VIOLATIONS.iterdir()
    assert "CONTROLLER" in path.read_text()


def test_without_the_environment_variable_locks_are_not_checked() -> None:
    code = (
        "import os, sys; os.environ.pop('EMBEDLOG_CHECK_LOCKS')\n"
        "from embedlog.runtime.locks import *\n"
        "print(type(ranked_lock(1)).__name__, type(ranked_rlock(1)).__name__)\n"
        "print('embedlog.runtime.lock_order' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["lock", "RLock", "False"]
