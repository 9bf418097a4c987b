"""Attempts at one thing, each later than the last, by retry.backoff.ms and its maximum."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.settings import Settings
    from embedlog.runtime.randomness import Random


class Retry:
    """When the next attempt at something may be made."""

    __slots__ = ("_first_ms", "_longest_ms", "_random", "failure_count", "not_before_ms")

    def __init__(self, settings: Settings, random: Random) -> None:
        self._first_ms: int = settings["retry.backoff.ms"]
        self._longest_ms: int = settings["retry.backoff.max.ms"]
        self._random = random
        self.failure_count = 0
        self.not_before_ms = 0

    def failed(self, now_ms: int) -> None:
        """An attempt failed."""
        delay = min(self._first_ms << min(self.failure_count, 16), self._longest_ms)
        self.failure_count += 1
        jitter = self._random.below(delay * 2 // 5 + 1) - delay // 5
        self.not_before_ms = now_ms + delay + jitter

    def succeeded(self) -> None:
        """The next failure is the first one again."""
        self.failure_count = 0
        self.not_before_ms = 0

    def left_ms(self, now_ms: int) -> int:
        """Milliseconds until the next attempt; 0 when it may be made."""
        return max(self.not_before_ms - now_ms, 0)
