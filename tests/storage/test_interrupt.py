"""An interrupt at any opcode of an append, a roll or a read leaves all of it done or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from embedlog.runtime.lock_order import held_here
from embedlog.storage.log.log import Log
from tests.storage.logs import NOW, append, append_marker, batch, check, new_log, values
from tests.support.sizes import size

ROOTS = ("/embedlog/storage/", "/embedlog/runtime/", "/embedlog/testing/sim_files")


class Interrupted(BaseException):
    """Stands for KeyboardInterrupt, which a test runner would take for its own."""


def _interrupted_at(opcode: int, work: Callable[[], object]) -> bool:
    """Run `work`, interrupt it at its n-th opcode in our code; return whether it got that far."""
    left = opcode

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left
        name = frame.f_code.co_filename
        # A checking lock has the semantics of a lock that is taken in a single step.
        if not any(root in name for root in ROOTS) or name.endswith("/lock_order.py"):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise Interrupted
        return trace

    sys.settrace(trace)
    try:
        work()
    except Interrupted:
        # An interrupt between the opcodes of a `with` leaves its lock to this thread, which may
        # take it again; the thread does not mean to hold it.
        held_here().clear()
        return True
    finally:
        sys.settrace(None)
    return False


def _sweep(prepare: Callable[[], Log], work: Callable[[Log], object], step: int = 1) -> int:
    """Interrupt `work` at every `step`-th opcode of a fresh log; return how many there were."""
    opcode = 1
    while True:
        log = prepare()
        if not _interrupted_at(opcode, lambda log=log: work(log)):
            return opcode
        log.check_usable()
        check(log)
        again = work(log)
        assert again is not None
        check(log)
        yield_check(log)
        opcode += step


def yield_check(log: Log) -> None:
    """Nothing is there twice: each value was sent once by an idempotent producer."""
    seen = values(log)
    assert len(seen) == len(set(seen)), seen


SETTINGS: list[dict[str, object]] = [{}, {"segment_bytes": 200}, {"durability": "fsync"}]


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("step", [41, pytest.param(size(19, full=7), marks=pytest.mark.slow)])
def test_an_append_is_done_or_not_done(settings: dict[str, object], step: int) -> None:
    def prepare() -> Log:
        log = new_log(index_interval_bytes=0, **settings)
        append(log, b"first", producer=(7, 0, 0))
        append(log, b"second", producer=(7, 0, 1))
        return log

    records = batch(b"third" * 10, producer=(7, 0, 2))
    opcodes = _sweep(
        prepare, lambda log: log.append_as_leader(records, leader_epoch=1, now_ms=NOW), step=step
    )
    assert opcodes > 300


def test_a_transaction_ends_or_does_not_end() -> None:
    def prepare() -> Log:
        log = new_log()
        append(log, b"open", producer=(7, 0, 0), transactional=True)
        return log

    def work(log: Log) -> object:
        if log.transactions.producers.has_open_transaction(7, 0):
            append_marker(log, 7, committed=False)
        log.offsets.update_high_watermark(log.log_end_offset)
        assert log.offsets.last_stable_offset == log.log_end_offset == 2
        assert len(log.transactions.aborted(0, 2)) == 1
        return log

    assert _sweep(prepare, work, step=37) > 300


def test_reading_and_looking_up_may_be_interrupted() -> None:
    def prepare() -> Log:
        log = new_log(segment_bytes=300, index_interval_bytes=0)
        for number in range(8):
            append(log, b"%d" % number * 50, timestamps=NOW + number)
        return log

    def work(log: Log) -> object:
        assert log.reader.fetch_offset(NOW + 5) == (NOW + 5, 5, 0)
        log.reader.read(2, max_bytes=1000, end_offset=8)
        log.reader.read(7, max_bytes=1000, end_offset=8)
        return log

    assert _sweep(prepare, work, step=41) > 500
