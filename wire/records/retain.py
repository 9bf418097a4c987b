"""A batch with fewer records, for log compaction: offsets, sequences and producer stay.

The batch keeps its base offset and last offset delta even when the records that had them go: the
next offset and the next sequence must not change. Records are copied byte for byte, but for their
timestamp deltas: the base timestamp is that of the first record left, or the delete horizon.
"""

from __future__ import annotations

from wire.records.batch import (
    CHECKED_HEAD,
    CODEC_MASK,
    DECOMPRESSED_SIZE_MAX,
    DELETE_HORIZON_BIT,
    Codec,
    RecordBatch,
    TimestampType,
)
from wire.records.builder import seal
from wire.records.plain import parse_records
from wire.records.varint import (
    MAX_VARINT_SIZE,
    MAX_VARLONG_SIZE,
    encode_varint,
    int64,
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
    """Return `batch` with only the records at `indexes`, which ascend; with none it is a header.

    `delete_horizon_ms` is the time from which tombstones and markers in it may go (KIP-534); None
    keeps the one that is set. The codec stays, at compression `level`.

    Raises:
        InvalidRecord, CorruptPayload, TooLarge, UnsupportedCodec: as reading it.
    """
    kept = list(indexes)
    if not kept:
        return empty_batch(batch)
    if delete_horizon_ms is None:
        delete_horizon_ms = batch.delete_horizon_ms
    data = bytes(batch.payload(limit))
    deltas = [fields[0] for fields in parse_records(data, batch.record_count)]
    stamps = [int64(batch.base_timestamp + deltas[index]) for index in kept]
    base_timestamp = stamps[0] if delete_horizon_ms is None else delete_horizon_ms
    max_timestamp = max(stamps)
    if batch.timestamp_type == TimestampType.LOG_APPEND_TIME:
        max_timestamp = batch.max_timestamp
    attributes = batch.attributes
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
    starts = _starts(data, batch.record_count)
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
    """Return the header of `batch` without records: it still tells offsets and sequences."""
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
    """Return where each of `count` good records begins, and where the last one ends."""
    starts = [0]
    for _ in range(count):
        length, body = read_varint(data, starts[-1], MAX_VARINT_SIZE)
        starts.append(body + length)
    return starts


def _with_delta(data: bytes, start: int, end: int, delta: int) -> bytes:
    """Return the record at data[start:end] with another timestamp delta."""
    _, body = read_varint(data, start, MAX_VARINT_SIZE)
    found, rest = read_varint(data, body + 1, MAX_VARLONG_SIZE)
    if found == delta:
        return data[start:end]
    record = data[body : body + 1] + encode_varint(delta) + data[rest:end]
    return encode_varint(len(record)) + record
