"""Record batches as Arrow batches of the columns that Spark asked for.

A chunk of some megabytes is decoded at once. Keys and values are not cut out one by one: the bytes
of the chunk's batches are joined under one Arrow array whose elements are, in turn, a field and the
gap after it. Arrow's `take` of every second element copies the fields in C++.

    offsets   p0  p0+s0  p1  p1+s1 ...     elements   field 0, gap, field 1, gap ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from embedlog import ConsumerRecord
from wire.records.batch import RecordBatch
from wire.records.decode.lockstep import columns_of_batches

if TYPE_CHECKING:
    from wire.records.legacy import LegacyBatch
    from wire.records.record import Buffer, Record

    Batch = RecordBatch | LegacyBatch

    Int64s = NDArray[np.int64]

ROW_COUNT_MAX = 65_536
"""Rows of an Arrow batch. More rows are not faster, and Spark holds a whole batch in memory."""

_RECORDS_A_STEP = 10
"""Reading this many records with headers one by one takes as long as one step over all batches."""
_STEP_COUNT_MAX = 1_000
"""Batches with more records are decoded one at a time: see `wire.records.decode.lockstep`."""


class ArrowChunks:
    """Builds the Arrow batches of the offsets [start, end) of one partition.

    `schema` holds the columns in Spark's order. `next_offset` is the offset after the last record
    taken.
    """

    def __init__(
        self, schema: Any, topic: str, partition: int, start: int, end: int, *, size_max: int
    ) -> None:
        self.next_offset = self._start = start
        self._end = end
        self._schema = schema
        self._names: list[str] = schema.names
        self._topic = topic
        self._partition = partition
        self._size_max = size_max
        self.has_headers = "headers" in self._names
        self._columns = _Columns()
        self._waiting: list[tuple[RecordBatch, Buffer]] = []
        self._waiting_size = self._waiting_count = 0
        self._rows: list[tuple[Record | ConsumerRecord, int]] = []
        self._rows_size = 0

    def of_batches(self, batches: Iterable[Batch]) -> Iterator[Any]:
        """Take record batches; yield each `pyarrow.RecordBatch` that is full."""
        for batch in batches:
            self.next_offset = max(self.next_offset, batch.last_offset + 1)
            if not isinstance(batch, RecordBatch):
                yield from self._add_records(batch.records(), batch.timestamp_type)
                continue
            if not batch.record_count:
                continue  # compaction has emptied this batch
            yield from self._flush_rows()
            if batch.record_count > _STEP_COUNT_MAX:
                yield from self._read_waiting()
                yield from self._read_alone(batch)
                continue
            payload = batch.payload()
            self._waiting.append((batch, payload))
            self._waiting_size += len(payload)
            self._waiting_count += batch.record_count
            if self._waiting_size >= self._size_max or self._waiting_count >= ROW_COUNT_MAX:
                yield from self._read_waiting()

    def _read_waiting(self) -> Iterator[Any]:
        """Decode the waiting batches: together if they are many and small, else one by one."""
        batches = [batch for batch, _ in self._waiting]
        payloads = [payload for _, payload in self._waiting]
        self._waiting.clear()
        self._waiting_size = self._waiting_count = 0
        kinds = {batch.timestamp_type for batch in batches}
        longest = max((batch.record_count for batch in batches), default=0)
        # Lockstep decoding takes `longest` steps. A step costs about as much as one batch alone, or
        # as ten records with headers: use lockstep only if it is not slower.
        least = longest
        width = len(batches)
        if self.has_headers:
            width, least = sum(batch.record_count for batch in batches), longest * _RECORDS_A_STEP
        if len(kinds) == 1 and width >= least:
            together = columns_of_batches(batches, payloads, with_headers=self.has_headers)
            if together is not None:
                yield from self.add_columns(together, kinds.pop())
                return
        for batch in batches:
            yield from self._read_alone(batch)

    def _read_alone(self, batch: RecordBatch) -> Iterator[Any]:
        if not self.has_headers:
            yield from self.add_columns(batch.columns(), batch.timestamp_type)
            return
        yield from self._flush_columns()
        for record in batch.records():
            yield from self.add_record(record, batch.timestamp_type)

    def add_columns(self, columns: Any, timestamp_type: int) -> Iterator[Any]:
        """Take columns, as a consumer polls them; yield each Arrow batch that is full."""
        if len(columns.offsets):
            self.next_offset = max(self.next_offset, int(columns.offsets[-1]) + 1)
        self._columns.add(columns, timestamp_type, self._start, self._end)
        if self._columns.is_full(self._size_max):
            yield from self._flush_columns()

    def _add_records(self, records: Iterable[Record], timestamp_type: int) -> Iterator[Any]:
        yield from self._read_waiting()
        yield from self._flush_columns()
        for record in records:
            yield from self.add_record(record, timestamp_type)

    def add_record(self, record: Record | ConsumerRecord, timestamp_type: int) -> Iterator[Any]:
        """Take one record with its headers; yield the Arrow batch if it is full."""
        if not self._start <= record.offset < self._end:
            return
        self.next_offset = max(self.next_offset, record.offset + 1)
        self._rows.append((record, timestamp_type))
        self._rows_size += len(record.key or b"") + len(record.value or b"")
        if self._rows_size >= self._size_max or len(self._rows) >= ROW_COUNT_MAX:
            yield from self._flush_rows()

    def flush(self) -> Iterator[Any]:
        yield from self._read_waiting()
        yield from self._flush_rows()
        yield from self._flush_columns()

    def _flush_rows(self) -> Iterator[Any]:
        rows, self._rows, self._rows_size = self._rows, [], 0
        if rows:
            records = [record for record, _ in rows]
            made = {
                "key": [_bytes(each.key) for each in records],
                "value": [_bytes(each.value) for each in records],
                "offset": [each.offset for each in records],
                "timestamp": [_microseconds(each.timestamp) for each in records],
                "timestampType": [kind for _, kind in rows],
                "headers": [
                    [{"key": key, "value": _bytes(value)} for key, value in each.headers] or None
                    for each in records
                ],
            }
            yield self._batch(len(rows), made)

    def _flush_columns(self) -> Iterator[Any]:
        columns, self._columns = self._columns, _Columns()
        if columns.count:
            made = {name: columns.column(name) for name in self._names if name in _FROM_COLUMNS}
            if self.has_headers:
                made["headers"] = columns.headers()
            yield self._batch(columns.count, made)

    def _batch(self, count: int, made: dict[str, Any]) -> Any:
        made["topic"] = pa.repeat(pa.scalar(self._topic, pa.string()), count)
        made["partition"] = pa.repeat(pa.scalar(self._partition, pa.int32()), count)
        arrays = []
        for field in self._schema:
            array = made[field.name]
            if isinstance(array, list):
                array = pa.array(array, field.type)
            arrays.append(array if array.type == field.type else array.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


_MS_MAX = ((1 << 63) - 1) // 1000
"""The greatest time in ms that a timestamp of Spark holds: the year 294247. Others are null."""
_FROM_COLUMNS = ("key", "value", "offset", "timestamp", "timestampType")


class _Columns:
    """Columns of some batches, and the bytes that their positions point into."""

    def __init__(self) -> None:
        self.count = 0
        self._size = 0
        self._buffers: list[Any] = []
        self._parts: list[tuple[Any, slice, int, int]] = []
        """(columns of a batch, slice of its records, timestamp type, position of its bytes)."""

    def is_full(self, size_max: int) -> bool:
        return self._size >= size_max or self.count >= ROW_COUNT_MAX

    def add(self, columns: Any, timestamp_type: int, start: int, end: int) -> None:
        offsets = columns.offsets
        if not len(offsets):
            return
        first, last = 0, len(offsets)
        if offsets[0] < start or offsets[-1] >= end:
            first, last = (int(each) for each in np.searchsorted(offsets, (start, end)))
            if first >= last:
                return
        self._parts.append((columns, slice(first, last), timestamp_type, self._size))
        self._buffers.append(columns.buffer)
        self._size += len(columns.buffer)
        self.count += last - first

    def column(self, name: str) -> Any:
        if name == "offset":
            return pa.array(self._joined("offsets"))
        if name == "timestamp":
            times = self._joined("timestamps")
            beyond = (times > _MS_MAX) | (times < -_MS_MAX)
            made = pa.array(times * 1000, mask=beyond if beyond.any() else None)
            return made.cast(pa.timestamp("us", tz="UTC"))
        if name == "timestampType":
            kinds = np.array([kind for _, _, kind, _ in self._parts], np.int32)
            return pa.array(
                np.repeat(kinds, [part.stop - part.start for _, part, _, _ in self._parts])
            )
        return self._fields(name)

    def _joined(self, name: str) -> Int64s:
        return np.concatenate([getattr(each, name)[part] for each, part, _, _ in self._parts])

    def _fields(self, name: str) -> Any:
        return self._taken(
            np.concatenate(
                [getattr(each, f"{name}_positions")[part] + at for each, part, _, at in self._parts]
            ),
            self._joined(f"{name}_sizes"),
        )

    def headers(self) -> Any:
        """Return one list of structs for each record; null for a record without headers."""
        counts, ranges = [], []
        for each, part, _, at in self._parts:
            ends = each.header_counts.cumsum()
            first = int(ends[part.start - 1]) if part.start else 0
            ranges.append((each, slice(first, int(ends[part.stop - 1])), at))
            counts.append(each.header_counts[part])
        arrays = [
            self._taken(
                np.concatenate(
                    [getattr(e, f"header_{n}_positions")[r] + at for e, r, at in ranges]
                ),
                np.concatenate([getattr(e, f"header_{n}_sizes")[r] for e, r, _ in ranges]),
            )
            for n in ("key", "value")
        ]
        count = np.concatenate(counts)
        starts = np.concatenate(([0], count.cumsum())).astype(np.int32)
        offsets = pa.array(starts, mask=np.concatenate((count == 0, [False])))
        pairs = pa.StructArray.from_arrays([_text(arrays[0]), arrays[1]], ["key", "value"])
        return pa.ListArray.from_arrays(offsets, pairs)

    def _taken(self, positions: Int64s, sizes: Int64s) -> Any:
        if not len(sizes):
            return pa.array([], pa.binary())
        is_null = sizes < 0
        ends = positions + sizes
        if is_null.any():
            # A null has no position: place it where the field before it ended.
            ends = np.maximum.accumulate(np.where(is_null, 0, ends))
            positions = np.where(is_null, ends, positions)
        bounds = np.empty(2 * len(positions), np.int32)
        bounds[0::2] = positions
        bounds[1::2] = ends
        fields_and_gaps = pa.BinaryArray.from_buffers(
            pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), self._bytes()]
        )
        wanted = np.arange(0, len(bounds), 2)
        mask = is_null if is_null.any() else None
        return fields_and_gaps.take(pa.array(wanted, mask=mask))

    def _bytes(self) -> Any:
        if len(self._buffers) > 1:
            self._buffers = [b"".join(self._buffers)]
        return pa.py_buffer(self._buffers[0])


def _text(names: Any) -> Any:
    """Return header names as text; invalid UTF-8 is replaced, as Java does."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([str(each, "utf-8", "replace") for each in names.to_pylist()], pa.string())


def _bytes(field: Any) -> bytes | None:
    return None if field is None else bytes(field)


def _microseconds(time_ms: int) -> int | None:
    return time_ms * 1000 if abs(time_ms) <= _MS_MAX else None
