"""Attempts at one thing, each later than the last, by retry.backoff.ms and its maximum."""

from __future__ import annotations

from embedlog.client.backoff import Backoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.settings import Settings
    from embedlog.runtime.randomness import Random


class Retry:
    """When the next attempt at something may be made."""

    __slots__ = ("_backoff", "failure_count", "not_before_ms")

    def __init__(self, settings: Settings, random: Random) -> None:
        self._backoff = Backoff(
            settings["retry.backoff.ms"], settings["retry.backoff.max.ms"], random.below
        )
        self.failure_count = 0
        self.not_before_ms = 0

    def failed(self, now_ms: int) -> None:
        """An attempt failed."""
        self.not_before_ms = now_ms + self._backoff.delay_ms(self.failure_count)
        self.failure_count += 1

    def succeeded(self) -> None:
        """The next failure is the first one again."""
        self.failure_count = 0
        self.not_before_ms = 0

    def left_ms(self, now_ms: int) -> int:
        """Milliseconds until the next attempt; 0 when it may be made."""
        return max(self.not_before_ms - now_ms, 0)
