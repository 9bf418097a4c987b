"""`MetadataPauses`: when a client asks for metadata, and how long it waits between two requests."""

from __future__ import annotations

from embedlog.client.backoff import Backoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.settings import Settings
    from embedlog.runtime.randomness import Random

_NEVER_MS = -(1 << 62)


class MetadataPauses:
    """Of one client. Times are monotonic milliseconds."""

    __slots__ = (
        "_age_max_ms",
        "_backoff",
        "_doubt_after_ms",
        "_failures",
        "_not_before_ms",
        "_repeats",
        "_unanswered_since_ms",
        "expires_at_ms",
        "is_requested",
    )

    def __init__(self, settings: Settings, random: Random) -> None:
        self._age_max_ms: int = settings["metadata.max.age.ms"]
        self._doubt_after_ms: int = settings["metadata.recovery.rebootstrap.trigger.ms"]
        self._backoff = Backoff.of_retries(settings, random)
        self.is_requested = False
        """Is something that is known to be wrong, or old, to be asked for again?"""
        self._failures = 0
        """Requests without an answer, or with one that left something open, in a row."""
        self._repeats = 0
        """Answers that told nothing new to a request for an update, in a row."""
        self._not_before_ms = 0
        self.expires_at_ms = _NEVER_MS
        """When the last answer about all that is followed is too old to be believed."""
        self._unanswered_since_ms = -1
        """When the first of the present failures was; -1 after an answer."""

    @property
    def has_failed(self) -> bool:
        """Did the last request leave something open?"""
        return self._failures > 0

    def age_ms(self, now_ms: int) -> int:
        """Milliseconds since the last answer about all that is followed; 0 before the first."""
        if self.expires_at_ms == _NEVER_MS:
            return 0
        return now_ms - (self.expires_at_ms - self._age_max_ms)

    def left_ms(self, now_ms: int) -> int:
        """How long the next request has to wait; not positive when it may go out."""
        return self._not_before_ms - now_ms

    def reset(self) -> None:
        """Something new is asked for: no pause is for that."""
        self._not_before_ms = self._failures = self._repeats = 0

    def skip_repeats(self) -> None:
        """The user asks: the pause after answers that told nothing new is not for this request."""
        if not self._failures:
            self._not_before_ms = self._repeats = 0

    def expire(self) -> None:
        """What is known is too old."""
        self.is_requested = True
        self._repeats = 0

    def answered(self, now_ms: int, *, told_news: bool, is_partial: bool) -> None:
        """An answer came. `is_partial`: it was about some new topics alone."""
        self._unanswered_since_ms = -1
        self._repeats = 0 if told_news or is_partial else self._repeats + 1
        if not is_partial:
            self.expires_at_ms = now_ms + self._age_max_ms

    def settle(self, now_ms: int, *, pauses: bool) -> None:
        """It left nothing open."""
        self._failures = 0
        delay_ms = self._backoff.delay_ms(max(self._repeats - 1, 0)) if pauses else 0
        self._not_before_ms = now_ms + delay_ms

    def back_off(self, now_ms: int, *, at_once: bool = False) -> None:
        """Ask again, later and later; `at_once`: only the next time is later."""
        delay_ms = self._backoff.delay_ms(self._failures)
        self._not_before_ms = now_ms if at_once else now_ms + delay_ms
        self._failures += 1
        self.is_requested = True

    def unanswered(self, now_ms: int) -> bool:
        """A request got no answer: ask again later. Is it time to doubt the nodes themselves?"""
        self.back_off(now_ms)
        if self._unanswered_since_ms < 0:
            self._unanswered_since_ms = now_ms
        elif now_ms - self._unanswered_since_ms >= self._doubt_after_ms:
            self._unanswered_since_ms = now_ms
            return True
        return False
