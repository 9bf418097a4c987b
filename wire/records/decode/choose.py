"""Choosing how to read the records of a batch. Only this file chooses.

A *form* is one implementation of reading. The forms are tried in the order of the table, until one
proves that its result equals the result of the plain loop. The last column tells how many times as
long reading takes without that form:

    records together            form      time without the form
    several batches of a shape  uniform   1 x 100 B a batch 3.1, 15 x 1 KiB 1.35
    up to 400, of a shape       uniform   15 x 1 KiB 4.7, 100 x 100 B 2.5, to scan 4.9
    more, of a known layout     layouts   1,000 x 100 B to scan 2.8, and nothing is copied
    8 and more in runs          runs      1,000 x 100 B 7, with keys 4, to scan 15
    100 and more of any sizes   chain     1,000 varying 3.5, to scan 5.9
    all others, malformed too   loop      defines validity, and finds the errors

Columns need numpy anyway. So `next_columns` and `columns` try a known layout first: of several
batches together (15 x 1 KiB: 2.8), then of one (100 x 100 B: 2.6). `lockstep` reads the columns of
many small batches.
"""

from __future__ import annotations

from itertools import repeat

from wire.records.decode.loop import NO_HEADER_LIMIT, parse_records
from wire.records.decode.rows import NO_ROWS, Rows, field_rows, plain_tuples, rows_of, run_rows
from wire.records.decode.runs import COUNT_MIN as RUNS_COUNT_MIN
from wire.records.decode.runs import find_runs, in_fastest_form
from wire.records.decode.scan import (
    ScanResult,
    scan_deltas,
    scan_fields,
    scan_plainly,
    scan_runs,
)
from wire.records.decode.uniform import COUNT_MAX, cut, shape_of
from wire.records.decode.uniform import next_rows as next_rows
from wire.records.format import (
    CODEC_MASK,
    DECOMPRESSED_SIZE_MAX,
    HEADER_SIZE,
    TIMESTAMP_TYPE_BIT,
)
from wire.records.known import KNOWN, Known
from wire.records.varint import timestamps_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.records.decode.columns import RecordColumns
    from wire.records.decode.fields import FieldArrays
    from wire.records.decode.layouts import AlikeColumns
    from wire.records.decode.runs import Run
    from wire.records.format import Batch
    from wire.records.record import Buffer, RecordTuple


def tuples(batch: Batch, limit: int = DECOMPRESSED_SIZE_MAX) -> list[RecordTuple]:
    """Return (offset, timestamp, key, value, headers) of every record, in order.

    Plain tuples take half the time of `Record` objects. Keys and values are copies.

    Raises:
        InvalidRecord: a record is malformed, or the number of records is not the declared one.
        CorruptPayload, TooLarge, UnsupportedCodec: the records cannot be decompressed.
    """
    return list(rows(batch, limit))


def rows(batch: Batch, limit: int = DECOMPRESSED_SIZE_MAX, known: Known = KNOWN) -> Rows:
    """Return the same records as `tuples`, as columns that become tuples during iteration.

    All errors are raised by this call, before the iteration.
    """
    count = batch.record_count
    if count == 0:
        return NO_ROWS
    payload = batch.payload(limit)
    found = cut(payload, 0, len(payload), count, known)
    if found is not None:
        keys, values, deltas = found
        stamps = timestamps_with(batch.base_timestamp, deltas)
        if batch.attributes & TIMESTAMP_TYPE_BIT:
            stamps = repeat(batch.max_timestamp)
        offsets = range(batch.base_offset, batch.base_offset + count)
        return Rows(offsets, stamps, repeat(None) if keys is None else keys, values)
    if count < RUNS_COUNT_MIN:
        return rows_of(plain_tuples(batch, payload))
    data, runs, fields = _find(payload, count, known, is_numpy_wanted=count > COUNT_MAX)
    if runs is not None:
        return run_rows(batch, data, runs, known)
    if fields is not None:
        return field_rows(batch, data, fields)
    return rows_of(plain_tuples(batch, data))


def scan(
    batch: Batch,
    limit: int = DECOMPRESSED_SIZE_MAX,
    header_count_max: int = NO_HEADER_LIMIT,
    known: Known = KNOWN,
) -> ScanResult:
    """Check every record of `batch`; return the facts that the checks of an append need.

    Raises as `tuples` does, and:
        TooManyHeaders: all records together have more than `header_count_max` headers.
    """
    count = batch.record_count
    if count == 0:
        return ScanResult(-1, -1, -1, True)
    payload = batch.payload(limit)
    base_timestamp = batch.base_timestamp
    shape = shape_of(payload, 0, len(payload), count, known)
    if shape is not None:
        deltas = shape.deltas(payload, 0)
        if deltas is not None:
            return scan_deltas(deltas, base_timestamp, 0 if not shape.has_keys else -1)
    data, runs, fields = _find(payload, count, known, is_numpy_wanted=count > COUNT_MAX)
    if runs is not None:
        return scan_runs(runs, base_timestamp)
    if fields is not None:
        return scan_fields(fields, count, base_timestamp)
    return scan_plainly(data, count, base_timestamp, header_count_max)


def columns(
    batch: Batch, limit: int = DECOMPRESSED_SIZE_MAX, known: Known = KNOWN
) -> RecordColumns:
    """Return the columns of `batch`, after checking every record. Headers are left out.

    Raises as `tuples` does.
    """
    from wire.records.decode.columns import RecordColumns
    from wire.records.decode.fields import fields_of

    count = batch.record_count
    if count == 0:
        return RecordColumns(batch, b"", b"", runs=[])
    if batch.attributes & CODEC_MASK:
        payload = batch.payload(limit)
    else:
        payload = batch.buffer[HEADER_SIZE:]
    data, runs, fields = _find(payload, count, known, is_numpy_wanted=True)
    if runs is not None:
        return RecordColumns(batch, payload, data, runs=runs)
    if fields is None:
        fields = fields_of(parse_records(data, count))
    return RecordColumns(batch, payload, data, arrays=fields)


def next_columns(
    view: memoryview,
    position: int,
    *,
    offset: int,
    count_max: int,
    check_crcs: bool,
    known: Known = KNOWN,
) -> AlikeColumns | None:
    """Return the columns of the batches at `position`, or None: see `layouts.find_alike`.

    If the result is None, the caller reads the first batch with `columns`, which learns its layout.
    """
    from wire.records.decode.layouts import find_alike

    return find_alike(
        view, position, offset=offset, count_max=count_max, check_crcs=check_crcs, known=known
    )


def _find(
    payload: Buffer, count: int, known: Known, *, is_numpy_wanted: bool
) -> tuple[bytes | memoryview, list[Run] | None, FieldArrays | None]:
    """Return (payload, perhaps copied; runs or None; fields or None).

    If both are None, the caller uses the plain loop. With `is_numpy_wanted` try a known layout
    first, which needs numpy but no copy of the payload. Small batches do not justify the import.
    """
    if count < RUNS_COUNT_MIN:
        return in_fastest_form(payload, count), None, None
    if is_numpy_wanted:
        from wire.records.decode.layouts import known_runs, remember

        view = payload if type(payload) is bytes else memoryview(payload)
        runs = known_runs(view, count, known)
        if runs is not None:
            return view, runs, None
    data = in_fastest_form(payload, count)
    runs = find_runs(data, count, known)
    if runs is not None:
        if is_numpy_wanted:
            remember(data, runs, count, known)
        return data, runs, None
    from wire.records.decode.chain import find_fields

    return data, None, find_fields(data, count)
