"""Messages of magic 0 (until Kafka 0.9) and magic 1 (0.10): reading and writing them.

    position  size  field
    0         8     offset          a compressed wrapper has the offset of its last message
    8         4     size            bytes after this field
    12        4     crc             CRC-32 of the bytes from 16 to the end
    16        1     magic           0 or 1
    17        1     attributes      bits 0-2 codec (no zstd), 3 timestamp type (magic 1)
    18        8     timestamp       magic 1 only
    ...       4+n   key             int32 length, -1 null
    ...       4+n   value           int32 length, -1 null

A compressed wrapper has a null key. Its value holds compressed messages of the same magic, each
with all the fields above. With magic 0 the offsets of these messages are absolute. With magic 1
they are relative, and the last message has the wrapper's offset. If the wrapper's offset is 0, as
some producers send it, the offsets of magic 1 count as absolute.
"""

from __future__ import annotations

import zlib
from struct import Struct

from wire.records.compression import compress, decompress
from wire.records.errors import CorruptBatch, InvalidRecord
from wire.records.format import (
    CODEC_MASK,
    DECOMPRESSED_SIZE_MAX,
    LENGTH_MIN,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    TIMESTAMP_TYPE_BIT,
    Codec,
    TimestampType,
)
from wire.records.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wire.records.record import Buffer

NO_TIMESTAMP = -1

_HEAD = Struct(">qiIbb")  # offset, size, crc, magic, attributes
_HEAD_V1 = Struct(">qiIbbq")  # and the timestamp
_FIELDS_POSITION = (_HEAD.size, _HEAD_V1.size)
_FRAME = Struct(">qiI")
_SIZE = Struct(">i")


class LegacyBatch:
    """A view over one message of magic 0 or 1: a plain record, or a compressed wrapper of many.

    It has the attributes of a `RecordBatch`, but none about producers and leader epochs. For a
    wrapper, `record_count`, `base_offset` and `records` decompress the messages.

    Raises:
        CorruptBatch: fewer bytes than the declared size, or a wrong magic.
    """

    __slots__ = (
        "attributes",
        "buffer",
        "crc",
        "last_offset",
        "magic",
        "max_timestamp",
        "size",
    )

    partition_leader_epoch = -1
    producer_id = -1
    producer_epoch = -1
    base_sequence = -1
    last_sequence = -1
    is_transactional = False
    is_control = False
    has_delete_horizon = False
    delete_horizon_ms: int | None = None

    attributes: int
    buffer: memoryview
    crc: int
    last_offset: int
    magic: int
    max_timestamp: int
    size: int

    def __init__(self, buffer: Buffer, position: int = 0) -> None:
        view = buffer if type(buffer) is memoryview else memoryview(buffer)
        available = len(view) - position
        if available < LOG_OVERHEAD + LENGTH_MIN:
            raise CorruptBatch(f"{available} bytes, a message has at least 26")
        self.last_offset, length, self.crc, self.magic, self.attributes = _HEAD.unpack_from(
            view, position
        )
        self.size = LOG_OVERHEAD + length
        if self.magic not in (0, 1):
            raise CorruptBatch(f"magic {self.magic}, expected 0 or 1")
        size_min = _FIELDS_POSITION[self.magic] + 2 * _SIZE.size
        if not size_min <= self.size <= available:
            raise CorruptBatch(f"message of {self.size} bytes in {available}")
        self.buffer = view[position : position + self.size]
        self.max_timestamp = NO_TIMESTAMP
        if self.magic == 1:
            self.max_timestamp = _HEAD_V1.unpack_from(self.buffer)[5]

    @property
    def codec(self) -> int:
        """The id of the codec (see `Codec`); NONE unless the message is a wrapper."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        """The source of the timestamp: see `TimestampType`. NONE for magic 0."""
        if self.magic == 0:
            return TimestampType.NONE
        return (self.attributes & TIMESTAMP_TYPE_BIT) >> 3

    @property
    def base_offset(self) -> int:
        return self.last_offset if self.codec == Codec.NONE else next(self.records()).offset

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def record_count(self) -> int:
        return 1 if self.codec == Codec.NONE else len(list(self.records()))

    def compute_crc(self) -> int:
        return zlib.crc32(self.buffer[MAGIC_POSITION:])

    def is_valid_crc(self) -> bool:
        return self.compute_crc() == self.crc

    def check_crc(self) -> None:
        """Raise CorruptBatch, with both values, unless the stored checksum matches."""
        computed = self.compute_crc()
        if computed != self.crc:
            raise CorruptBatch(
                f"message at offset {self.last_offset}: crc {computed:#010x}, "
                f"stored {self.crc:#010x}"
            )

    def records(self, limit: int = DECOMPRESSED_SIZE_MAX) -> Iterator[Record]:
        """Return an iterator over the records. Errors are raised by this call, before the first.

        Raises:
            InvalidRecord: a key or value does not fit its message. Or a wrapper is empty or cut
                off, holds another magic or another wrapper, or has contradicting offsets.
            CorruptBatch: the checksum of a message inside a wrapper is wrong.
            CorruptPayload, TooLarge, UnsupportedCodec: a wrapper cannot be decompressed.
        """
        key, value = self._key_and_value(0)
        if self.codec == Codec.NONE:
            record = Record((self.last_offset, self.max_timestamp, key, value, ()))
            return iter((record,))
        if value is None:
            raise InvalidRecord(-1, "a compressed wrapper without value")
        return iter(self._unwrapped(decompress(self.codec, value, limit=limit, magic=self.magic)))

    def _unwrapped(self, payload: bytes) -> list[Record]:
        messages = list(_inner_messages(payload, self.magic))
        if not messages:
            raise InvalidRecord(-1, "a compressed wrapper without records")
        base_offset = 0
        if self.magic == 1 and self.last_offset != 0:
            base_offset = self.last_offset - messages[-1].last_offset
            if base_offset < 0:
                raise InvalidRecord(
                    len(messages) - 1,
                    f"offset {messages[-1].last_offset} in a wrapper of offset {self.last_offset}",
                )
        is_append_time = self.timestamp_type == TimestampType.LOG_APPEND_TIME
        return [
            Record(
                (
                    base_offset + message.last_offset,
                    self.max_timestamp if is_append_time else message.max_timestamp,
                    *message._key_and_value(index),
                    (),
                )
            )
            for index, message in enumerate(messages)
        ]

    def _key_and_value(self, index: int) -> tuple[bytes | None, bytes | None]:
        key, position = self._field(_FIELDS_POSITION[self.magic], index)
        value, position = self._field(position, index)
        if position != self.size:
            raise InvalidRecord(index, f"{self.size - position} bytes after the value")
        return key, value

    def _field(self, position: int, index: int) -> tuple[bytes | None, int]:
        end = position + _SIZE.size
        if end > self.size:
            raise InvalidRecord(index, "the message ends early")
        (size,) = _SIZE.unpack_from(self.buffer, position)
        if size < 0:
            return None, end
        if size > self.size - end:
            raise InvalidRecord(index, f"a field of {size} bytes, {self.size - end} remain")
        return bytes(self.buffer[end : end + size]), end + size

    def __repr__(self) -> str:
        return (
            f"LegacyBatch(last offset {self.last_offset}, magic {self.magic}, {self.size} bytes, "
            f"attributes {self.attributes:#x}, timestamp {self.max_timestamp})"
        )


def _inner_messages(payload: bytes, magic: int) -> Iterator[LegacyBatch]:
    view = memoryview(payload)
    position = 0
    index = 0
    while position < len(view):
        try:
            message = LegacyBatch(view, position)
        except CorruptBatch as error:
            raise InvalidRecord(index, str(error)) from None
        if message.magic != magic:
            raise InvalidRecord(index, f"magic {message.magic} inside magic {magic}")
        if message.codec != Codec.NONE:
            raise InvalidRecord(index, "a compressed message inside a compressed one")
        message.check_crc()
        yield message
        position += message.size
        index += 1


def encode_message(
    *,
    offset: int,
    magic: int,
    attributes: int = 0,
    timestamp: int = NO_TIMESTAMP,
    key: bytes | None,
    value: bytes | None,
) -> bytes:
    """Return one encoded message. With magic 0 the timestamp and its type are dropped."""
    if magic == 0:
        body = bytes((0, attributes & CODEC_MASK))
    else:
        body = bytes((1, attributes)) + timestamp.to_bytes(8, "big", signed=True)
    for field in (key, value):
        body += b"\xff\xff\xff\xff" if field is None else _SIZE.pack(len(field)) + field
    return _FRAME.pack(offset, 4 + len(body), zlib.crc32(body)) + body


def encode_wrapper(
    records: Iterable[Record],
    *,
    magic: int,
    codec: int,
    timestamp_type: int = TimestampType.CREATE_TIME,
) -> bytes:
    """Return one compressed wrapper of the records. Requires: there is at least one record."""
    records = list(records)
    first, last = records[0], records[-1]
    base_offset = first.offset if magic == 1 else 0
    attributes = (timestamp_type & 1) << 3
    inner = b"".join(
        [
            encode_message(
                offset=record.offset - base_offset,
                magic=magic,
                attributes=attributes,
                timestamp=record.timestamp,
                key=record.key,
                value=record.value,
            )
            for record in records
        ]
    )
    return encode_message(
        offset=last.offset,
        magic=magic,
        attributes=attributes | codec,
        timestamp=max(record.timestamp for record in records),
        key=None,
        value=compress(codec, inner, magic=magic),
    )
