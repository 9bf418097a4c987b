"""`RareWarnings`: warnings about a lasting state, told once a minute and not at every attempt."""

from __future__ import annotations

from embedlog.logger import Logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

_log = Logger("client")

INTERVAL_MS = 60_000
PATIENCE_MS = 500
"""A state that passes sooner is not worth a warning: topics and leaders appear a moment later."""
_KEYS_MAX = 1_000


class RareWarnings:
    """The warnings of one client. Times are monotonic milliseconds; any thread may call it."""

    def __init__(self) -> None:
        self._next_ms: dict[Hashable, int] = {}
        """Subject -> when a warning about it may be logged (again)."""

    def warn(self, subject: Hashable, now_ms: int, text: str, *values: object) -> None:
        """Log a warning, unless one about `subject` was logged less than a minute ago."""
        self.warn_if_lasting(subject, now_ms, text, *values, patience_ms=0)

    def warn_if_lasting(
        self,
        subject: Hashable,
        now_ms: int,
        text: str,
        *values: object,
        patience_ms: int = PATIENCE_MS,
    ) -> None:
        """Log a warning once the state has lasted for `patience_ms`, and then once a minute."""
        if len(self._next_ms) > _KEYS_MAX:
            self._next_ms.clear()
        if now_ms >= self._next_ms.setdefault(subject, now_ms + patience_ms):
            self._next_ms[subject] = now_ms + INTERVAL_MS
            _log.warning(text, *values)

    def is_over(self, subject: Hashable) -> None:
        """Note that the state has ended, so that the next one is new."""
        self._next_ms.pop(subject, None)
