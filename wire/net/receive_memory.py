"""The memory for requests that a listener receives, and its limit over all connections.

A small request is read into a buffer that all connections share. A larger or incomplete request is
in a buffer that only its connection uses (`Received`). `ReceiveMemory` limits the size of all large
buffers together: if there is no room, a connection keeps the received part of its request, and
waits until other requests are done.
"""

from __future__ import annotations

from wire.net.limits import SIZE, size_needed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from wire.net.limits import ListenerLimits

RECEIVE_SIZE = 64 * 1024
"""Size of the shared buffer, and so the limit of one read into it. Only larger buffers count
against the limit of all connections."""

_OWN_SIZE_MIN = 4 * 1024
_STEP_SIZE = 256 * 1024
_GROWTH = 2
_KEPT_SIZE_MAX = 4 * 1024 * 1024
_NEVER = float("inf")


class ReceiveMemory:
    """The shared buffer, and the limit of all large buffers. Requires: the listener's thread."""

    def __init__(self, size_max: int) -> None:
        self.view = memoryview(bytearray(RECEIVE_SIZE))
        """The shared buffer, for connections without a buffer of their own."""
        self.held_size = 0
        """Size of all large buffers together."""
        self.starved: dict[Received, Any] = {}
        """Buffers that wait for room -> their connections."""
        self._size_max = size_max
        self._holders: set[Received] = set()
        self._favourite: Received | None = None
        """The one buffer that may exceed the limit until its request is done, or None."""

    def join(self, holder: Received) -> None:
        """Add a new connection's buffer."""
        self._holders.add(holder)

    def leave(self, holder: Received) -> None:
        """Remove an ended connection's buffer. Requires: it has given back its memory."""
        self._holders.discard(holder)
        self.starved.pop(holder, None)
        self.done_with(holder)

    def renew_view(self) -> None:
        """Replace the shared buffer, which now belongs to a parked request."""
        self.view = memoryview(bytearray(RECEIVE_SIZE))

    def count(self, capacity: int) -> None:
        """Count a buffer of `capacity` bytes; with a negative `capacity`, count a released one."""
        if abs(capacity) > RECEIVE_SIZE:
            self.held_size += capacity

    def has_room_for(self, holder: Received, capacity: int, *, instead_of: int = 0) -> bool:
        """Return whether `holder` may take a buffer of `capacity` bytes.

        `instead_of` is the size of its present buffer, which the new one would replace. If there is
        no room, the empty buffers that other connections keep are released first.
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
        """End the right of this buffer to exceed the limit: its frame was handled."""
        if holder is self._favourite:
            self._favourite = None

    def feed_starved(self, now: float) -> list[Any]:
        """Give room to waiting buffers; return their connections, which can read again.

        The frame with the fewest missing bytes comes first. If there is no room for that frame, it
        may exceed the limit, unless a frame in memory misses fewer bytes. Otherwise frames could
        wait for each other for ever. Only one frame at a time may exceed the limit.
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
    """The unhandled bytes of one connection, buffer[start:end]: part of a frame, or several frames.

    A connection without a buffer of its own reads into the shared one. After a large frame it keeps
    the empty buffer for a while, because another large frame is likely to follow.
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
        """Time at which the first bytes of the incomplete frame arrived; 0 if unknown."""
        self.is_starved = False
        """True while the connection waits for memory."""
        self._memory = memory
        self._limits = limits
        self._needed = SIZE.size
        self._lent_size = 0
        """Size of the buffer that a parked request occupies; 0 if there is none."""
        memory.join(self)

    def empty(self) -> None:
        """Record that all bytes were handled."""
        self.start = self.end = 0
        if self.buffer is not None and not RECEIVE_SIZE < len(self.buffer) <= _KEPT_SIZE_MAX:
            self._resize(0)

    def keep(self, view: memoryview, start: int, end: int, now: float) -> bool:
        """Copy view[start:end] to this buffer, with room to read the rest of its first frame.

        The buffer grows with the received bytes, so that a peer cannot take memory by announcing a
        large size. If there is no memory, change nothing and return False.
        """
        memory, buffer = self._memory, self.buffer
        self._needed = needed = size_needed(view, start, end)
        size = end - start
        if not self.started_at:
            self.started_at = now
        if buffer is None or len(buffer) < size or size == len(buffer) < needed:
            capacity = max(needed, size, _OWN_SIZE_MIN)
            if capacity > RECEIVE_SIZE:
                # Round up, so that a slightly larger next frame fits as well.
                capacity = min(capacity, max(_GROWTH * size, RECEIVE_SIZE))
                capacity += -capacity % (_STEP_SIZE if capacity > RECEIVE_SIZE else 1)
            held = 0 if buffer is None else len(buffer)
            if not memory.has_room_for(self, capacity, instead_of=held):
                return False
            if start and end == RECEIVE_SIZE and memory.has_room_for(self, _STEP_SIZE):
                # The peer sends several frames, and they filled a whole read: read larger pieces.
                capacity = max(capacity, _STEP_SIZE)
            rest = view[start:end]
            self._resize(capacity)[:size] = rest
            self.end = size
        elif start and (start + needed > len(buffer) or len(buffer) - end < RECEIVE_SIZE > size):
            # Move the bytes to the buffer's begin: the frame would not fit behind `start`, or there
            # is little room to read and few bytes have to be moved.
            buffer[:size] = bytes(view[start:end])
            self.start, self.end = 0, size
        else:
            self.start, self.end = start, end
        return True

    def set_aside(self, view: memoryview, start: int, end: int) -> None:
        """Keep view[start:end] for later, in a buffer of just that size."""
        rest = view[start:end]
        self._resize(len(rest))[:] = rest
        self.end = len(rest)
        self._needed = 0

    def starve(self, connection: object) -> None:
        """Begin to wait for memory. Requires: `set_aside` keeps the received part of the frame."""
        assert self.buffer is not None, connection
        self.is_starved = True
        self._needed = size_needed(memoryview(self.buffer), self.start, self.end)
        self._memory.starved[self] = connection

    def grow(self, now: float) -> bool:
        """Try again to get memory for the waiting frame; return whether there was room."""
        assert self.buffer is not None, self
        if not self.keep(memoryview(self.buffer), self.start, self.end, now):
            return False
        self.is_starved = False
        return True

    def lend(self) -> None:
        """Leave a parked request's buffer to the service; it still counts as used memory."""
        if self.buffer is None:
            self._memory.renew_view()
            return
        self._lent_size = len(self.buffer)
        self._memory.count(self._lent_size)

    def take_back(self) -> None:
        """Stop counting a parked request's buffer: the request was answered or its client left."""
        if self._lent_size:
            self._memory.count(-self._lent_size)
            self._memory.done_with(self)
            self._lent_size = 0

    def handled(self) -> None:
        """Record that a frame was handled and its bytes are no longer needed."""
        self._memory.done_with(self)

    def give_back(self) -> None:
        """Give back the empty buffer that is kept for a next large frame."""
        if self.start == self.end and self.buffer is not None:
            self._resize(0)

    def forget(self) -> None:
        """Release all memory, because the connection has ended."""
        self._resize(0)
        self.take_back()
        self._memory.leave(self)

    def missing_size(self) -> float:
        """Return the missing bytes of an incomplete large request; infinity if there is none."""
        size = self.end - self.start
        return self._needed - size if 0 < size < self._needed > RECEIVE_SIZE else _NEVER

    def deadline(self) -> float:
        """Return the time by which the incomplete frame must have arrived."""
        limits, size = self._limits, self._needed
        if self._memory.starved and not self.is_starved:
            # While other connections wait for this memory, allow only the time for the bytes that
            # have come, not for the whole frame: a stalled peer must soon give the memory back.
            size = min(size, self.end - self.start)
        return self.started_at + limits.frame_grace_ms / 1_000 + size / limits.frame_rate_min

    def _resize(self, capacity: int) -> bytearray:
        """Replace the buffer by an empty one of `capacity` bytes; 0 only releases it."""
        if self.buffer is not None:
            self._memory.count(-len(self.buffer))
        self._memory.count(capacity)
        fresh = bytearray(capacity)
        self.buffer = fresh if capacity else None
        self.start = self.end = 0
        return fresh
