"""The headers of batches of one size that follow each other."""

from __future__ import annotations

from struct import Struct

from wire.records.crc32c import crc32c
from wire.records.format import ATTRIBUTES_POSITION

TYPE_CHECKING = False
if TYPE_CHECKING:
    # base offset, length to magic, crc, attributes and last offset delta, base and greatest
    # timestamp, number of records
    Head = tuple[int, bytes, int, bytes, int, int, bytes]

_unpack_from = Struct(">q9sI6sqq14x4s").unpack_from


def alike_heads(
    view: memoryview, places: range, offset: int, *, check_crcs: bool, dense: bool = False
) -> list[Head]:
    """The headers at these places, up to the first that is not like the first, or damaged.

    The batches begin at `offset` or later, each behind the one before it; with `dense` there is no
    offset between them that none has.
    """
    heads: list[Head] = []
    _, frame, _, kind, _, _, number = _unpack_from(view, places[0])
    last_offset_delta = int.from_bytes(kind[2:], "big")
    for place in places:
        head = _unpack_from(view, place)
        if head[1] != frame or head[3] != kind or head[6] != number or head[0] < offset:
            break
        if dense and heads and head[0] != offset:
            break
        # At once, as it brings the whole batch into the processor's cache.
        checked = place + ATTRIBUTES_POSITION
        if check_crcs and crc32c(view[checked : place + places.step]) != head[2]:
            break
        offset = head[0] + last_offset_delta + 1
        heads.append(head)
    return heads
