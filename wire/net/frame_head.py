"""Reads the size and API key of a request, and checks the size against the limits."""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.net.limits import ListenerLimits

SIZE = Struct(">i")
size_at = SIZE.unpack_from
_SIZE_AND_KEY = Struct(">ih")
_PRODUCE_KEY = 0


def may_be_large(view: memoryview, start: int, end: int, limits: ListenerLimits) -> bool:
    """Return whether a frame at view[start:end] may exceed `request_size_max`: Produce may."""
    (size,) = size_at(view, start)
    if not 0 <= size <= limits.produce_size_max:
        return False
    if end - start < _SIZE_AND_KEY.size:
        return True  # checked again once the API key has arrived
    return bool(_SIZE_AND_KEY.unpack_from(view, start)[1] == _PRODUCE_KEY)


def size_needed(view: memoryview, start: int, end: int, limits: ListenerLimits) -> int:
    """Return the bytes from `start` on that the next step needs: the whole frame, or its head."""
    if end - start < SIZE.size:
        return SIZE.size
    (size,) = size_at(view, start)
    if size > limits.request_size_max and end - start < _SIZE_AND_KEY.size:
        return _SIZE_AND_KEY.size
    return SIZE.size + int(size)
