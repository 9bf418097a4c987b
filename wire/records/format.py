"""The record batch, magic 2: the unit of the wire, of the disk and of replication.

    position  size  field
    0         8     baseOffset            the leader writes it; outside the checksum
    8         4     batchLength           bytes after this field; outside the checksum
    12        4     partitionLeaderEpoch  the leader writes it; outside the checksum
    16        1     magic = 2             at the same place in every format
    17        4     crc                   CRC-32C of the bytes from 21 to the end
    21        2     attributes            bits 0-2 codec, 3 timestamp type, 4 transactional,
                                          5 control, 6 baseTimestamp is a delete horizon
    23        4     lastOffsetDelta       survives compaction, as does baseOffset
    27        8     baseTimestamp
    35        8     maxTimestamp
    43        8     producerId            -1: none
    51        2     producerEpoch         -1: none
    53        4     baseSequence          -1: none
    57        4     recordsCount          0 only after compaction emptied the batch
    61        ...   records               plain, or one compressed stream of them all

A record inside (lengths and deltas are zig-zag varints):

    length | attributes int8 | timestampDelta | offsetDelta | keyLength | key | valueLength | value
    | headerCount | headerCount x (keyLength | key | valueLength | value)
"""

from __future__ import annotations

from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from wire.records.record import Buffer

    class Batch(Protocol):
        """The parts of a `RecordBatch` that `decode/` uses. (`batch.py` imports `decode/`.)"""

        attributes: int
        base_offset: int
        base_timestamp: int
        buffer: memoryview
        max_timestamp: int
        record_count: int

        @property
        def timestamp_type(self) -> int: ...

        def payload(self, limit: int = ...) -> Buffer: ...


LOG_OVERHEAD = 12
HEADER_SIZE = 61
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21  # the checksum covers the bytes from here on
MAX_TIMESTAMP_POSITION = 35
PRODUCER_POSITION = 43  # producer id, producer epoch and base sequence

HEADER = Struct(">qiibIhiqqqhii")
FRAME_HEAD = Struct(">qiibI")  # the header up to and with the crc
CHECKED_HEAD = Struct(">hiqqqhii")  # the header after the crc
PRODUCER = Struct(">qhi")
ENTRY_HEAD = Struct(">qiib")  # offset, size after LOG_OVERHEAD, epoch (or legacy crc), magic
LENGTH_MIN = 14  # the size of the smallest entry: a magic 0 message with null key and null value
SEQUENCE_MAX = 0x7FFF_FFFF

CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

DECOMPRESSED_SIZE_MAX = 2_147_483_639
"""Default limit of a decompressed batch: the greatest value of max.decompressed.message.bytes, so
that every batch that a broker accepted can be read."""


class Codec:
    """Compression codecs, as bits 0-2 of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")


class TimestampType:
    """The source of a batch's timestamps, bit 3 of the attributes; magic 0 has no timestamps."""

    NONE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1
