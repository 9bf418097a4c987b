"""`MetadataPauses`: when a client asks for metadata, and its pauses between two requests."""

from __future__ import annotations

from embedlog.client.backoff import Backoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.settings import Settings
    from embedlog.runtime.randomness import Random

_NEVER_MS = -(1 << 62)


class MetadataPauses:
    """The pauses of one client. Times are monotonic milliseconds."""

    def __init__(self, settings: Settings, random: Random) -> None:
        self._age_max_ms: int = settings["metadata.max.age.ms"]
        self._doubt_after_ms: int = settings["metadata.recovery.rebootstrap.trigger.ms"]
        self._backoff = Backoff.of_retries(settings, random)
        self.is_requested = False
        """True if known metadata is wrong or old, and the client is to ask again."""
        self._failures = 0
        """Consecutive requests without an answer, or whose answer lacked a topic or a leader."""
        self._repeats = 0
        """Consecutive requests for an update whose answers brought nothing new."""
        self._not_before_ms = 0
        self.expires_at_ms = _NEVER_MS
        """When the last answer about all wanted topics becomes too old."""
        self._unanswered_since_ms = -1
        """When the first of the requests without an answer failed; -1 after an answer."""

    @property
    def has_failed(self) -> bool:
        """True if the last request got no answer, or one without a wanted topic or leader."""
        return self._failures > 0

    def age_ms(self, now_ms: int) -> int:
        """Return ms since the last answer about all wanted topics; 0 before the first answer."""
        if self.expires_at_ms == _NEVER_MS:
            return 0
        return now_ms - (self.expires_at_ms - self._age_max_ms)

    def left_ms(self, now_ms: int) -> int:
        """Return the milliseconds until the next request; 0 or less if it may be sent now."""
        return self._not_before_ms - now_ms

    def reset(self) -> None:
        """End all pauses: the client asks about something new."""
        self._not_before_ms = self._failures = self._repeats = 0

    def skip_repeats(self) -> None:
        """The user asks: end the pause that follows answers without changes."""
        if not self._failures:
            self._not_before_ms = self._repeats = 0

    def expire(self) -> None:
        """Request an update: the metadata is too old."""
        self.is_requested = True
        self._repeats = 0

    def answered(self, now_ms: int, *, told_news: bool, is_partial: bool) -> None:
        """Note an answer. `is_partial`: it was about some new topics only."""
        self._unanswered_since_ms = -1
        self._repeats = 0 if told_news or is_partial else self._repeats + 1
        if not is_partial:
            self.expires_at_ms = now_ms + self._age_max_ms

    def settle(self, now_ms: int, *, pauses: bool) -> None:
        """Note an answer that lacks no topic or leader; with `pauses`, the next request waits."""
        self._failures = 0
        delay_ms = self._backoff.delay_ms(max(self._repeats - 1, 0)) if pauses else 0
        self._not_before_ms = now_ms + delay_ms

    def back_off(self, now_ms: int, *, at_once: bool = False) -> None:
        """Request an update after a growing pause; with `at_once`, without a pause this time."""
        delay_ms = self._backoff.delay_ms(self._failures)
        self._not_before_ms = now_ms if at_once else now_ms + delay_ms
        self._failures += 1
        self.is_requested = True

    def unanswered(self, now_ms: int) -> bool:
        """Note a request without an answer; return whether it is time to distrust all nodes."""
        self.back_off(now_ms)
        if self._unanswered_since_ms < 0:
            self._unanswered_since_ms = now_ms
        elif now_ms - self._unanswered_since_ms >= self._doubt_after_ms:
            self._unanswered_since_ms = now_ms
            return True
        return False
