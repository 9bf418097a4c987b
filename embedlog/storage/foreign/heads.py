"""The places of batches by their heads alone: a tenth of the cost of reading them.

Suitable for batches of this boot: only the last one can be torn, and the reader of a batch finds
rot. After a loss of power any of the last batches may be torn.
"""

from __future__ import annotations

from typing import NamedTuple

from wire.records.format import HEADER, HEADER_SIZE, LOG_OVERHEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAGIC = 2


class Head(NamedTuple):
    position: int
    size: int
    base_offset: int
    last_offset: int
    attributes: int
    producer_id: int


def heads(
    view: Callable[[int, int], memoryview], position: int, size: int, next_offset: int
) -> Iterator[Head]:
    """Yield the heads from `position` on that follow one another, up to byte `size`.

    Silently end at anything but a batch of magic 2: torn, damaged, older, or reserved room.
    """
    while position + HEADER_SIZE <= size:
        try:
            fields = HEADER.unpack(view(position, HEADER_SIZE))
        except ValueError:
            return  # it was cut meanwhile
        base_offset, length, _, magic, _, attributes, last_offset_delta = fields[:7]
        producer_id = fields[9]
        batch_size = length + LOG_OVERHEAD
        is_whole = HEADER_SIZE <= batch_size <= size - position
        if magic != _MAGIC or not is_whole or base_offset < next_offset or last_offset_delta < 0:
            return
        next_offset = base_offset + last_offset_delta + 1
        last_offset = next_offset - 1
        yield Head(position, batch_size, base_offset, last_offset, attributes, producer_id)
        position += batch_size
