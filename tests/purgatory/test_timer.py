"""The timer: when tasks run, in which call, and the time of its next call."""

from __future__ import annotations

import pytest

from embedlog.purgatory.timer import Timer, TimerTask
from tests.purgatory.manual_clock import ManualClock, Noted, advance


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@pytest.fixture
def log() -> list:
    return []


def test_tasks_run_in_order_of_time(clock, log):
    timer = Timer(clock)
    for delay_ms in (5, 900, 30_000, 1, 25, 400, 30_000, 8_001):
        timer.add(Noted(delay_ms, delay_ms, log))
    assert timer.size == 8
    assert advance(clock, timer, 1_000_000) == 0
    assert advance(clock, timer, 1_000_024) == 2
    assert advance(clock, timer, 1_030_000) == 6
    assert log == [1, 5, 25, 400, 900, 8_001, 30_000, 30_000]
    assert timer.size == 0


def test_the_delay_counts_from_the_add(clock, log):
    timer = Timer(clock)
    clock.now_ms += 500
    task = Noted("a", 10, log)
    timer.add(task)
    assert task.expiration_ms == 1_000_510
    assert advance(clock, timer, 1_000_509) == 0
    assert advance(clock, timer, 1_000_510) == 1


@pytest.mark.parametrize("delay_ms", [0, -1])
def test_an_expired_task_runs_in_the_add_with_no_lock_held(clock, log, delay_ms):
    timer = Timer(clock)

    class AddsAnother(TimerTask):
        def run(self) -> None:
            log.append(timer.size)
            timer.add(Noted("inner", 0, log))

    timer.add(AddsAnother(delay_ms))
    assert log == [0, "inner"]


def test_a_cancelled_task_never_runs(clock, log):
    timer = Timer(clock)
    task = Noted("a", 10, log)
    timer.add(task)
    assert task.cancel()
    assert not task.cancel()
    assert timer.size == 0
    assert advance(clock, timer, 2_000_000) == 0
    assert log == []


def test_a_task_may_add_itself_again(clock, log):
    timer = Timer(clock)

    class Periodic(TimerTask):
        def run(self) -> None:
            log.append(clock.now_ms)
            timer.add(self)

    timer.add(Periodic(10))
    for step in range(1, 31):
        advance(clock, timer, 1_000_000 + step)
    assert log == [1_000_010, 1_000_020, 1_000_030]
    assert timer.size == 1


def test_adding_again_moves_the_task(clock, log):
    timer = Timer(clock)
    task = Noted("a", 100, log)
    timer.add(task)
    clock.now_ms += 60
    timer.add(task)
    assert timer.size == 1
    assert advance(clock, timer, 1_000_159) == 0
    assert advance(clock, timer, 1_000_160) == 1


def test_run_once_says_when_to_come_back(clock, log):
    timer = Timer(clock)
    assert timer.run_once(clock.now_ms) is None
    timer.add(Noted("a", 30_000, log))
    calls = 0
    while timer.size:
        delay_ms = timer.run_once(clock.now_ms)
        if delay_ms is not None:
            assert clock.now_ms + delay_ms <= 1_030_000
            clock.now_ms += delay_ms
        calls += 1
    assert log == ["a"]
    assert clock.now_ms == 1_030_000
    # Once per level of its way down, not once per tick.
    assert calls <= 5
    assert timer.run_once(clock.now_ms) is None


def test_an_idle_timer_with_many_tasks_asks_for_nothing_before_they_are_near(clock, log):
    timer = Timer(clock)
    for number in range(10_000):
        timer.add(Noted(number, 3_600_000 + number, log))
    assert timer.run_once(clock.now_ms) > 1_000_000


def test_on_earlier_is_called_when_a_task_precedes_the_announced_time(clock, log):
    timer = Timer(clock, on_earlier=lambda _: log.append("earlier"))
    timer.add(Noted("a", 5_000, log))
    assert log == ["earlier"]
    timer.run_once(clock.now_ms)
    timer.add(Noted("b", 5_000, log))
    timer.add(Noted("c", 9_000, log))
    assert log == ["earlier"]
    timer.add(Noted("d", 100, log))
    timer.add(Noted("e", 110, log))
    assert log == ["earlier", "earlier"]
    timer.run_once(clock.now_ms + 10_000)
    timer.add(Noted("f", 100_000, log))
    assert log[-1] == "earlier"


def test_on_earlier_is_called_with_no_lock_held(clock, log):
    timer = Timer(clock)
    timer.on_earlier = lambda given: log.append((given, timer.size))
    timer.add(Noted("a", 50, log))
    assert log == [(timer, 1)]


def test_tasks_after_one_that_raises_run_at_the_next_call(clock, log):
    timer = Timer(clock)

    class Fails(TimerTask):
        def run(self) -> None:
            raise ValueError("on purpose")

    timer.add(Noted("a", 1, log))
    timer.add(Fails(2))
    timer.add(Noted("b", 3, log))
    timer.add(Noted("c", 50, log))
    with pytest.raises(ValueError, match="on purpose"):
        timer.run_once(1_000_010)
    assert log == ["a"]
    assert timer.size == 2
    assert timer.next_expiration_ms() <= 1_000_010
    assert advance(clock, timer, 1_000_011) == 1
    assert log == ["a", "b"]
    assert advance(clock, timer, 1_000_050) == 1


def test_a_timer_that_slept_for_days_places_a_new_task_well(clock, log):
    timer = Timer(clock)
    clock.now_ms += 5 * 86_400_000 + 7
    task = Noted("a", 15, log)
    timer.add(task)
    assert timer.next_expiration_ms() == task.expiration_ms
