"""`ReceiveMemory`: what the requests of all peers of a listener may take while they arrive.

A small request is read into a buffer that all connections share. What does not fit, or has not
arrived in full, is kept in a buffer of the connection's own (see `Received`); those for large
requests are counted here. Who gets no room waits, with part of its request, and is fed when others
are done.
"""

from __future__ import annotations

from wire.net.frame_head import SIZE, size_needed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wire.net.limits import ListenerLimits

RECEIVE_SIZE = 64 * 1024
"""What one read takes in, unless a larger frame is on its way; larger buffers are counted."""

_OWN_SIZE_MIN = 4 * 1024
_STEP_SIZE = 256 * 1024
_GROWTH = 2
_KEPT_SIZE_MAX = 4 * 1024 * 1024
_NEVER = float("inf")


class ReceiveMemory:
    """The shared buffer, and who has how much beside it. Requires: the listener's thread."""

    __slots__ = ("_favourite", "_holders", "_size_max", "held_size", "starved", "view")

    def __init__(self, size_max: int) -> None:
        self.view = memoryview(bytearray(RECEIVE_SIZE))
        """Where whoever has no buffer of its own reads into."""
        self.held_size = 0
        """Bytes of all large buffers."""
        self.starved: dict[Received, Any] = {}
        """Who waits for room, and its connection."""
        self._size_max = size_max
        self._holders: set[Received] = set()
        self._favourite: Received | None = None
        """Has room for whatever it sends."""

    def join(self, holder: Received) -> None:
        """A connection has come."""
        self._holders.add(holder)

    def leave(self, holder: Received) -> None:
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

    def has_room_for(self, holder: Received, capacity: int, *, instead_of: int = 0) -> bool:
        """May `holder` take a buffer of `capacity`?

        `instead_of`: the size of the buffer that it replaces.
        """
        more = capacity - (instead_of if instead_of > RECEIVE_SIZE else 0)
        if self._has_room_for(holder, more):
            return True
        for other in self._holders:
            other.give_back()
        return self._has_room_for(holder, more)

    def _has_room_for(self, holder: Received, more: int) -> bool:
        return (
            more <= RECEIVE_SIZE
            or self.held_size + more <= self._size_max
            or holder is self._favourite
        )

    def done_with(self, holder: Received) -> None:
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

    def _misses_least(self, holder: Received) -> bool:
        size = holder.missing_size()
        return all(other.missing_size() >= size for other in self._holders)


def _missing_size(holder: Received) -> float:
    return holder.missing_size()


class Received:
    """The bytes buffer[start:end], in a buffer of the connection's own.

    A connection that has none reads into the listener's. An empty buffer is kept for a while where
    another large frame is likely to follow.
    """

    __slots__ = (
        "_lent_size",
        "_limits",
        "_memory",
        "_needed",
        "buffer",
        "end",
        "is_starved",
        "start",
        "started_at",
    )

    def __init__(self, memory: ReceiveMemory, limits: ListenerLimits) -> None:
        self.buffer: bytearray | None = None
        self.start = 0
        self.end = 0
        self.started_at = 0.0
        """When the first bytes of the frame came that is on its way; 0 when that is not known."""
        self.is_starved = False
        """Does it wait for memory?"""
        self._memory = memory
        self._limits = limits
        self._needed = SIZE.size
        self._lent_size = 0
        """Of a large buffer that the service has for as long as the request is parked."""
        memory.join(self)

    def empty(self) -> None:
        """All of it was handled."""
        self.start = self.end = 0
        if self.buffer is not None and not RECEIVE_SIZE < len(self.buffer) <= _KEPT_SIZE_MAX:
            self._resize(0)

    def keep(self, view: memoryview, start: int, end: int, now: float) -> bool:
        """Keep view[start:end] where more of its first frame can be read behind it.

        The room grows with what has arrived: announcing a size takes none.
        False, and nothing is changed, when there is no memory for more.
        """
        memory, buffer = self._memory, self.buffer
        self._needed = needed = size_needed(view, start, end, self._limits)
        size = end - start
        if not self.started_at:
            self.started_at = now
        if buffer is None or len(buffer) < size or size == len(buffer) < needed:
            capacity = max(needed, size, _OWN_SIZE_MIN)
            if capacity > RECEIVE_SIZE:
                # The next ones may be a little larger, and shall find room in it.
                capacity = min(capacity, max(_GROWTH * size, RECEIVE_SIZE))
                capacity += -capacity % (_STEP_SIZE if capacity > RECEIVE_SIZE else 1)
            held = 0 if buffer is None else len(buffer)
            if not memory.has_room_for(self, capacity, instead_of=held):
                return False
            if start and end == RECEIVE_SIZE and memory.has_room_for(self, _STEP_SIZE):
                # As much as could be read, of several frames: such a peer is read in larger steps.
                capacity = max(capacity, _STEP_SIZE)
            rest = view[start:end]
            self._resize(capacity)[:size] = rest
            self.end = size
        elif start and (start + needed > len(buffer) or len(buffer) - end < RECEIVE_SIZE > size):
            # It would not fit, or is soon moved, and leaves room for a read as large as any.
            buffer[:size] = bytes(view[start:end])
            self.start, self.end = 0, size
        else:
            self.start, self.end = start, end
        return True

    def set_aside(self, view: memoryview, start: int, end: int) -> None:
        """Keep view[start:end] for later, in a buffer of that size: nothing is read meanwhile."""
        rest = view[start:end]
        self._resize(len(rest))[:] = rest
        self.end = len(rest)
        self._needed = 0

    def starve(self, connection: object) -> None:
        """Wait for memory: what is set aside is all that is known of a frame."""
        assert self.buffer is not None, connection
        self.is_starved = True
        self._needed = size_needed(memoryview(self.buffer), self.start, self.end, self._limits)
        self._memory.starved[self] = connection

    def grow(self, now: float) -> bool:
        """Try again to get a buffer for a large frame. True when more can be read."""
        assert self.buffer is not None, self
        if not self.keep(memoryview(self.buffer), self.start, self.end, now):
            return False
        self.is_starved = False
        return True

    def lend(self) -> None:
        """The request in it is parked: the service owns its bytes, and nothing is left here."""
        if self.buffer is None:
            self._memory.renew_view()
            return
        self._lent_size = len(self.buffer)
        self._memory.count(self._lent_size)

    def take_back(self) -> None:
        """The parked request is answered, or nobody is left to answer: its bytes can go."""
        if self._lent_size:
            self._memory.count(-self._lent_size)
            self._memory.done_with(self)
            self._lent_size = 0

    def handled(self) -> None:
        """A frame was handled, and its bytes are needed no more."""
        self._memory.done_with(self)

    def give_back(self) -> None:
        """Give a buffer back that is kept for a next large frame."""
        if self.start == self.end and self.buffer is not None:
            self._resize(0)

    def forget(self) -> None:
        """The connection has ended."""
        self._resize(0)
        self.take_back()
        self._memory.leave(self)

    def missing_size(self) -> float:
        """How much of a large request has not arrived; infinity when none is on its way."""
        size = self.end - self.start
        return self._needed - size if 0 < size < self._needed > RECEIVE_SIZE else _NEVER

    def deadline(self) -> float:
        """When the frame that is on its way has to be here."""
        limits, size = self._limits, self._needed
        if self._memory.starved and not self.is_starved:
            # Others wait for its room: what it announced has to come, and not only in the end.
            size = min(size, self.end - self.start)
        return self.started_at + limits.frame_grace_ms / 1_000 + size / limits.frame_rate_min

    def _resize(self, capacity: int) -> bytearray:
        """Replace the buffer by an empty one of `capacity`; 0 for none."""
        if self.buffer is not None:
            self._memory.count(-len(self.buffer))
        self._memory.count(capacity)
        fresh = bytearray(capacity)
        self.buffer = fresh if capacity else None
        self.start = self.end = 0
        return fresh
