"""Pauses before something is tried again: longer after each failure, and partly random.

The pause doubles from the first to the longest one. A random draw of 20 % more or less keeps
clients that failed together from coming back together (KIP-144, KIP-580). `Backoff` computes the
pause; `Retry` also counts the failures of one operation.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.client.settings import Settings
    from embedlog.runtime.randomness import Random

_DOUBLINGS_MAX = 30


class Backoff:
    """The pauses between attempts, in ms: `first_ms`, twice that, and so on up to `longest_ms`."""

    def __init__(self, first_ms: int, longest_ms: int, below: Callable[[int], int]) -> None:
        """`below(n)` draws a number of [0, n). `longest_ms` also limits the first pause."""
        self._first_ms = min(first_ms, longest_ms)
        self._longest_ms = longest_ms
        self._below = below

    @classmethod
    def of_retries(cls, settings: Settings, random: Random) -> Backoff:
        """Return the pauses for retried requests: retry.backoff.ms up to retry.backoff.max.ms."""
        return cls(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"], random.below)

    def delay_ms(self, failures: int) -> int:
        """Return the pause after a failure; `failures` counts the failures in a row before it.

        >>> [Backoff(100, 1000, lambda n: n // 2).delay_ms(n) for n in range(5)]
        [100, 200, 400, 800, 1000]
        """
        if self._first_ms == self._longest_ms:
            return self._first_ms  # as in Kafka: without doubling there is no random draw
        delay = min(self._first_ms << min(failures, _DOUBLINGS_MAX), self._longest_ms)
        fifth = delay // 5
        return min(delay - fifth + self._below(2 * fifth + 1), self._longest_ms)


class Retry:
    """The failures of one operation, and the time before which it may not be tried again."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._not_before_ms = 0
        self.failure_count = 0
        """Failures since the last success."""

    def failed(self, now_ms: int) -> None:
        self._not_before_ms = now_ms + self._backoff.delay_ms(self.failure_count)
        self.failure_count += 1

    def succeeded(self) -> None:
        self.failure_count = 0
        self._not_before_ms = 0

    def left_ms(self, now_ms: int) -> int:
        """Return the milliseconds until the next attempt; 0 if it may be made now."""
        return max(self._not_before_ms - now_ms, 0)


def sooner(one: int | None, other: int | None) -> int | None:
    """Return the shorter of two delays; None means no limit."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
