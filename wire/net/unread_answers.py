"""`UnreadAnswers`: the limit on answers that the peers of a listener do not read."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

_TAKEN = (0, float("inf"))


class UnreadAnswers:
    """Per connection: the bytes that its socket has not taken, and when it last took some.

    Requires: the listener's thread.
    """

    def __init__(self, size_max: int, cut_off: Callable[[Any], None]) -> None:
        """If the unread bytes exceed `size_max`, call `cut_off` with the slowest connection."""
        self.size = 0
        """The unread bytes of all connections."""
        self._size_max = size_max
        self._cut_off = cut_off
        self._unread: dict[Hashable, tuple[int, float]] = {}

    def note(self, connection: Hashable, size: int, now: float) -> None:
        """Set the unread bytes of a connection; at `now` it took some, or began to stall."""
        difference = size - self._unread.get(connection, _TAKEN)[0]
        if size:
            self._unread[connection] = (size, now)
        else:
            self._unread.pop(connection, None)
        self.size += difference
        if difference > 0 and self.size > self._size_max:
            self._cut_off(min(self._unread, key=self.stalled_at))

    def stalled_at(self, connection: Hashable) -> float:
        """Return when the peer last took bytes of an unread answer; infinity if it has read all."""
        return self._unread.get(connection, _TAKEN)[1]
