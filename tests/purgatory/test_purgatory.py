"""The purgatory: watch lists by key, purge, cancellation, and races between threads."""

from __future__ import annotations

import random
import threading

import pytest

from embedlog.purgatory.delayed_operation import DelayedOperation
from embedlog.purgatory.purgatory import DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer
from tests.purgatory.manual_clock import ManualClock, advance


class Operation(DelayedOperation):
    def __init__(self, name: object = "", delay_ms: int = 1000, log: list | None = None) -> None:
        super().__init__(delay_ms)
        self.name = name
        self.log = [] if log is None else log
        self.can_complete = False

    def try_complete(self) -> bool:
        return self.can_complete and self.complete_held()

    def on_complete(self) -> None:
        self.log.append(self.name)

    def on_expiration(self) -> None:
        self.log.append(f"{self.name} expired")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000)


def purgatory(clock: ManualClock, purge_interval: int = 1000) -> DelayedOperationPurgatory:
    return DelayedOperationPurgatory("Test", Timer(clock), purge_interval)


def test_what_can_complete_at_once_is_not_watched(clock):
    waiting = purgatory(clock)
    operation = Operation()
    operation.can_complete = True
    assert waiting.try_complete_else_watch(operation, ["a"])
    assert (waiting.watched, waiting.delayed) == (0, 0)
    assert operation.log == [""]


def test_an_operation_waits_under_all_its_keys(clock):
    waiting = purgatory(clock)
    operation = Operation()
    assert not waiting.try_complete_else_watch(operation, ["a", ("b", 1)])
    assert (waiting.watched, waiting.delayed) == (2, 1)
    assert waiting.check_and_complete("a") == 0
    assert waiting.check_and_complete("unknown") == 0
    operation.can_complete = True
    assert waiting.check_and_complete(("b", 1)) == 1
    assert waiting.check_and_complete("a") == 0
    assert (waiting.watched, waiting.delayed) == (0, 0)
    assert operation.log == [""]


def test_operations_are_tried_first_come_first(clock):
    waiting = purgatory(clock)
    log: list = []
    operations = [Operation(number, log=log) for number in range(5)]
    for operation in operations:
        waiting.try_complete_else_watch(operation, ["key"])
    for operation in operations[::2]:
        operation.can_complete = True
    assert waiting.check_and_complete("key") == 3
    assert log == [0, 2, 4]
    assert waiting.watched == 2
    for operation in operations:
        operation.can_complete = True
    assert waiting.check_and_complete("key") == 2
    assert log == [0, 2, 4, 1, 3]


def test_an_operation_expires_and_leaves_its_lists_at_the_next_check(clock):
    waiting = purgatory(clock)
    operation = Operation("op", 50)
    waiting.try_complete_else_watch(operation, ["a"])
    assert advance(clock, waiting.timer, 1_050) == 1
    assert operation.log == ["op", "op expired"]
    assert (waiting.watched, waiting.delayed) == (1, 0)
    assert waiting.check_and_complete("a") == 0
    assert waiting.watched == 0


def test_no_delay_expires_in_the_call(clock):
    waiting = purgatory(clock)
    operation = Operation("op", 0)
    assert not waiting.try_complete_else_watch(operation, ["a"])
    assert operation.log == ["op", "op expired"]


def test_what_was_tried_just_now_is_tried_once_more_when_it_is_listed(clock):
    waiting = purgatory(clock)
    operation = Operation()
    tried_with: list[int] = []

    def try_complete() -> bool:
        tried_with.append(waiting.watched)
        return False

    operation.try_complete = try_complete
    assert not waiting.watch(operation, ["a", "b"])
    assert (tried_with, waiting.delayed) == ([2], 1)


def test_a_condition_that_came_true_between_try_and_watch_is_seen(clock):
    waiting = purgatory(clock)

    class LateCondition(Operation):
        def try_complete(self) -> bool:
            self.log.append("try")
            # True once it is listed: the event came before that.
            return waiting.watched > 0 and self.complete_held()

    operation = LateCondition("op")
    assert waiting.try_complete_else_watch(operation, ["a"])
    assert operation.log == ["try", "try", "op"]
    assert waiting.delayed == 0


def test_an_operation_that_ends_just_before_its_timer_begins_does_not_stay_in_the_timer():
    ended: list[bool] = []

    class Meanwhile(ManualClock):
        def monotonic_ms(self) -> int:
            # The timer reads the time first. The moment stands for another thread.
            if operation.is_listed and not ended:
                ended.append(operation.force_complete())
            return super().monotonic_ms()

    class Listed(Operation):
        is_listed = False

        def try_complete(self) -> bool:
            self.is_listed = waiting.watched > 0
            return False

    operation = Listed("op")
    waiting = purgatory(Meanwhile(1_000))
    assert not waiting.try_complete_else_watch(operation, ["a"])
    assert ended == [True]
    assert waiting.delayed == 0
    assert operation.log == ["op"]


def test_an_operation_may_wait_for_another_from_its_own_completion(clock):
    waiting = purgatory(clock)
    second = Operation("second")

    class StartsAnother(Operation):
        def on_complete(self) -> None:
            super().on_complete()
            waiting.try_complete_else_watch(second, ["a"])

    first = StartsAnother("first")
    waiting.try_complete_else_watch(first, ["a"])
    first.can_complete = True
    assert waiting.check_and_complete("a") == 1
    assert not second.is_completed
    assert (waiting.watched, waiting.delayed) == (1, 1)


def test_keys_are_required(clock):
    with pytest.raises(AssertionError):
        purgatory(clock).try_complete_else_watch(Operation(), [])


def test_cancel_for_key_returns_the_operations_uncompleted_and_without_a_timer(clock):
    waiting = purgatory(clock)
    operations = [Operation(number) for number in range(3)]
    for operation in operations:
        waiting.try_complete_else_watch(operation, ["a"])
    other = Operation("other")
    waiting.try_complete_else_watch(other, ["b"])
    assert waiting.cancel_for_key("a") == operations
    assert waiting.cancel_for_key("a") == []
    assert (waiting.watched, waiting.delayed) == (1, 1)
    advance(clock, waiting.timer, 5_000)
    assert [operation.is_completed for operation in operations] == [False] * 3
    assert other.is_completed


def test_another_key_still_completes_a_cancelled_operation(clock):
    waiting = purgatory(clock)
    operation = Operation()
    waiting.try_complete_else_watch(operation, ["a", "b"])
    waiting.cancel_for_key("a")
    operation.can_complete = True
    assert waiting.check_and_complete("b") == 1


def test_completed_operations_are_purged_when_enough_have_come_together(clock):
    waiting = purgatory(clock, purge_interval=10)
    for number in range(1000):
        operation = Operation(number)
        waiting.try_complete_else_watch(operation, ["a", "b", number])
        operation.force_complete()
        assert waiting.watched <= 3 * (10 + 2)
    assert waiting.delayed == 0


def test_waiting_operations_are_never_purged(clock):
    waiting = purgatory(clock, purge_interval=10)
    operations = [Operation(number) for number in range(100)]
    for operation in operations:
        waiting.try_complete_else_watch(operation, ["a"])
    assert (waiting.watched, waiting.delayed) == (100, 100)
    for operation in operations[:60]:
        operation.force_complete()
    waiting.try_complete_else_watch(Operation(), ["a"])
    assert waiting.purge() in (0, 60)
    assert (waiting.watched, waiting.delayed) == (41, 41)


def test_purge_says_how_many_entries_went(clock):
    waiting = purgatory(clock)
    operation = Operation()
    waiting.try_complete_else_watch(operation, ["a", "b"])
    waiting.try_complete_else_watch(Operation(), ["b"])
    operation.force_complete()
    assert waiting.purge() == 2
    assert waiting.purge() == 0
    assert waiting.watched == 1


@pytest.mark.slow
def test_threads_that_complete_expire_watch_and_cancel_complete_each_operation_once(clock):
    """Producers, checkers and a timer race; every operation ends exactly once."""
    waiting = purgatory(clock, purge_interval=20)
    completions: list[int] = []
    expirations: list[int] = []
    ready: set[int] = set()
    keys = ["a", "b", "c"]

    class Racing(DelayedOperation):
        def __init__(self, number: int, delay_ms: int) -> None:
            super().__init__(delay_ms)
            self.number = number

        def try_complete(self) -> bool:
            return self.number in ready and self.complete_held()

        def on_complete(self) -> None:
            completions.append(self.number)
            waiting.check_and_complete(keys[self.number % 3])

        def on_expiration(self) -> None:
            expirations.append(self.number)

    count, producer_count = 400, 3
    watching = threading.Semaphore(0)

    def produce(producer: int) -> None:
        chance = random.Random(producer)
        for number in range(producer * count, (producer + 1) * count):
            operation = Racing(number, chance.choice([0, 1, 3, 30, 1000]))
            if chance.random() < 0.2:
                ready.add(number)
            waiting.try_complete_else_watch(operation, chance.sample(keys, chance.randint(1, 3)))
            if chance.random() < 0.3:
                ready.add(number)
                waiting.check_and_complete(chance.choice(keys))
            if chance.random() < 0.1:
                operation.force_complete()
        watching.release()

    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            clock.now_ms += 1
            waiting.timer.run_once(clock.now_ms)

    def check() -> None:
        while not stop.is_set():
            for key in keys:
                waiting.check_and_complete(key)

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(producer_count)]
    threads += [threading.Thread(target=target) for target in (tick, check)]
    for thread in threads:
        thread.start()
    for _ in range(producer_count):
        assert watching.acquire(timeout=60)
    stop.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    clock.now_ms += 10_000
    waiting.timer.run_once(clock.now_ms)
    assert sorted(completions) == list(range(count * producer_count))
    assert len(expirations) == len(set(expirations))
    assert waiting.delayed == 0
    waiting.purge()
    assert waiting.watched == 0
