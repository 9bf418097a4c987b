"""Driving goes on when threads come and go, and runs the right duties."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from embedlog.runtime import Clock, Scheduler, real_runtime
from embedlog.runtime.pending import Pending
from embedlog.runtime.threads import Parked, Waiting
from embedlog.testing import sim_runtime


class Duty:
    """Calls `step` in each run, and notes its runs."""

    def __init__(self, step: Callable[[], int | None] = lambda: None) -> None:
        self.step = step
        self.ran = threading.Event()
        self.count = 0

    def run_once(self, _now_ms: int) -> int | None:
        self.count += 1
        self.ran.set()
        return self.step()


class WallClock(Clock):
    """A clock whose wall time a test sets."""

    now = 1_000

    def wall_ms(self) -> int:
        return self.now


def fail() -> None:
    raise ZeroDivisionError


def test_a_duty_that_removes_itself_in_its_run_is_gone() -> None:
    scheduler = Scheduler(Clock())
    duty = Duty()

    def leave() -> int:
        scheduler.remove(duty)
        return 5

    duty.step = leave
    scheduler.add(duty)
    assert scheduler.run_due(0) is None
    assert scheduler.run_due(10) is None
    assert duty.count == 1


def test_a_notify_does_not_bring_a_removed_duty_back() -> None:
    scheduler = Scheduler(Clock())
    duty = Duty()
    scheduler.add(duty)
    scheduler.remove(duty)
    scheduler.notify(duty)
    assert scheduler.run_due(0) is None
    assert duty.count == 0


def test_a_failure_lasts_from_its_first_run_to_the_next_success() -> None:
    clock = WallClock()
    scheduler = Scheduler(clock)
    duty = Duty(fail)
    scheduler.add(duty)
    for now_ms in (0, 1_000):
        scheduler.run_due(now_ms)
        assert scheduler.failing[duty][0] == 1_000
        clock.now += 500
    duty.step = lambda: None
    scheduler.run_due(2_000)
    assert scheduler.failing == {}


def test_a_removed_duty_does_not_fail() -> None:
    scheduler = Scheduler(Clock())
    duty = Duty(fail)
    scheduler.add(duty)
    scheduler.run_due(0)
    assert duty in scheduler.failing
    scheduler.remove(duty)
    assert scheduler.failing == {}


def test_patience_counts_from_the_first_notify() -> None:
    runtime = sim_runtime()
    scheduler, clock = runtime.scheduler, runtime.clock
    duty = Duty()
    scheduler.add(duty)
    scheduler.drive()
    scheduler.notify(duty, 100)
    clock.advance(60)
    scheduler.notify(duty, 100)
    clock.advance(40)
    scheduler.drive()
    assert duty.count == 2


def test_a_patient_notify_does_not_put_an_urgent_one_off() -> None:
    scheduler = sim_runtime().scheduler
    patient, urgent = Duty(), Duty()
    for duty in (patient, urgent):
        scheduler.add(duty)
    scheduler.drive()
    scheduler.notify(urgent)
    scheduler.notify(patient, 100)
    assert scheduler.now_ns() >= scheduler.next_call_ns


def test_a_wait_does_not_last_until_a_later_duty() -> None:
    runtime = real_runtime()
    runtime.scheduler.add(Duty(lambda: 5_000))
    begin_ms = runtime.clock.monotonic_ms()
    assert not runtime.scheduler.wait(Pending(), 5)
    assert runtime.clock.monotonic_ms() - begin_ms < 3_000


def test_a_new_duty_reaches_the_driver_that_sleeps() -> None:
    scheduler = real_runtime().scheduler
    first, second = Duty(), Duty()
    scheduler.add(first)
    pending: Pending[bool] = Pending()

    def act() -> None:
        assert first.ran.wait(10)
        scheduler.exclusively(lambda: None)  # the run of the first duty has ended
        scheduler.add(second)
        pending.complete(second.ran.wait(3))

    thread = scheduler.start_thread(act, "adder")
    assert scheduler.wait(pending, 20_000)
    assert thread.join(10_000)
    assert pending.result()


def test_a_waiting_thread_drives_once_the_listener_is_gone() -> None:
    scheduler = real_runtime().scheduler
    resign = scheduler.on_notify(lambda: None)
    duty = Duty()
    scheduler.add(duty)
    waits = threading.Event()

    class Awaited(Pending[bool]):
        def add_callback(self, callback: Callable[[Pending[bool]], None]) -> None:
            super().add_callback(callback)
            waits.set()

    pending = Awaited()

    def act() -> None:
        assert waits.wait(10)
        resign()
        pending.complete(duty.ran.wait(3))

    thread = scheduler.start_thread(act, "listener")
    assert scheduler.wait(pending, 20_000)
    assert thread.join(10_000)
    assert pending.result()


def test_a_thread_that_may_not_drive_any_more_makes_room_for_another() -> None:
    waiting, one, other = Waiting(), Parked(), Parked()
    assert waiting.join(one, may_drive=True)
    assert not waiting.join(other, may_drive=True)
    assert not waiting.join(one, may_drive=False)
    assert waiting.join(other, may_drive=True)


def test_a_wake_before_the_sleep_ends_it() -> None:
    parked = Parked()
    parked.wake()
    begin = time.monotonic()
    parked.sleep(5_000)
    assert time.monotonic() - begin < 3


def test_the_first_outcome_of_a_pending_stays() -> None:
    pending: Pending[int] = Pending()
    told: list[int] = []
    pending.add_callback(lambda done: told.append(done.result()))
    assert pending.complete(1)
    assert not pending.complete(2)
    assert not pending.fail(ValueError())
    assert (pending.result(), pending.error(), told) == (1, None, [1])
    failed: Pending[int] = Pending()
    assert failed.fail(ValueError("first"))
    assert not failed.complete(1)
    with pytest.raises(ValueError, match="first"):
        failed.result()


def test_every_callback_of_a_pending_is_called_once_in_order() -> None:
    pending: Pending[int] = Pending()
    told: list[str] = []
    for name in ("first", "second"):
        pending.add_callback(lambda _, name=name: told.append(name))  # type: ignore[misc]
    assert told == []
    pending.complete(1)
    pending.complete(2)
    pending.add_callback(lambda _: told.append("late"))
    assert told == ["first", "second", "late"]
