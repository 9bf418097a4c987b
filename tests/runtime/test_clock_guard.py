"""The wall clock is trusted while it advances evenly, and again some time after a jump."""

from __future__ import annotations

import logging

import pytest

from embedlog.runtime.clock import Clock
from embedlog.runtime.clock_guard import DRIFT_MAX_MS, SETTLED_AFTER_MS, ClockGuard
from embedlog.testing import SimClock

MINUTE_MS = 60_000
DAY_MS = 86_400_000


def jump(clock: SimClock, delay_ms: int) -> None:
    clock.set_wall(clock.wall_ms() + delay_ms)


@pytest.fixture
def clock() -> SimClock:
    return SimClock()


@pytest.fixture
def guard(clock: SimClock) -> ClockGuard:
    return ClockGuard(clock)


def test_passing_time_is_no_jump(clock: SimClock, guard: ClockGuard) -> None:
    for _ in range(10):
        clock.advance(30 * DAY_MS)
        assert guard.allows_deletion()
    clock.suspend(3 * DAY_MS)
    assert guard.allows_deletion()
    jump(clock, DRIFT_MAX_MS)
    assert guard.allows_deletion()
    assert not guard.is_paused


@pytest.mark.parametrize("by_ms", [8 * DAY_MS, -8 * DAY_MS, DRIFT_MAX_MS + 1])
def test_a_jump_pauses_until_the_clock_is_back(
    by_ms: int, clock: SimClock, guard: ClockGuard
) -> None:
    jump(clock, by_ms)
    assert not guard.allows_deletion()
    assert guard.is_paused
    assert guard.paused_since_ms == clock.wall_ms()
    assert f"jumped by {by_ms // 1000} s" in guard.reason
    clock.advance(10 * MINUTE_MS)
    assert not guard.allows_deletion()
    jump(clock, -by_ms)
    assert guard.allows_deletion()
    assert not guard.is_paused


def test_a_clock_that_runs_evenly_after_a_jump_is_trusted_again(
    clock: SimClock, guard: ClockGuard, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    jump(clock, 8 * DAY_MS)
    waited_ms = 0
    while not guard.allows_deletion():
        clock.advance(MINUTE_MS)
        waited_ms += MINUTE_MS
    assert waited_ms == SETTLED_AFTER_MS
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    jump(clock, -8 * DAY_MS)  # the time before the first jump is now a jump as well
    assert not guard.allows_deletion()


def test_another_jump_restarts_the_wait(clock: SimClock, guard: ClockGuard) -> None:
    jump(clock, 8 * DAY_MS)
    assert not guard.allows_deletion()
    since_ms = guard.paused_since_ms
    clock.advance(SETTLED_AFTER_MS - MINUTE_MS)
    jump(clock, DAY_MS)
    assert not guard.allows_deletion()
    clock.advance(SETTLED_AFTER_MS - MINUTE_MS)
    assert not guard.allows_deletion()
    assert guard.paused_since_ms == since_ms
    clock.advance(MINUTE_MS)
    assert guard.allows_deletion()


def test_a_clock_that_runs_too_fast_is_not_trusted(clock: SimClock, guard: ClockGuard) -> None:
    for _ in range(1000):
        clock.advance(MINUTE_MS)
        jump(clock, MINUTE_MS)
        allowed = guard.allows_deletion()
    assert not allowed


def test_elapsed_time_of_the_real_clock_does_not_fall() -> None:
    clock = Clock()
    first = clock.elapsed_ms()
    assert first <= clock.elapsed_ms()
    assert ClockGuard(clock).allows_deletion()
