"""Waiting drives duties, wakes promptly, and never spins."""

from __future__ import annotations

import gc
import weakref

import pytest

from embedlog.runtime import Clock, Scheduler, real_runtime
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime


class Duty:
    """Return the given delays one after the other, and record each call."""

    def __init__(self, *delays: int | None) -> None:
        self.delays = list(delays)
        self.calls: list[int] = []

    def run_once(self, now_ms: int) -> int | None:
        self.calls.append(now_ms)
        return self.delays.pop(0) if self.delays else None


class Completer:
    """Completes a pending after `delay_ms`."""

    def __init__(self, pending: Pending[int], delay_ms: int) -> None:
        self.pending = pending
        self.due = delay_ms
        self.start: int | None = None

    def run_once(self, now_ms: int) -> int | None:
        if self.start is None:
            self.start = now_ms
        if now_ms - self.start < self.due:
            return self.start + self.due - now_ms
        self.pending.complete(1)
        return None


def test_run_due_runs_due_duties_and_returns_the_delay_to_the_next() -> None:
    scheduler = Scheduler(Clock())
    early, late = Duty(10, 10), Duty(25)
    scheduler.add(early)
    scheduler.add(late)
    assert scheduler.run_due(1000) == 10
    assert scheduler.run_due(1004) == 6
    assert scheduler.run_due(1010) == 10
    assert early.calls == [1000, 1010]
    assert late.calls == [1000]
    assert scheduler.run_due(1025) is None
    assert late.calls == [1000, 1025]


def test_an_idle_duty_runs_again_only_after_notify() -> None:
    scheduler = Scheduler(Clock())
    duty = Duty(None, None)
    scheduler.add(duty)
    assert scheduler.run_due(0) is None
    assert scheduler.run_due(10**9) is None
    scheduler.notify(duty)
    assert scheduler.run_due(10**9) is None
    assert duty.calls == [0, 10**9]


def test_a_notify_is_for_one_duty() -> None:
    scheduler = Scheduler(Clock())
    one, other, gone = Duty(None, None), Duty(50, 50), Duty(None)
    for duty in (one, other, gone):
        scheduler.add(duty)
    scheduler.run_due(0)
    scheduler.notify(one)
    scheduler.notify(gone)
    scheduler.remove(gone)
    assert scheduler.run_due(10) == 40
    assert (one.calls, other.calls, gone.calls) == ([0, 10], [0], [0])


@pytest.mark.slow
def test_a_removed_duty_is_garbage_collected() -> None:
    """This holds even if nobody ever waits: a program may make and close many clients."""
    scheduler = Scheduler(Clock())
    duty = Duty(None)
    scheduler.add(duty)
    scheduler.remove(duty)
    known = weakref.ref(duty)
    del duty
    gc.collect()
    assert known() is None


def test_a_notified_duty_runs_after_another_has_failed() -> None:
    class Failing(Duty):
        def run_once(self, now_ms: int) -> int | None:
            raise ZeroDivisionError

    scheduler = Scheduler(Clock())
    waiting = Duty(None, None)
    for duty in (Failing(), waiting, Failing()):
        scheduler.add(duty)
    assert scheduler.run_due(0) == 1000
    assert waiting.calls == [0]


def test_a_notify_during_the_run_is_not_lost() -> None:
    scheduler = Scheduler(Clock())

    class Notifier(Duty):
        def run_once(self, now_ms: int) -> int | None:
            if not self.calls:
                scheduler.notify(self)
            return super().run_once(now_ms)

    duty = Notifier(None, None)
    scheduler.add(duty)
    assert scheduler.run_due(0) == 0
    assert scheduler.run_due(0) is None
    assert len(duty.calls) == 2


def test_a_removed_duty_does_not_run() -> None:
    scheduler = Scheduler(Clock())
    duty = Duty(0)
    scheduler.add(duty)
    scheduler.remove(duty)
    scheduler.remove(duty)
    assert scheduler.run_due(0) is None
    assert duty.calls == []


def test_a_duty_that_raises_is_logged_and_tried_again_a_second_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scheduler = Scheduler(Clock())
    healthy = Duty(5, 5)

    class Broken:
        def run_once(self, now_ms: int) -> int | None:
            raise ZeroDivisionError(now_ms)

    scheduler.add(healthy)
    scheduler.add(Broken())
    assert scheduler.run_due(0) == 5
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("embedlog.runtime", "ERROR")
    assert "Broken" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    assert scheduler.run_due(5) == 5
    assert len(caplog.records) == 1
    scheduler.run_due(1000)
    assert len(caplog.records) == 2


def test_a_simulation_shows_the_error_of_a_duty() -> None:
    class Broken:
        def run_once(self, now_ms: int) -> int | None:
            raise ZeroDivisionError(now_ms)

    scheduler = sim_runtime().scheduler
    scheduler.add(Broken())
    with pytest.raises(ZeroDivisionError):
        scheduler.run_for(1)


def test_ctrl_c_inside_a_duty_reaches_the_driving_thread() -> None:
    class Interrupted:
        def run_once(self, now_ms: int) -> int | None:
            raise KeyboardInterrupt

    scheduler = Scheduler(Clock())
    scheduler.add(Interrupted())
    with pytest.raises(KeyboardInterrupt):
        scheduler.run_due(0)
    assert scheduler.run_due(0) == 1000


def test_calls_drive_due_duties_unless_another_thread_drives() -> None:
    runtime = sim_runtime()
    scheduler, clock = runtime.scheduler, runtime.clock
    duty = Duty(10, None, None)
    scheduler.add(duty)
    assert scheduler.now_ns() >= scheduler.next_call_ns
    scheduler.drive()
    assert len(duty.calls) == 1
    assert scheduler.now_ns() < scheduler.next_call_ns
    clock.advance(10)
    assert scheduler.now_ns() >= scheduler.next_call_ns
    scheduler.drive()
    assert len(duty.calls) == 2
    clock.advance(1 << 40)
    assert scheduler.now_ns() < scheduler.next_call_ns

    resign = scheduler.on_notify(lambda: None)
    scheduler.notify(duty)
    assert scheduler.now_ns() < scheduler.next_call_ns
    scheduler.drive()
    assert len(duty.calls) == 2
    resign()
    assert scheduler.now_ns() >= scheduler.next_call_ns
    scheduler.drive()
    assert len(duty.calls) == 3


def test_calls_leave_a_patient_duty_for_a_while() -> None:
    runtime = sim_runtime()
    scheduler, clock = runtime.scheduler, runtime.clock
    duty = Duty(None, None)
    scheduler.add(duty)
    scheduler.drive()
    scheduler.notify(duty, 100)
    assert scheduler.now_ns() < scheduler.next_call_ns
    hasty = Duty(None)
    scheduler.add(hasty)
    scheduler.drive()
    assert (len(duty.calls), len(hasty.calls)) == (1, 1)
    assert scheduler.now_ns() < scheduler.next_call_ns
    clock.advance(100)
    assert scheduler.now_ns() >= scheduler.next_call_ns
    scheduler.drive()
    assert len(duty.calls) == 2
    # A thread that waits, or drives for others, runs it without this delay.
    scheduler.notify(duty, 100)
    scheduler.run_due(clock.monotonic_ms())
    assert len(duty.calls) == 3


def test_an_exclusive_step_waits_for_the_running_duty() -> None:
    scheduler = Scheduler(Clock())
    ran: list[str] = []

    class Nested:
        def run_once(self, now_ms: int) -> int | None:
            scheduler.exclusively(lambda: ran.append("step of a duty"))
            return None

    scheduler.add(Nested())
    scheduler.run_due(0)
    duty = Duty(None)
    scheduler.add(duty)
    assert scheduler.exclusively(lambda: scheduler.run_due(0)) == 1
    assert duty.calls == []
    assert ran == ["step of a duty"]


def test_waiting_drives_the_duty_that_completes_the_wait() -> None:
    scheduler = real_runtime().scheduler
    pending: Pending[int] = Pending()
    scheduler.add(Completer(pending, 20))
    assert scheduler.wait(pending, 10_000)
    assert pending.result() == 1


def test_a_wait_ends_when_its_time_is_over() -> None:
    scheduler = real_runtime().scheduler
    assert not scheduler.wait(Pending(), 5)
    done: Pending[int] = Pending()
    done.complete(3)
    assert scheduler.wait(done, 0)


def test_another_thread_ends_a_wait_without_timeout() -> None:
    scheduler = real_runtime().scheduler
    pending: Pending[int] = Pending()
    thread = scheduler.start_thread(lambda: pending.complete(1) and None, "completer")
    assert scheduler.wait(pending, None)
    assert thread.join(10_000)


def test_a_duty_added_by_another_thread_reaches_the_parked_driver() -> None:
    scheduler = real_runtime().scheduler
    pending: Pending[int] = Pending()
    thread = scheduler.start_thread(lambda: scheduler.add(Completer(pending, 0)), "adder")
    assert scheduler.wait(pending, None)
    assert thread.join(10_000)


def test_waiting_threads_hand_the_driving_on() -> None:
    runtime = real_runtime()
    scheduler = runtime.scheduler
    count = 6
    answers: list[Pending[int]] = [Pending() for _ in range(count)]
    for number, answer in enumerate(answers):
        scheduler.add(Completer(answer, 5 * number))
    finished: list[Pending[int]] = [Pending() for _ in range(count)]

    def waiter(number: int) -> None:
        finished[number].complete(scheduler.wait(answers[number], 60_000))

    threads = [
        scheduler.start_thread(lambda number=number: waiter(number), f"waiter-{number}")
        for number in range(count)
    ]
    assert all(thread.join(30_000) for thread in threads)
    assert all(pending.result() for pending in finished)


def test_with_a_listener_only_the_listener_drives() -> None:
    scheduler = real_runtime().scheduler
    wakes: list[int] = []
    duty = Duty(None, None, None)
    scheduler.add(duty)
    resign = scheduler.on_notify(lambda: wakes.append(1))
    assert not scheduler.wait(Pending(), 5)
    assert duty.calls == []
    scheduler.notify(duty)
    assert len(wakes) >= 2
    scheduler.run_due(0)
    assert len(duty.calls) == 1
    resign()
    scheduler.notify(duty)
    assert not scheduler.wait(Pending(), 1)
    assert len(duty.calls) == 2


def test_simulated_waiting_takes_simulated_time_only() -> None:
    runtime = sim_runtime(seed=1)
    pending: Pending[int] = Pending()
    runtime.scheduler.add(Completer(pending, 86_400_000))
    assert not runtime.scheduler.wait(pending, 1000)
    assert runtime.clock.monotonic_ms() == 1000
    assert runtime.scheduler.wait(pending, None)
    assert runtime.clock.monotonic_ms() == 86_400_000


def test_a_simulated_wait_that_nothing_can_end_is_a_failure() -> None:
    runtime = sim_runtime(seed=1)
    with pytest.raises(AssertionError, match="for ever"):
        runtime.scheduler.wait(Pending(), None)


def test_one_seed_gives_one_order() -> None:
    def order(seed: int) -> list[int]:
        runtime = sim_runtime(seed)
        seen: list[int] = []

        class Noter:
            def __init__(self, number: int) -> None:
                self.number = number

            def run_once(self, now_ms: int) -> int | None:
                seen.append(self.number)
                return 10

        for number in range(5):
            runtime.scheduler.add(Noter(number))
        runtime.scheduler.run_for(100)
        return seen

    assert order(3) == order(3)
    assert order(3) != order(4)
    assert sorted(order(3)[:5]) == [0, 1, 2, 3, 4]


def test_run_for_runs_everything_due_until_the_end() -> None:
    runtime = sim_runtime()
    duty = Duty(*[10] * 20)
    runtime.scheduler.add(duty)
    runtime.scheduler.run_for(100)
    assert duty.calls == list(range(0, 101, 10))
    assert runtime.clock.monotonic_ms() == 100


def test_waiting_works_when_the_clock_advances_at_each_look() -> None:
    class Hurried(Clock):
        """Each look at the clock advances it by a millisecond."""

        now_ms = 0

        def monotonic_ms(self) -> int:
            self.now_ms += 1
            return self.now_ms

    scheduler = Scheduler(Hurried())
    scheduler.add(Duty(*[0] * 5))
    pending: Pending[int] = Pending()
    assert not scheduler.wait(pending, 20)
