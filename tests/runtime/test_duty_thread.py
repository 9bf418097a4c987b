"""A thread for one duty, which exists only while the duty has work."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import pytest

from embedlog.runtime import Clock, Scheduler
from embedlog.runtime.duty_thread import DutyThread
from embedlog.testing import sim_runtime

WAIT_S = 20
NAME = "test-duty"


class Duty:
    """Run the given steps, one for each call, and report each run in `ran`."""

    def __init__(self, *steps: Callable[[], int | None]) -> None:
        self.steps = [*steps]
        self.ran: queue.Queue[str] = queue.Queue()

    def run_once(self, now_ms: int) -> int | None:
        step = self.steps.pop(0) if self.steps else lambda: None
        try:
            return step()
        finally:
            self.ran.put(threading.current_thread().name)


def thread_for(duty: Duty, idle_ms: int = 1) -> DutyThread:
    clock = Clock()
    return DutyThread(duty, NAME, clock, Scheduler(clock).start_thread, idle_ms=idle_ms)


def until_ended() -> None:
    for thread in threading.enumerate():
        if thread.name == NAME:
            thread.join(WAIT_S)
            assert not thread.is_alive()


def test_the_thread_runs_the_duty_until_it_has_no_work_and_ends() -> None:
    duty = Duty(lambda: 0, lambda: 1)
    thread = thread_for(duty)
    assert not [each for each in threading.enumerate() if each.name == NAME]
    for _ in range(2):
        thread.notify()
        assert duty.ran.get(timeout=WAIT_S) == NAME
        until_ended()
    assert duty.ran.qsize() >= 2


def test_a_notify_is_never_lost() -> None:
    duty = Duty()
    thread = thread_for(duty)
    for _ in range(300):
        thread.notify()
        assert duty.ran.get(timeout=WAIT_S) == NAME
        while not duty.ran.empty():
            duty.ran.get()
    thread.close()


def test_an_error_of_the_duty_is_logged_and_it_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: queue.Queue[object] = queue.Queue()
    monkeypatch.setattr(threading, "excepthook", lambda hooked: reported.put(hooked.exc_value))

    def fail() -> int:
        raise ValueError("mistake")

    duty = Duty(fail, lambda: None)
    thread = thread_for(duty, idle_ms=10_000)
    thread.notify()
    assert str(reported.get(timeout=WAIT_S)) == "mistake"
    for _ in range(2):
        duty.ran.get(timeout=WAIT_S)
    thread.close()
    until_ended()


def test_close_waits_for_the_duty_and_ends_it() -> None:
    inside, goes_on = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        goes_on.wait(WAIT_S)

    duty = Duty(wait)
    thread = thread_for(duty, idle_ms=10_000)
    thread.notify()
    assert inside.wait(WAIT_S)
    threading.Timer(0.01, goes_on.set).start()
    thread.close()
    assert not [each for each in threading.enumerate() if each.name == NAME]
    thread.notify()
    assert duty.ran.qsize() == 1


def test_a_duty_may_close_its_own_thread() -> None:
    threads: list[DutyThread] = []
    duty = Duty(lambda: threads.pop().close())
    threads.append(thread_for(duty))
    threads[0].notify()
    duty.ran.get(timeout=WAIT_S)
    until_ended()


def test_in_a_simulation_the_scheduler_runs_the_duty() -> None:
    runtime = sim_runtime()
    duty = Duty(lambda: 5)
    thread = runtime.scheduler.duty_thread(duty, NAME)
    runtime.scheduler.run_for(10)
    assert duty.ran.qsize() == 2
    thread.notify()
    runtime.scheduler.run_for(0)
    assert duty.ran.qsize() == 3
    thread.close()
    runtime.scheduler.run_for(10)
    assert duty.ran.qsize() == 3
