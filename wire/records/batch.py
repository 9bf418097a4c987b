"""`RecordBatch`: a view over the bytes of one batch of magic 2. `format.py` draws the layout."""

from __future__ import annotations

from struct import Struct

from wire.records.crc32c import crc32c
from wire.records.errors import CorruptBatch, UnsupportedCodec
from wire.records.format import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_POSITION,
    DECOMPRESSED_SIZE_MAX,
    DELETE_HORIZON_BIT,
    ENTRY_HEAD,
    HEADER,
    HEADER_SIZE,
    LENGTH_MIN,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAX_TIMESTAMP_POSITION,
    SEQUENCE_MAX,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    Codec,
)
from wire.records.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from wire.records.decode.columns import RecordColumns
    from wire.records.legacy import LegacyBatch
    from wire.records.record import Buffer

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_UINT32 = Struct(">I")
_INT64 = Struct(">q")


class RecordBatch:
    """A view over the bytes of one batch of magic 2; nothing is copied or decompressed.

    `buffer` is a memoryview of exactly this batch; later bytes are cut off. The header is decoded
    once, on construction: after `stamp` has changed the bytes, make a new view.

    Raises:
        CorruptBatch: fewer bytes than the declared size, a wrong magic, or a size below 61.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size",
    )

    base_offset: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    size: int
    buffer: memoryview

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        view = buffer if type(buffer) is memoryview else memoryview(buffer)
        available = len(view) - position
        if available < HEADER_SIZE:
            raise CorruptBatch(f"{available} bytes, a batch header has {HEADER_SIZE}")
        (
            self.base_offset,
            length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = HEADER.unpack_from(view, position)
        self.size = size = length + LOG_OVERHEAD
        if self.magic != 2:
            raise CorruptBatch(f"magic {self.magic}, expected 2")
        if not HEADER_SIZE <= size <= available:
            raise CorruptBatch(f"batch of {size} bytes in {available}")
        self.buffer = view if size == len(view) else view[position : position + size]

    @property
    def codec(self) -> int:
        """The id of the codec (see `Codec`). Kafka assigns no codec to 5-7."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """The source of the timestamps: see `TimestampType`."""
        return (self.attributes & TIMESTAMP_TYPE_BIT) >> 3

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        """True if the batch holds control records, which applications do not see."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """True if base_timestamp is the time from which tombstones may be removed (KIP-534)."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which compaction may remove tombstones and markers, or None."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def last_offset(self) -> int:
        """The offset of the last record, even if compaction has removed it."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; -1 without sequences."""
        if self.base_sequence == -1:
            return -1
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    def compute_crc(self) -> int:
        return crc32c(self.buffer[ATTRIBUTES_POSITION:])

    def is_valid_crc(self) -> bool:
        return crc32c(self.buffer[ATTRIBUTES_POSITION:]) == self.crc

    def check_crc(self) -> None:
        """Raise CorruptBatch, with both values, unless the stored checksum matches."""
        computed = crc32c(self.buffer[ATTRIBUTES_POSITION:])
        if computed != self.crc:
            raise CorruptBatch(
                f"batch at offset {self.base_offset}: crc {computed:#010x}, stored {self.crc:#010x}"
            )

    def payload(self, limit: int = DECOMPRESSED_SIZE_MAX) -> Buffer:
        """Return the bytes of the records: a view, or at most `limit` decompressed bytes.

        Raises:
            CorruptPayload, TooLarge, UnsupportedCodec: the records cannot be decompressed.
        """
        records = self.buffer[HEADER_SIZE:]
        codec = self.attributes & CODEC_MASK
        if codec == Codec.NONE:
            return records
        if codec > Codec.ZSTD:
            raise UnsupportedCodec(f"codec {codec}")
        from wire.records.compression import decompress

        return decompress(codec, records, limit=limit)

    def records(self, limit: int = DECOMPRESSED_SIZE_MAX) -> Iterator[Record]:
        """Return an iterator over the records. Errors are raised by this call, before the first.

        Raises:
            InvalidRecord: a record is malformed, or the number of records is not the declared one.
            CorruptPayload, TooLarge, UnsupportedCodec: as `payload`.
        """
        from wire.records.decode.choose import tuples

        return map(Record, tuples(self, limit))

    def columns(self, limit: int = DECOMPRESSED_SIZE_MAX) -> RecordColumns:
        """Return the records as numpy arrays: offsets, timestamps, positions of keys and values."""
        from wire.records.decode.choose import columns

        return columns(self, limit)

    def __repr__(self) -> str:
        return (
            f"RecordBatch(offsets {self.base_offset}-{self.last_offset}, {self.record_count} "
            f"records, {self.size} bytes, epoch {self.partition_leader_epoch}, "
            f"attributes {self.attributes:#x}, producer {self.producer_id}/{self.producer_epoch} "
            f"from {self.base_sequence})"
        )


def increment_sequence(sequence: int, increment: int) -> int:
    """Return `sequence` plus `increment`. Sequences wrap around: 0 follows 2147483647."""
    return (sequence + increment) & SEQUENCE_MAX


def iter_batches(
    buffer: Buffer, position: int = 0, end: int | None = None
) -> Iterator[RecordBatch | LegacyBatch]:
    """Yield the whole batches in buffer[position:end] as views; ignore an incomplete tail.

    Checksums are not checked.

    Raises:
        CorruptBatch: an entry's length is impossible or its magic unknown; the batches before it
            have been yielded.
    """
    view = buffer if type(buffer) is memoryview else memoryview(buffer)
    end = len(view) if end is None else end
    while end - position > MAGIC_POSITION:
        offset, length, _, magic = ENTRY_HEAD.unpack_from(view, position)
        if length < LENGTH_MIN:
            raise CorruptBatch(f"entry at {position}: length {length}, the least is {LENGTH_MIN}")
        entry_end = position + LOG_OVERHEAD + length
        if entry_end > end:
            return
        if magic == 2:
            yield RecordBatch(view[position:entry_end])
        elif magic in (0, 1):
            from wire.records.legacy import LegacyBatch

            yield LegacyBatch(view[position:entry_end])
        else:
            raise CorruptBatch(f"entry at {position}, offset {offset}: unknown magic {magic}")
        position = entry_end


def stamp(
    buffer: bytearray | memoryview,
    *,
    base_offset: int,
    leader_epoch: int,
    position: int = 0,
    timestamp_type: int | None = None,
    max_timestamp: int | None = None,
) -> None:
    """Write the leader's fields of the batch that begins at `position`.

    Base offset and leader epoch lie outside the checksum. If `timestamp_type` or `max_timestamp` is
    given, the checksum is computed again.
    """
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + 12, leader_epoch)
    if timestamp_type is None and max_timestamp is None:
        return
    batch = RecordBatch(buffer, position)
    attributes = batch.attributes
    if timestamp_type is not None:
        attributes = attributes & ~TIMESTAMP_TYPE_BIT | timestamp_type << 3
    latest = batch.max_timestamp if max_timestamp is None else max_timestamp
    if (attributes, latest) == (batch.attributes, batch.max_timestamp):
        return
    _INT16.pack_into(buffer, position + ATTRIBUTES_POSITION, attributes)
    _INT64.pack_into(buffer, position + MAX_TIMESTAMP_POSITION, latest)
    _UINT32.pack_into(buffer, position + CRC_POSITION, batch.compute_crc())
