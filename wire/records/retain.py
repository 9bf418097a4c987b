"""Removing records from a batch, for log compaction. Offsets, sequences and producer stay the same.

The batch keeps its base offset and last offset delta even if its first or last record is removed,
because the next offset and the next sequence must not change. Records are copied byte for byte,
except for their timestamp deltas: the new base timestamp is the timestamp of the first remaining
record, or the delete horizon.
"""

from __future__ import annotations

from wire.records.batch import RecordBatch
from wire.records.encode.builder import seal
from wire.records.errors import InvalidRecord
from wire.records.format import (
    CHECKED_HEAD,
    CODEC_MASK,
    DECOMPRESSED_SIZE_MAX,
    DELETE_HORIZON_BIT,
    Codec,
    TimestampType,
)
from wire.records.varint import (
    MAX_VARINT_SIZE,
    MAX_VARLONG_SIZE,
    Malformed,
    encode_varint,
    int64,
    read_unsigned,
    read_varint,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


NO_TIMESTAMP = -1


def retain(
    batch: RecordBatch,
    indexes: Iterable[int],
    *,
    delete_horizon_ms: int | None = None,
    level: int | None = None,
    limit: int = DECOMPRESSED_SIZE_MAX,
) -> bytes:
    """Return a copy of `batch` with only the records at `indexes`, which are ascending.

    Without indexes, return only the header. Requires: the records are valid. Only their lengths are
    read.

    `delete_horizon_ms` is the time from which compaction may remove tombstones and markers of the
    batch (KIP-534); None keeps the stored time. The batch keeps its codec, at compression `level`.

    Raises:
        InvalidRecord, CorruptPayload, TooLarge, UnsupportedCodec: the batch cannot be read.
    """
    kept = list(indexes)
    if not kept:
        return empty_batch(batch)
    if delete_horizon_ms is None:
        delete_horizon_ms = batch.delete_horizon_ms
    data = bytes(batch.payload(limit))
    starts = _starts(data, batch.record_count)
    stamps = [
        int64(batch.base_timestamp + _timestamp_delta(data, starts[index])[0]) for index in kept
    ]
    base_timestamp = stamps[0] if delete_horizon_ms is None else delete_horizon_ms
    max_timestamp = max(stamps)
    if batch.timestamp_type == TimestampType.LOG_APPEND_TIME:
        max_timestamp = batch.max_timestamp
    attributes = batch.attributes
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
    if base_timestamp == batch.base_timestamp:
        records = b"".join([data[starts[index] : starts[index + 1]] for index in kept])
    else:
        records = b"".join(
            [
                _with_delta(data, starts[index], starts[index + 1], int64(stamp - base_timestamp))
                for index, stamp in zip(kept, stamps, strict=True)
            ]
        )
    if batch.codec != Codec.NONE:
        from wire.records.compression import compress

        records = compress(batch.codec, records, level)
    return _seal_as(
        batch,
        records,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=len(kept),
    )


def empty_batch(batch: RecordBatch) -> bytes:
    """Return a batch without records that has the offsets and sequences of `batch`."""
    return _seal_as(
        batch,
        b"",
        attributes=batch.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=batch.max_timestamp,
        record_count=0,
    )


def _seal_as(
    batch: RecordBatch,
    records: bytes,
    *,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    record_count: int,
) -> bytes:
    checked = CHECKED_HEAD.pack(
        attributes,
        batch.last_offset_delta,
        base_timestamp,
        max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        record_count,
    )
    return seal(batch.base_offset, batch.partition_leader_epoch, checked, [records])


def _starts(data: bytes, count: int) -> list[int]:
    """Return the start of each of `count` records, and the end of the last one.

    Lengths of one or two bytes are read without a call, which would cost 0.2 us.

    Raises:
        InvalidRecord: `data` holds fewer or more records, or a length is malformed.
    """
    starts = [0]
    position = 0
    try:
        for _ in range(count):
            length = data[position]
            position += 1
            if length > 0x7F:
                more = data[position]
                position += 1
                length = length & 0x7F | more << 7
                if more > 0x7F:
                    length, position = read_unsigned(data, starts[-1], MAX_VARINT_SIZE)
            if length & 1:
                raise Malformed(f"a length of {-(length >> 1) - 1}")
            position += length >> 1
            starts.append(position)
    except IndexError:
        raise InvalidRecord(len(starts) - 1, "the records end early") from None
    except Malformed as error:
        raise InvalidRecord(len(starts) - 1, str(error)) from None
    if position != len(data):
        raise InvalidRecord(-1, f"{count} records end at {position} of {len(data)} bytes")
    return starts


def _timestamp_delta(data: bytes, start: int) -> tuple[int, int, int]:
    """Return a record's timestamp delta, and the positions of its attributes and offset delta."""
    body = start
    while data[body] > 0x7F:
        body += 1
    body += 1
    delta, rest = read_varint(data, body + 1, MAX_VARLONG_SIZE)
    return delta, body, rest


def _with_delta(data: bytes, start: int, end: int, delta: int) -> bytes:
    """Return the record at data[start:end] with `delta` as its timestamp delta."""
    _, body, rest = _timestamp_delta(data, start)
    record = data[body : body + 1] + encode_varint(delta) + data[rest:end]
    return encode_varint(len(record)) + record
