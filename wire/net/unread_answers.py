"""`UnreadAnswers`: the limit on answers that the peers of a listener do not read."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

_TAKEN = (0, float("inf"))


class UnreadAnswers:
    """Counts the answers that peers have not read: the bytes that a socket has not taken yet.

    Requires: the listener's thread.
    """

    def __init__(self, size_max: int, cut_off: Callable[[Any], None]) -> None:
        """If the unread bytes of all connections exceed `size_max`, call `cut_off(connection)`.

        The connection is the one whose peer has read nothing for the longest time.
        """
        self.size = 0
        """The unread bytes of all connections."""
        self._size_max = size_max
        self._cut_off = cut_off
        self._unread: dict[Hashable, tuple[int, float]] = {}

    def note(self, connection: Hashable, size: int, now: float) -> None:
        """Set a connection's unread bytes; at `now` its socket took bytes or began to stall."""
        difference = size - self._unread.get(connection, _TAKEN)[0]
        if size:
            self._unread[connection] = (size, now)
        else:
            self._unread.pop(connection, None)
        self.size += difference
        if difference > 0 and self.size > self._size_max:
            self._cut_off(min(self._unread, key=self.stalled_at))

    def stalled_at(self, connection: Hashable) -> float:
        """Return the time since which the peer has read nothing; infinity if it has read all."""
        return self._unread.get(connection, _TAKEN)[1]
