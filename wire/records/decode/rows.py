"""`Rows`: records as columns of Python values, which become tuples during iteration."""

from __future__ import annotations

from itertools import islice, repeat

from wire.records.decode.loop import parse_records, read_headers
from wire.records.decode.runs import field_of, keys_and_values
from wire.records.format import TimestampType
from wire.records.varint import int64, timestamps_of, timestamps_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeVar

    from wire.records.decode.fields import FieldArrays
    from wire.records.decode.runs import Run
    from wire.records.format import Batch
    from wire.records.known import Known
    from wire.records.record import Buffer, Headers, RecordTuple

    T = TypeVar("T")


class Rows:
    """The records of one or more batches, as columns.

    `offsets` has one item per record. Any other field is a sequence of the same length, or an
    endless `repeat` of the common value. Each iteration makes new tuples, (offset, timestamp, key,
    value, headers).

    >>> rows = Rows(range(5, 8), repeat(1700000000000), repeat(None), [b"a", b"b", b"c"])
    >>> list(rows.part(1, 2))
    [(6, 1700000000000, None, b'b', ())]
    """

    __slots__ = ("headers", "keys", "offsets", "timestamps", "values")

    def __init__(
        self,
        offsets: Sequence[int],
        timestamps: Iterable[int],
        keys: Iterable[bytes | None],
        values: Iterable[bytes | None],
        headers: Iterable[Headers] = repeat(()),  # noqa: B008  endless and stateless
    ) -> None:
        self.offsets = offsets
        self.timestamps = timestamps
        self.keys = keys
        self.values = values
        self.headers = headers

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[RecordTuple]:
        # The offsets come first, because they end the zip: other columns may be endless.
        return zip(  # noqa: B905
            self.offsets, self.timestamps, self.keys, self.values, self.headers
        )

    def value_list(self) -> list[bytes | None]:
        """Return the values of all records in a new list."""
        return [value for _, value in zip(self.offsets, self.values)]  # noqa: B905

    def part(self, start: int, stop: int) -> Rows:
        """Return the records at the indexes from `start` to `stop` - 1, as far as they exist."""
        return Rows(
            self.offsets[start:stop],
            _part(self.timestamps, start, stop),
            _part(self.keys, start, stop),
            _part(self.values, start, stop),
            _part(self.headers, start, stop),
        )


def rows_of(records: Sequence[RecordTuple]) -> Rows:
    """Convert tuples of records to `Rows`."""
    return Rows(*zip(*records, strict=True)) if records else NO_ROWS


def joined(parts: list[Rows]) -> Rows:
    """Return the records of all parts, in order.

    >>> first = Rows(range(5, 7), repeat(1), repeat(None), [b"a", b"b"])
    >>> later = Rows(range(9, 10), repeat(2), [b"k"], [b"c"])
    >>> list(joined([first, later]))[1:]
    [(6, 1, None, b'b', ()), (9, 2, b'k', b'c', ())]
    """
    if len(parts) == 1:
        return parts[0]
    offsets: list[int] = []
    for part in parts:
        offsets += part.offsets
    sizes = [len(part.offsets) for part in parts]
    return Rows(
        offsets,
        _joined([part.timestamps for part in parts], sizes),
        _joined([part.keys for part in parts], sizes),
        _joined([part.values for part in parts], sizes),
        _joined([part.headers for part in parts], sizes),
    )


def _joined(fields: list[Iterable[T]], sizes: list[int]) -> Iterable[T]:
    if set(map(type, fields)) == {repeat}:
        common: list[T] = list(map(next, fields))  # type: ignore[arg-type]
        if common.count(common[0]) == len(common):
            return fields[0]
    found: list[T] = []
    for field, size in zip(fields, sizes, strict=True):
        found += islice(field, size) if type(field) is repeat else field
    return found


def _part(field: Iterable[T], start: int, stop: int) -> Iterable[T]:
    if type(field) is repeat:
        return field
    sequence: Sequence[T] = field  # type: ignore[assignment]
    return sequence[start:stop]


NO_ROWS = Rows((), (), (), (), ())


def run_rows(batch: Batch, data: bytes | memoryview, runs: list[Run], known: Known) -> Rows:
    """Return the records of a batch whose payload consists of these runs."""
    timestamps: Iterable[int]
    if batch.timestamp_type == TimestampType.LOG_APPEND_TIME:
        timestamps = repeat(batch.max_timestamp)
    elif any(run.varying_deltas or run.delta != runs[0].delta for run in runs):
        timestamps = [stamp for run in runs for stamp in _timestamps(batch.base_timestamp, run)]
    else:
        timestamps = repeat(int64(batch.base_timestamp + runs[0].delta))
    offsets = range(batch.base_offset, batch.base_offset + batch.record_count)
    if all(run.key_size < 0 for run in runs):
        values: list[bytes | None] = []
        for run in runs:
            values += field_of(data, run, run.value_at, run.value_size, known)
        return Rows(offsets, timestamps, repeat(None), values)
    keys: list[bytes | None] = []
    values = []
    for run in runs:
        run_keys, run_values = keys_and_values(data, run, known)
        keys += run_keys
        values += run_values
    return Rows(offsets, timestamps, keys, values)


def _timestamps(base_timestamp: int, run: Run) -> Iterable[int]:
    deltas = run.varying_deltas
    if not deltas:
        return repeat(int64(base_timestamp + run.delta), run.count)
    if type(deltas) is bytes:
        return timestamps_with(base_timestamp, deltas)
    return timestamps_of(base_timestamp, deltas)


def field_rows(batch: Batch, data: bytes | memoryview, fields: FieldArrays) -> Rows:
    """Return the records of a batch whose fields are at these positions."""
    from wire.records.decode.fields import cut

    timestamps: Iterable[int]
    if batch.timestamp_type == TimestampType.LOG_APPEND_TIME:
        timestamps = repeat(batch.max_timestamp)
    else:
        # Sums of 64-bit integers wrap around, as in Java.
        timestamps = (fields.deltas + batch.base_timestamp).tolist()
    keys: Iterable[bytes | None] = repeat(None)
    if int(fields.key_sizes.max()) >= 0:
        keys = cut(data, fields.key_positions, fields.key_sizes)
    values = cut(data, fields.value_positions, fields.value_sizes)
    return Rows((fields.offset_deltas + batch.base_offset).tolist(), timestamps, keys, values)


def plain_tuples(batch: Batch, data: Buffer) -> list[RecordTuple]:
    """Return the records of a batch, read by the plain loop.

    Raises:
        InvalidRecord: a record is malformed, or the number of records is not the declared one.
    """
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
    for timestamp, fields in zip(timestamps, parsed):  # noqa: B905  `timestamps` may be endless
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
