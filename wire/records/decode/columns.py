"""Reading a batch as numpy columns, without an object for each record.

Positions point into `RecordColumns.buffer`, the payload of the batch. The payload of an
uncompressed batch is a view of its bytes, not a copy.
"""

from __future__ import annotations

from wire.records.decode.fields import cut
from wire.records.decode.runs import field_of
from wire.records.format import TimestampType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from wire.records.decode.fields import FieldArrays
    from wire.records.decode.runs import Run
    from wire.records.format import Batch
    from wire.records.record import Buffer

    Int64s = NDArray[np.int64]


class RecordColumns:
    """The offsets, timestamps, and positions of keys and values of the records of a batch.

    Each column is an int64 array of `count` items, made on first use. A null key or value has a
    negative size, and its position has no meaning.
    """

    __slots__ = ("_arrays", "_batch", "_cache", "_data", "buffer", "count", "runs")

    def __init__(
        self,
        batch: Batch,
        buffer: Buffer,
        data: bytes | memoryview,
        *,
        runs: list[Run] | None = None,
        arrays: FieldArrays | None = None,
    ) -> None:
        self.buffer = buffer
        self.count = batch.record_count
        self._batch = batch
        self.runs = runs or []
        """The runs that make up the batch (see `runs`); empty if it was read in another way."""
        self._arrays = arrays
        self._data = data  # the buffer, in the form that is fastest to read
        self._cache: dict[str, Int64s] = {}

    @property
    def offsets(self) -> Int64s:
        column = self._cache.get("offsets")
        if column is None:
            column = self._cache["offsets"] = self._make_offsets()
        return column

    @property
    def timestamps(self) -> Int64s:
        """The timestamp of each record in ms. With LogAppendTime it is the batch's timestamp."""
        return self._column("timestamps", self._make_timestamps)

    @property
    def key_positions(self) -> Int64s:
        return self._place("key_positions")

    @property
    def key_sizes(self) -> Int64s:
        return self._place("key_sizes")

    @property
    def value_positions(self) -> Int64s:
        return self._place("value_positions")

    @property
    def value_sizes(self) -> Int64s:
        return self._place("value_sizes")

    def keys(self) -> list[bytes | None]:
        """Return the keys, as copies."""
        if self._arrays is not None:
            return cut(self._data, self._arrays.key_positions, self._arrays.key_sizes)
        keys: list[bytes | None] = []
        for run in self.runs:
            keys += field_of(self._data, run, run.key_at, run.key_size)
        return keys

    def values(self) -> list[bytes | None]:
        """Return the values, as copies."""
        if self._arrays is not None:
            return cut(self._data, self._arrays.value_positions, self._arrays.value_sizes)
        values: list[bytes | None] = []
        for run in self.runs:
            values += field_of(self._data, run, run.value_at, run.value_size)
        return values

    def __len__(self) -> int:
        return self.count

    def _column(self, name: str, make: Callable[[], Int64s]) -> Int64s:
        column = self._cache.get(name)
        if column is None:
            column = self._cache[name] = make()
        return column

    def _place(self, name: str) -> Int64s:
        if self._arrays is not None:
            column: Int64s = getattr(self._arrays, name)
            return column
        return self._column(name, lambda: per_run(self.runs, self.count, RUN_PLACES[name]))

    def _make_offsets(self) -> Int64s:
        import numpy as np

        base_offset = self._batch.base_offset
        if self._arrays is not None:
            return self._arrays.offset_deltas + np.int64(base_offset)
        return np.arange(base_offset, base_offset + self.count, dtype=np.int64)

    def _make_timestamps(self) -> Int64s:
        import numpy as np

        if self._batch.timestamp_type == TimestampType.LOG_APPEND_TIME:
            return np.full(self.count, self._batch.max_timestamp, np.int64)
        base_timestamp = np.int64(self._batch.base_timestamp)
        if self._arrays is not None:
            return self._arrays.deltas + base_timestamp
        return per_run(self.runs, self.count, _deltas) + base_timestamp


def per_run(runs: list[Run], count: int, column_of: Callable[[Run], Int64s | int]) -> Int64s:
    """Join each run's `column_of(run)`, an array or one value, to a column of `count` records."""
    import numpy as np

    column = np.empty(count, np.int64)
    for run in runs:
        column[run.index : run.index + run.count] = column_of(run)
    return column


def _deltas(run: Run) -> Int64s | int:
    import numpy as np

    deltas = run.varying_deltas
    if type(deltas) is bytes and deltas:
        raw = np.frombuffer(deltas, np.uint8).astype(np.int64)
        return (raw >> 1) ^ -(raw & 1)
    return np.array(deltas, np.int64) if deltas else run.delta


def _positions(run: Run, at: int) -> Int64s:
    import numpy as np

    first = run.position + at
    return np.arange(first, first + run.count * run.stride, run.stride, dtype=np.int64)


RUN_PLACES: dict[str, Callable[[Run], Int64s | int]] = {
    "key_positions": lambda run: _positions(run, run.key_at),
    "key_sizes": lambda run: run.key_size,
    "value_positions": lambda run: _positions(run, run.value_at),
    "value_sizes": lambda run: run.value_size,
}
