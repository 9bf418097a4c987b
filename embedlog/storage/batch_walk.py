"""Walking the batches of a segment by their headers, without looking at records."""

from __future__ import annotations

from struct import Struct

from embedlog.errors import CorruptRecord
from wire.records.batch import RecordBatch, iter_batches
from wire.records.errors import RecordsError
from wire.records.format import HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD, MAGIC_POSITION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# base offset, length, leader epoch, magic, (crc, attributes), last offset delta,
# (base timestamp), max timestamp
_HEADER = Struct(">qiib6xi8xq")
# base offset, length, magic, last offset delta
_EXTENT = Struct(">qi4xb6xi")


class BatchInfo(tuple[int, int, int, int, int, int]):
    """(position, size, base offset, last offset, max timestamp, leader epoch) of one batch."""

    __slots__ = ()


def walk(view: memoryview, position: int, end: int, path: str) -> Iterator[BatchInfo]:
    """Yield the facts of each batch in `view[position:end]`, read from its header.

    Checksums are not compared. Batches of magic 0 and 1 are read as well; their leader epoch is -1.

    Raises:
        CorruptRecord: bytes that cannot be a batch, or a batch that passes `end`.
    """
    unpack = _HEADER.unpack_from
    while end - position >= HEADER_SIZE:
        base_offset, length, epoch, magic, delta, max_timestamp = unpack(view, position)
        size = length + LOG_OVERHEAD
        if magic != 2:
            break
        if size < HEADER_SIZE or size > end - position or delta < 0:
            raise CorruptRecord(path, position, f"no batch: {size} bytes, {end - position} remain")
        yield BatchInfo((position, size, base_offset, base_offset + delta, max_timestamp, epoch))
        position += size
    while position < end:
        info = _walk_slowly(view, position, end, path)
        yield info
        position += info[1]


def locate(view: memoryview, position: int, end: int, offset: int, path: str) -> int:
    """Return the position of the first batch that ends at or after `offset`.

    Return `end` if there is none. Requires: a batch begins at `position`, at or before `offset`.
    """
    unpack = _EXTENT.unpack_from
    while position < end:
        if end - position < HEADER_SIZE:
            info = _walk_slowly(view, position, end, path)
            size, last_offset = info[1], info[3]
        else:
            base_offset, length, magic, delta = unpack(view, position)
            last_offset = base_offset + delta
            size = length + LOG_OVERHEAD
            if magic != 2:
                info = _walk_slowly(view, position, end, path)
                size, last_offset = info[1], info[3]
            elif size < HEADER_SIZE or size > end - position or delta < 0:
                reason = f"no batch: {size} bytes, {end - position} remain"
                raise CorruptRecord(path, position, reason)
        if last_offset >= offset:
            return position
        position += size
    return end


def ends_with(
    view: memoryview, position: int, end: int, last_offset: int, timestamp: int | None = None
) -> bool:
    """Whether the batch at `position` ends with `last_offset`, and has `timestamp` if given."""
    try:
        for _, _, _, found, latest, _ in walk(view, position, end, ""):
            return found == last_offset and timestamp in (None, latest)
    except CorruptRecord:
        return False
    return False


def _walk_slowly(view: memoryview, position: int, end: int, path: str) -> BatchInfo:
    """Read one batch of any magic, possibly too short for a header of magic 2."""
    if end - position <= MAGIC_POSITION or not 0 <= view[position + MAGIC_POSITION] <= 2:
        raise CorruptRecord(path, position, "no batch: unknown magic or too few bytes")
    length = int.from_bytes(view[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
    if length < LENGTH_MIN:
        raise CorruptRecord(path, position, f"no batch: length {length}")
    try:
        batch = next(iter_batches(view, position, end), None)
        if batch is None:
            reason = f"no batch: {length + LOG_OVERHEAD} bytes, {end - position} remain"
            raise CorruptRecord(path, position, reason)
        # A compressed message set of magic 0 or 1 is unpacked to know its first offset.
        first, last = batch.base_offset, batch.last_offset
    except RecordsError as error:
        raise CorruptRecord(path, position, str(error)) from None
    epoch = batch.partition_leader_epoch if isinstance(batch, RecordBatch) else -1
    return BatchInfo((position, batch.size, first, last, batch.max_timestamp, epoch))
