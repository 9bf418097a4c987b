"""The records of a batch as tuples, as fast as their layout allows."""

from __future__ import annotations

from itertools import repeat
from struct import Struct

from wire.records.batch import (
    DECOMPRESSED_SIZE_MAX,
    TIMESTAMP_TYPE_BIT,
    RecordBatch,
    TimestampType,
)
from wire.records.decode.fast.strides.layout import COUNT_MIN as RUNS_COUNT_MIN
from wire.records.decode.fast.strides.layout import find_runs, in_fastest_form
from wire.records.decode.fast.uniform.shapes import COUNT_MAX, cut, timestamps_with
from wire.records.decode.fast.uniform.template import find_plain_runs
from wire.records.decode.loop import parse_records, read_headers
from wire.records.decode.rows import NO_ROWS, Rows, rows_of
from wire.records.varint import int64, timestamps_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wire.records.decode.fast.chain.varying import FieldArrays
    from wire.records.decode.fast.strides.layout import Run
    from wire.records.record import Buffer, RecordTuple

# Records are unpacked so many at a time; runs break at 64 anyway.
CHUNK = 64
UNPACKERS_MAX = 256
# From so many on, numpy cuts them out faster.
GATHER_COUNT_MIN = 400


def tuples(batch: RecordBatch, limit: int = DECOMPRESSED_SIZE_MAX) -> list[RecordTuple]:
    """Return (offset, timestamp, key, value, headers) of every record, in their order.

    Plain tuples, which are half the price of `Record` objects; keys and values are copies.

    Raises:
        InvalidRecord: a record is malformed, or their number differs from the declared one.
        CorruptPayload, TooLarge, UnsupportedCodec: the records cannot be decompressed.
    """
    return list(rows(batch, limit))


def rows(batch: RecordBatch, limit: int = DECOMPRESSED_SIZE_MAX) -> Rows:
    """As `tuples`, but the tuples yet to be made.

    All errors come here, none while iterating.
    """
    count = batch.record_count
    if count == 0:
        return NO_ROWS
    payload = batch.payload(limit)
    found = cut(payload, 0, len(payload), count)
    if found is not None:
        keys, values, deltas = found
        stamps = timestamps_with(batch.base_timestamp, deltas)
        if batch.attributes & TIMESTAMP_TYPE_BIT:
            stamps = repeat(batch.max_timestamp)
        offsets = range(batch.base_offset, batch.base_offset + count)
        return Rows(offsets, stamps, repeat(None) if keys is None else keys, values)
    if count < RUNS_COUNT_MIN:
        return rows_of(_plain_tuples(batch, payload))
    if count > COUNT_MAX:
        view = memoryview(payload)
        runs = find_plain_runs(view, count)
        if runs is not None:
            return _run_rows(batch, view, runs)
    data = in_fastest_form(payload, count)
    runs = find_runs(data, count)
    if runs is not None:
        return _run_rows(batch, data, runs)
    from wire.records.decode.fast.chain.varying import find_fields

    fields = find_fields(data, count)
    if fields is not None:
        return _field_rows(batch, data, fields)
    return rows_of(_plain_tuples(batch, data))


def _run_rows(batch: RecordBatch, data: bytes | memoryview, runs: list[Run]) -> Rows:
    timestamps: Iterable[int]
    if batch.timestamp_type == TimestampType.LOG_APPEND_TIME:
        timestamps = repeat(batch.max_timestamp)
    elif any(run.raw_deltas or run.delta != runs[0].delta for run in runs):
        timestamps = [stamp for run in runs for stamp in _timestamps(batch.base_timestamp, run)]
    else:
        timestamps = repeat(int64(batch.base_timestamp + runs[0].delta))
    offsets = range(batch.base_offset, batch.base_offset + batch.record_count)
    if all(run.key_size < 0 for run in runs):
        values: list[bytes | None] = []
        for run in runs:
            values += field_of(data, run, run.value_at, run.value_size)
        return Rows(offsets, timestamps, repeat(None), values)
    keys: list[bytes | None] = []
    values = []
    for run in runs:
        run_keys, run_values = keys_and_values(data, run)
        keys += run_keys
        values += run_values
    return Rows(offsets, timestamps, keys, values)


def _timestamps(base_timestamp: int, run: Run) -> Iterable[int]:
    if not run.raw_deltas:
        return repeat(int64(base_timestamp + run.delta), run.count)
    stamps = timestamps_of(base_timestamp, list(run.decoded_deltas.values()))
    stamp_of = dict(zip(run.decoded_deltas, stamps, strict=True))
    return map(stamp_of.__getitem__, run.raw_deltas)


def _field_rows(batch: RecordBatch, data: bytes | memoryview, fields: FieldArrays) -> Rows:
    from wire.records.decode.fast.chain.varying import cut

    timestamps: Iterable[int]
    if batch.timestamp_type == TimestampType.LOG_APPEND_TIME:
        timestamps = repeat(batch.max_timestamp)
    else:
        # Sums of 64-bit integers wrap around, as they should.
        timestamps = (fields.deltas + batch.base_timestamp).tolist()
    keys: Iterable[bytes | None] = repeat(None)
    if int(fields.key_sizes.max()) >= 0:
        keys = cut(data, fields.key_positions, fields.key_sizes)
    values = cut(data, fields.value_positions, fields.value_sizes)
    return Rows((fields.offset_deltas + batch.base_offset).tolist(), timestamps, keys, values)


def keys_and_values(
    data: bytes | memoryview, run: Run
) -> tuple[Iterable[bytes | None], Iterable[bytes | None]]:
    """Return the keys and the values of a run, as copies."""
    if run.key_size < 0:
        return repeat(None, run.count), field_of(data, run, run.value_at, run.value_size)
    if run.value_size < 0:
        return field_of(data, run, run.key_at, run.key_size), repeat(None, run.count)
    fields = _unpack(data, run, ((run.key_at, run.key_size), (run.value_at, run.value_size)))
    return fields[0::2], fields[1::2]


def field_of(data: bytes | memoryview, run: Run, at: int, size: int) -> Iterable[bytes | None]:
    """Return the field that stands `at` bytes into each record, as copies."""
    if size < 0:
        return repeat(None, run.count)
    if run.count < GATHER_COUNT_MIN or size == 0:
        return _unpack(data, run, ((at, size),))
    import numpy as np

    # One loop in C for all.
    fields: list[bytes | None] = np.ndarray(
        (run.count,), f"V{size}", data, run.position + at, (run.stride,)
    ).tolist()
    return fields


def _unpack(
    data: bytes | memoryview, run: Run, places: tuple[tuple[int, int], ...]
) -> Sequence[bytes]:
    """Return the fields at `places` of all records of the run, record by record."""
    position = run.position
    stride = run.stride
    chunks, rest = divmod(run.count, CHUNK)
    fields: list[bytes] = []
    if chunks:
        unpack_from = _unpacker(stride, places, CHUNK).unpack_from
        for _ in range(chunks):
            fields += unpack_from(data, position)
            position += CHUNK * stride
    for size in (16, 1):
        parts, rest = divmod(rest, size)
        if parts:
            unpack_from = _unpacker(stride, places, size).unpack_from
            for _ in range(parts):
                fields += unpack_from(data, position)
                position += size * stride
    return fields


_unpackers: dict[tuple[int, tuple[tuple[int, int], ...], int], Struct] = {}


def _unpacker(stride: int, places: tuple[tuple[int, int], ...], count: int) -> Struct:
    """Return what cuts the fields at `places` out of `count` records in one call."""
    unpacker = _unpackers.get((stride, places, count))
    if unpacker is None:
        position = 0
        form = ""
        for at, size in places:
            form += f"{at - position}x{size}s"
            position = at + size
        unpacker = Struct((form + f"{stride - position}x") * count)
        if len(_unpackers) >= UNPACKERS_MAX:
            _unpackers.clear()
        _unpackers[stride, places, count] = unpacker
    return unpacker


def _plain_tuples(batch: RecordBatch, data: Buffer) -> list[RecordTuple]:
    if type(data) is not bytes:
        data = bytes(data)
    base_offset = batch.base_offset
    parsed = parse_records(data, batch.record_count)
    timestamps: Iterable[int]
    if batch.timestamp_type == TimestampType.LOG_APPEND_TIME:
        timestamps = repeat(batch.max_timestamp)
    else:
        timestamps = timestamps_of(batch.base_timestamp, [fields[0] for fields in parsed])
    records: list[RecordTuple] = []
    for timestamp, fields in zip(timestamps, parsed):  # noqa: B905  the first may be endless
        _, offset, key_at, key_size, value_at, value_size, header_count, headers_at = fields
        records.append(
            (
                base_offset + offset,
                timestamp,
                None if key_size < 0 else data[key_at : key_at + key_size],
                None if value_size < 0 else data[value_at : value_at + value_size],
                read_headers(data, headers_at, header_count) if header_count else (),
            )
        )
    return records
