"""Ctrl-C anywhere in the driving of a timer loses no task and no operation."""

from __future__ import annotations

import pytest

from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.purgatory.purgatory import DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer, TimerTask
from tests.crash.opcodes import Countdown
from tests.purgatory.manual_clock import ManualClock

_ROOTS = ("/embedlog/purgatory/",)
_START_MS = 1_000_000
_DELAYS_MS = (1, 3, 3, 19, 25, 90, 399, 401, 2_000, 9_000)


class Task(TimerTask):
    """Notes that it has run."""

    def __init__(self, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self.run_count = 0

    def run(self) -> None:
        self.run_count += 1


class Operation(DelayedOperation):
    """Waits for its time to run out."""

    def __init__(self, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self.answer_count = 0

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        self.answer_count += 1


def interrupted(place: int, timer: Timer, clock: ManualClock) -> bool:
    """Drive the timer up to the last task, with one interrupt; return whether it was reached."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    is_reached = False
    for now_ms in (_START_MS + 2, _START_MS + 500, _START_MS + 10_000, _START_MS + 10_001):
        clock.now_ms = now_ms
        countdown = Countdown(
            1 << 60 if is_reached else place, interrupt, _ROOTS, interrupts_only=True
        )
        countdown.start()
        try:
            timer.run_once(now_ms)
        except KeyboardInterrupt:
            is_reached = True
        finally:
            countdown.stop()
        place = countdown.left
    return is_reached


def test_an_interrupt_at_any_place_loses_no_task() -> None:
    place = 1
    while True:
        clock = ManualClock(_START_MS)
        timer = Timer(clock)
        tasks = [Task(delay_ms) for delay_ms in _DELAYS_MS]
        for task in tasks:
            timer.add(task)
        is_reached = interrupted(place, timer, clock)
        late = Task(5)
        timer.add(late)
        for now_ms in (clock.now_ms, clock.now_ms + 10):
            clock.now_ms = now_ms
            timer.run_once(now_ms)
        counts = [task.run_count for task in tasks]
        assert min(counts) >= 1, (place, counts)
        assert sum(counts) <= len(counts) + 1, (place, counts)  # the interrupted one runs again
        assert late.run_count == 1, place
        assert timer.size == 0, place
        if not is_reached:
            break
        place += 1
    assert place > 100


@pytest.mark.slow
def test_an_interrupt_at_any_place_answers_each_operation() -> None:
    place = 1
    while True:
        clock = ManualClock(_START_MS)
        timer = Timer(clock)
        purgatory = DelayedOperationPurgatory("test", timer)
        operations = [Operation(delay_ms) for delay_ms in _DELAYS_MS]
        for number, operation in enumerate(operations):
            purgatory.try_complete_else_watch(operation, [number % 3])
        is_reached = interrupted(place, timer, clock)
        timer.run_once(clock.now_ms)
        counts = [operation.answer_count for operation in operations]
        assert min(counts) >= 1, (place, counts)
        assert sum(counts) <= len(counts) + 1, (place, counts)
        if not is_reached:
            break
        place += 1
    assert place > 100
