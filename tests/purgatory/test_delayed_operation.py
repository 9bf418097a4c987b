"""Delayed operations end exactly once, by the first thread that can."""

from __future__ import annotations

import threading

import pytest

from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.purgatory.timer import Timer
from embedlog.runtime.lock_order import held_here
from tests.purgatory.manual_clock import ManualClock, advance


class Operation(DelayedOperation):
    """Completes when a test allows it; records its calls."""

    def __init__(self, delay_ms: int = 1000, *, can_complete: bool = False) -> None:
        super().__init__(delay_ms)
        self.can_complete = can_complete
        self.events: list[str] = []

    def try_complete(self) -> bool:
        self.events.append("try")
        return self.can_complete and self.complete_held()

    def on_complete(self) -> None:
        assert self.is_completed
        self.events.append("complete")

    def on_expiration(self) -> None:
        self.events.append("expire")


def test_only_the_first_force_complete_counts():
    operation = Operation()
    assert not operation.is_completed
    assert operation.force_complete()
    assert not operation.force_complete()
    assert operation.events == ["complete"]


def test_a_completed_operation_is_not_tried():
    operation = Operation(can_complete=True)
    assert operation.safe_try_complete()
    assert not operation.safe_try_complete()
    assert operation.events == ["try", "complete"]


def test_on_complete_comes_before_on_expiration():
    clock = ManualClock()
    timer = Timer(clock)
    operation = Operation(10)
    timer.add(operation)
    advance(clock, timer, 10)
    assert operation.events == ["complete", "expire"]
    assert not operation.force_complete()


def test_completion_cancels_the_timer():
    clock = ManualClock()
    timer = Timer(clock)
    operation = Operation(10)
    timer.add(operation)
    operation.force_complete()
    assert timer.size == 0
    advance(clock, timer, 10)
    assert operation.events == ["complete"]


def test_an_operation_completed_before_it_expires_does_not_expire():
    operation = Operation()
    operation.force_complete()
    operation.run()
    assert operation.events == ["complete"]


def test_nobody_tries_while_on_complete_runs():
    entered, leave = threading.Event(), threading.Event()

    class Slow(Operation):
        def on_complete(self) -> None:
            entered.set()
            assert leave.wait(10)
            super().on_complete()

    operation = Slow(can_complete=True)
    thread = threading.Thread(target=operation.force_complete)
    thread.start()
    assert entered.wait(10)
    assert not operation.safe_try_complete()
    assert not operation.force_complete()
    leave.set()
    thread.join()
    assert operation.events == ["complete"]


def test_two_operations_that_try_each_other_on_completion_do_not_deadlock():
    barrier = threading.Barrier(2, timeout=10)

    class Entangled(Operation):
        other: Entangled

        def try_complete(self) -> bool:
            barrier.wait()  # each thread holds the lock of its own operation
            return self.complete_held()

        def on_complete(self) -> None:
            super().on_complete()
            self.other.safe_try_complete()

    for _ in range(200):
        first, second = Entangled(), Entangled()
        first.other, second.other = second, first
        threads = [threading.Thread(target=o.safe_try_complete) for o in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()
        assert [first.events, second.events] == [["complete"], ["complete"]]


def test_an_operation_ends_without_its_lock():
    """Its answer may take any lock, such as the lock under which another thread tries it."""

    class Answering(Operation):
        def on_complete(self) -> None:
            assert not held_here()
            super().on_complete()

    operation = Answering(can_complete=True)
    assert operation.safe_try_complete()
    assert operation.events == ["try", "complete"]


@pytest.mark.parametrize("is_marked", [False, True])
def test_a_try_that_ctrl_c_ends_answers_if_it_had_completed(is_marked: bool):
    class Interrupted(Operation):
        def try_complete(self) -> bool:
            if is_marked:
                self.complete_held()
            raise KeyboardInterrupt

    operation = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        operation.safe_try_complete()
    assert operation.events == ["complete"] * is_marked
    assert operation.is_completed == is_marked
