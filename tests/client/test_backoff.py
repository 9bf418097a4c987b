"""Pauses between attempts: their length, and the time of the next attempt."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.client.backoff import Backoff, Retry
from embedlog.client.parse_settings import parse
from embedlog.client.settings import COMMON
from embedlog.testing import sim_runtime


def middle(count: int) -> int:
    return count // 2


def test_a_pause_doubles_up_to_the_longest() -> None:
    backoff = Backoff(100, 1_000, middle)
    assert [backoff.delay_ms(failures) for failures in range(5)] == [100, 200, 400, 800, 1_000]
    assert backoff.delay_ms(10_000) == 1_000


@pytest.mark.parametrize(("draw", "pauses"), [(0, [80, 160, 800]), (-1, [120, 240, 1_000])])
def test_a_draw_moves_a_pause_by_a_fifth_and_never_past_the_longest(
    draw: int, pauses: list[int]
) -> None:
    backoff = Backoff(100, 1_000, lambda count: draw % count)
    assert [backoff.delay_ms(failures) for failures in (0, 1, 9)] == pauses


@pytest.mark.parametrize("first_ms", [500, 900])
def test_a_first_pause_not_below_the_longest_is_always_the_longest(first_ms: int) -> None:
    backoff = Backoff(first_ms, 500, lambda count: 0)
    assert [backoff.delay_ms(failures) for failures in (0, 1, 9)] == [500, 500, 500]


def test_requests_are_repeated_by_retry_backoff_ms_and_its_maximum() -> None:
    given: Any = {"retry.backoff.ms": 40, "retry.backoff.max.ms": 100}
    random = sim_runtime().random
    backoff = Backoff.of_retries(parse(COMMON, given), random)
    assert 32 <= backoff.delay_ms(0) <= 48
    assert 80 <= backoff.delay_ms(9) <= 100


def test_the_next_attempt_waits_for_the_failures_since_the_last_success() -> None:
    retry = Retry(Backoff(100, 1_000, middle))
    assert retry.left_ms(5) == 0
    retry.failed(5)
    assert (retry.left_ms(5), retry.left_ms(104), retry.left_ms(105)) == (100, 1, 0)
    retry.failed(105)
    assert (retry.left_ms(105), retry.left_ms(900)) == (200, 0)
    retry.succeeded()
    assert retry.left_ms(105) == 0
    retry.failed(105)
    assert retry.left_ms(105) == 100
