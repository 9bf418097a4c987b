"""`UnreadAnswers`: what the peers of a listener are owed and do not take."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

_TAKEN = (0, float("inf"))


class UnreadAnswers:
    """By connection: bytes that its socket has not taken, and when it last took some.

    Requires: the listener's thread.
    """

    __slots__ = ("_cut_off", "_size_max", "_unread", "size")

    def __init__(self, size_max: int, cut_off: Callable[[Any], None]) -> None:
        """When all have more than `size_max`, `cut_off` is called with the slowest of them."""
        self.size = 0
        """Of all of them."""
        self._size_max = size_max
        self._cut_off = cut_off
        self._unread: dict[Hashable, tuple[int, float]] = {}

    def note(self, connection: Hashable, size: int, now: float) -> None:
        """So many bytes of the connection's are unread; at `now` it took some, or began not to."""
        difference = size - self._unread.get(connection, _TAKEN)[0]
        if size:
            self._unread[connection] = (size, now)
        else:
            self._unread.pop(connection, None)
        self.size += difference
        if difference > 0 and self.size > self._size_max:
            self._cut_off(min(self._unread, key=self.stalled_at))

    def stalled_at(self, connection: Hashable) -> float:
        """When the peer last took bytes of an answer it is owed; infinity if it is owed none."""
        return self._unread.get(connection, _TAKEN)[1]
