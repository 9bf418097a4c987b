"""What the first bytes of a request say to a listener: its size, and whether it may be so large."""

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
    """May the frame at view[start:end] be larger than an ordinary request?"""
    (size,) = size_at(view, start)
    if not 0 <= size <= limits.produce_size_max:
        return False
    if end - start < _SIZE_AND_KEY.size:
        return True  # asked again when the api key is here
    return bool(_SIZE_AND_KEY.unpack_from(view, start)[1] == _PRODUCE_KEY)


def size_needed(view: memoryview, start: int, end: int, limits: ListenerLimits) -> int:
    """How many bytes from `start` on make the next decision: a whole frame, or its head."""
    if end - start < SIZE.size:
        return SIZE.size
    (size,) = size_at(view, start)
    if size > limits.request_size_max and end - start < _SIZE_AND_KEY.size:
        return _SIZE_AND_KEY.size
    return SIZE.size + int(size)
