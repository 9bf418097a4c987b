"""Purgatory, timer and wheel forget ended operations, and keep all others."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.purgatory.purgatory import DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer
from embedlog.purgatory.timing_wheel import GHOSTS_KEPT, TimerTask, TimingWheel
from tests.purgatory.manual_clock import ManualClock, Noted


class Operation(DelayedOperation):
    """Completes at its try number `tries_needed`, and then calls `then`."""

    def __init__(
        self, tries_needed: int = 1_000, then: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__(60_000)
        self.tries_left = tries_needed
        self.then = then

    def try_complete(self) -> bool:
        self.tries_left -= 1
        return self.tries_left <= 0 and self.complete_held()

    def on_complete(self) -> None:
        self.then()


class Task(TimerTask):
    def run(self) -> None:
        raise AssertionError("a wheel runs nothing")


def added(wheel: TimingWheel, expiration_ms: int) -> Task:
    task = Task(0)
    assert wheel.add(task, expiration_ms)
    return task


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000)


@pytest.fixture
def purgatory(clock: ManualClock) -> DelayedOperationPurgatory:
    return DelayedOperationPurgatory("Test", Timer(clock), purge_interval=10)


def test_an_end_completes_all_operations_even_if_one_lists_another(
    purgatory: DelayedOperationPurgatory,
) -> None:
    another = Operation()
    operations = [Operation(then=lambda: purgatory.watch(another, ["new"])), Operation()]
    for number, operation in enumerate(operations):
        purgatory.watch(operation, [number, "both"])
    purgatory.force_complete_all()
    assert [operation.is_completed for operation in operations] == [True, True]
    assert (purgatory.watched, purgatory.delayed) == (1, 1), "the new operation waits"


def test_an_event_does_not_try_the_operations_that_it_causes(
    purgatory: DelayedOperationPurgatory,
) -> None:
    made: list[Operation] = []

    def list_another() -> None:
        if len(made) < 5:
            made.append(Operation(3, list_another))
            purgatory.try_complete_else_watch(made[-1], ["key"])

    list_another()
    assert purgatory.check_and_complete("key") == 1
    assert [operation.is_completed for operation in made] == [True, False]


def test_an_answer_may_clean_up_the_key_whose_event_caused_it(
    purgatory: DelayedOperationPurgatory,
) -> None:
    purgatory.watch(Operation(2, purgatory.purge), ["key"])
    assert purgatory.check_and_complete("key") == 1
    assert purgatory.watched == 0


def test_a_key_without_operations_is_forgotten(purgatory: DelayedOperationPurgatory) -> None:
    class Key:
        pass

    key = Key()
    known = weakref.ref(key)
    for _ in range(2):
        purgatory.watch(Operation(3), [key])
    purgatory.check_and_complete(key)
    assert purgatory.check_and_complete(key) == 2
    del key
    gc.collect()
    assert known() is None


def test_a_purge_is_not_repeated_while_nothing_has_completed(clock: ManualClock) -> None:
    purge_count = 0

    class Counting(DelayedOperationPurgatory):
        def purge(self) -> int:
            nonlocal purge_count
            purge_count += 1
            return super().purge()

    purgatory = Counting("Test", Timer(clock), purge_interval=10)
    for number in range(12):
        operation = Operation()
        purgatory.watch(operation, [number])
        operation.force_complete()
    assert purge_count == 1
    for number in range(100):
        purgatory.watch(Operation(), [number])
    assert purge_count == 1


def test_the_timer_is_counted_once_in_an_interval_of_purges(clock: ManualClock) -> None:
    count = 0

    class Counting(Timer):
        @property
        def size(self) -> int:
            nonlocal count
            count += 1
            return super().size

    purgatory = DelayedOperationPurgatory("Test", Counting(clock), purge_interval=10)
    for number in range(100):
        purgatory.watch(Operation(), [number])
    assert count <= 10


def test_a_task_without_delay_runs_in_the_add_though_the_wheel_is_a_bit_behind(
    clock: ManualClock,
) -> None:
    log: list[object] = []
    timer = Timer(clock)
    for name, delay_ms in (("later", 100), ("now", 0)):
        clock.now_ms += 5
        timer.add(Noted(name, delay_ms, log))
    assert log == ["now"]


def test_a_task_before_the_time_that_a_run_announced_is_told() -> None:
    clock = ManualClock(1_000)
    told: list[object] = []
    timer = Timer(clock, on_earlier=told.append)
    timer.add(Noted("a", 10, []))
    timer.add(Noted("b", 5_000, []))
    clock.now_ms += 10
    timer.run_once(clock.now_ms)
    told.clear()
    timer.add(Noted("c", 100, []))
    assert told == [timer]


def test_a_rebuilt_bucket_has_each_task_once() -> None:
    wheel = TimingWheel(start_ms=0)
    task = added(wheel, 100)
    task.cancel()
    assert wheel.add(task, 100)
    for _ in range(GHOSTS_KEPT + 1):
        added(wheel, 100).cancel()
    assert wheel.size == 1
    assert wheel.advance(100) == [task]


def test_a_task_that_left_a_coarse_bucket_does_not_move_down_with_it() -> None:
    wheel = TimingWheel(start_ms=0)
    task, other = added(wheel, 1_000), added(wheel, 1_001)
    assert wheel.add(task, 50_000)
    assert wheel.advance(1_001) == [other]
    assert wheel.size == 1
    assert wheel.advance(50_000) == [task]


def test_tasks_of_one_coarse_bucket_expire_in_order_of_time() -> None:
    wheel = TimingWheel(start_ms=0)
    late, early = added(wheel, 401), added(wheel, 400)
    assert wheel.advance(401) == [early, late]


def test_an_older_time_does_not_move_the_wheel_back() -> None:
    wheel = TimingWheel(start_ms=0)
    wheel.move_time(1_000)
    wheel.move_time(500)
    assert wheel.current_time_ms == 1_000
    assert not wheel.add(Task(0), 900)


def test_a_bucket_that_was_dropped_is_made_again_for_a_new_task() -> None:
    wheel = TimingWheel(start_ms=0)
    added(wheel, 3).cancel()
    assert wheel.next_expiration_ms() is None
    task = added(wheel, 3)
    assert wheel.advance(3) == [task]
