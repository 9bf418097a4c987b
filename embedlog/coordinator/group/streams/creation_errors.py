"""`CreationErrors`: the errors of the creation of internal topics.

An error is kept for two heartbeat intervals. Meanwhile the topic is not tried again, and the
statuses of answers name the error.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.runtime.clock import Clock

_ERRORS_MAX = 1000
_SHOWN_MAX = 3


class CreationErrors:
    """The kept errors of one broker. Any thread may call the methods."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[str, int]] = {}
        """Topic -> (error text, monotonic time until which it is kept)."""

    def keep(self, topic: str, text: str, *, keep_ms: int) -> None:
        while len(self._kept) >= _ERRORS_MAX:
            # The eldest one goes; another thread may have taken it out already.
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[topic] = text, self._clock.monotonic_ms() + keep_ms

    def of(self, topic: str) -> str | None:
        """Return the kept error of a topic; None if there is none."""
        kept = self._kept.get(topic)
        if kept is None:
            return None
        if self._clock.monotonic_ms() >= kept[1]:
            self._kept.pop(topic, None)
            return None
        return kept[0]

    def summary(self, topics: Iterable[str]) -> str:
        """Return the kept errors of these topics as one text; empty if there are none."""
        found = [(topic, text) for topic in topics if (text := self.of(topic)) is not None]
        shown = ", ".join(f"{topic} ({text})" for topic, text in found[:_SHOWN_MAX])
        rest = len(found) - _SHOWN_MAX
        return f"{shown} and {rest} more" if rest > 0 else shown
