"""`ReceiveMemory`: what the requests of all peers of a listener may take while they arrive.

A small request is read into a buffer that all connections share. What does not fit, or has not
arrived in full, is kept in a buffer of the connection's own (see `Received`); those for large
requests are counted here. Who gets no room waits, with part of its request, and is fed when others
are done.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Holder(Protocol):
        """What one connection holds of requests that were not handled."""

        def give_back(self) -> None:
            """Give a buffer back that nothing is in."""

        def missing_size(self) -> float:
            """How much of a large request has not arrived; infinity when none is on its way."""

        def grow(self, now: float) -> bool:
            """Try again to get room; False when there still is none."""


RECEIVE_SIZE = 64 * 1024
"""What one read takes in, unless a larger frame is on its way; larger buffers are counted."""


class ReceiveMemory:
    """The shared buffer, and who has how much beside it. Requires: the listener's thread."""

    __slots__ = ("_favourite", "_holders", "_size_max", "held_size", "starved", "view")

    def __init__(self, size_max: int) -> None:
        self.view = memoryview(bytearray(RECEIVE_SIZE))
        """Where whoever has no buffer of its own reads into."""
        self.held_size = 0
        """Bytes of all large buffers."""
        self.starved: dict[Holder, Any] = {}
        """Who waits for room, and its connection."""
        self._size_max = size_max
        self._holders: set[Holder] = set()
        self._favourite: Holder | None = None
        """Has room for whatever it sends."""

    def join(self, holder: Holder) -> None:
        """A connection has come."""
        self._holders.add(holder)

    def leave(self, holder: Holder) -> None:
        """It has gone, and has given everything back."""
        self._holders.discard(holder)
        self.starved.pop(holder, None)
        self.done_with(holder)

    def renew_view(self) -> None:
        """The shared buffer was given away with a parked request: take another."""
        self.view = memoryview(bytearray(RECEIVE_SIZE))

    def count(self, capacity: int) -> None:
        """A buffer was taken, or given back (negative)."""
        if abs(capacity) > RECEIVE_SIZE:
            self.held_size += capacity

    def has_room_for(self, holder: Holder, capacity: int, *, instead_of: int = 0) -> bool:
        """May `holder` take a buffer of `capacity`?

        `instead_of`: the size of the buffer that it replaces.
        """
        more = capacity - (instead_of if instead_of > RECEIVE_SIZE else 0)
        if self._has_room_for(holder, more):
            return True
        for other in self._holders:
            other.give_back()
        return self._has_room_for(holder, more)

    def _has_room_for(self, holder: Holder, more: int) -> bool:
        return (
            more <= RECEIVE_SIZE
            or self.held_size + more <= self._size_max
            or holder is self._favourite
        )

    def done_with(self, holder: Holder) -> None:
        """A frame of the holder's has come, been handled, and holds no bytes any more."""
        if holder is self._favourite:
            self._favourite = None

    def feed_starved(self, now: float) -> list[Any]:
        """Give room to those that wait for it; returns their connections, which can read again.

        Who misses least comes first. When frames that take the room wait for each other, that one
        may go on without room; no other may until it is done with.
        """
        fed: list[Any] = []
        for holder in sorted(self.starved, key=_missing_size):
            if not holder.grow(now):
                if self._favourite is not None or not self._misses_least(holder):
                    break
                self._favourite = holder
                holder.grow(now)
            fed.append(self.starved.pop(holder))
        return fed

    def _misses_least(self, holder: Holder) -> bool:
        size = holder.missing_size()
        return all(other.missing_size() >= size for other in self._holders)


def _missing_size(holder: Holder) -> float:
    return holder.missing_size()
