"""Many records at once, as columns: they become record batches without touching each one.

Records are counted and cut by C loops; what is looked at one by one are keys, when they decide
the partition.
"""

from __future__ import annotations

from _bisect import bisect_right
from _operator import add
from itertools import accumulate

from embedlog.client.arguments import several, timestamp_ms
from embedlog.client.producer.batch import BatchRecords, ProducerBatch
from embedlog.client.producer.records import checked_headers
from embedlog.client.producer.sizes import BATCH_OVERHEAD, RECORD_OVERHEAD, headers_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from embedlog.client.producer.batch import Delivery, Headers
    from embedlog.client.producer.records import Given


_TYPICAL_OVERHEAD = 16
_PLAIN = {bytes, type(None)}
_INT = {int}


def own_columns(
    values: Any, keys: Any, timestamps: Any, headers: Any, *, wall_ms: Callable[[], int]
) -> Given:
    """What `send_batch` was given, checked, as lists that the caller cannot change any more.

    Values and keys themselves are looked at when they have been serialized. Copying the lists
    takes 4 ns a record.

    Raises:
        TypeError, ValueError: an argument is of the wrong kind, or out of range.
    """
    call = "send_batch"
    values = several(values, call, "values", "values")
    if keys is not None:
        keys = several(keys, call, "keys", "keys")
    if timestamps is None:
        timestamps = wall_ms()
    elif hasattr(timestamps, "__index__") or not hasattr(timestamps, "__iter__"):
        timestamps = timestamp_ms(timestamps, call, "timestamps")
    else:
        timestamps = several(timestamps, call, "timestamps", "timestamps, or one for all")
        if not _INT.issuperset(map(type, timestamps)) or min(timestamps, default=0) < 0:
            stamps = enumerate(timestamps)
            timestamps = [timestamp_ms(each, call, f"timestamps[{i}]") for i, each in stamps]
    if headers is not None:
        rows = several(headers, call, "headers", "headers, a list of pairs for each value")
        headers = [checked_headers(row) if row else () for row in rows]
    return values, keys, timestamps, headers


def unchanging(data: Any) -> Any:
    """A copy of a buffer that could be written to; anything else itself."""
    return bytes(data) if isinstance(data, bytearray | memoryview) else data


class Columns:
    """Records of one partition, as parallel sequences. `timestamps` is one number for all or one
    for each."""

    __slots__ = ("headers", "keys", "payload_size", "timestamps", "value_sizes", "values")

    def __init__(
        self,
        values: Sequence[Any],
        keys: Sequence[Any] | None,
        timestamps: int | Sequence[int],
        headers: Sequence[Headers] | None,
    ) -> None:
        self.values = values
        self.keys = keys
        self.timestamps = timestamps
        self.headers = headers
        count = len(values)
        for name, column in (("keys", keys), ("timestamps", timestamps), ("headers", headers)):
            if column is not None and not isinstance(column, int) and len(column) != count:
                raise ValueError(f"{len(column)} {name} for {count} values")
        self.value_sizes = sizes = _sizes(values, "value")
        """Their lengths, 0 for null, as the values themselves say."""
        # Counting equal ones takes a tenth of adding them up.
        is_uniform = count > 0 and sizes.count(sizes[0]) == count
        self.payload_size = count * sizes[0] if is_uniform else sum(sizes)
        """Bytes of all keys, values and headers."""
        if keys is not None:
            self.payload_size += sum(_sizes(keys, "key"))
        if headers is not None:
            self.payload_size += sum(map(headers_size, headers))

    def part(self, start: int, end: int) -> Columns:
        """Records [start, end)."""
        return Columns(
            self.values[start:end],
            None if self.keys is None else self.keys[start:end],
            self.timestamps if isinstance(self.timestamps, int) else self.timestamps[start:end],
            None if self.headers is None else self.headers[start:end],
        )

    def pick(self, indexes: Sequence[int]) -> Columns:
        """The records at `indexes`, in that order."""
        return Columns(
            [self.values[i] for i in indexes],
            None if self.keys is None else [self.keys[i] for i in indexes],
            self.timestamps
            if isinstance(self.timestamps, int)
            else [self.timestamps[i] for i in indexes],
            None if self.headers is None else [self.headers[i] for i in indexes],
        )

    def by_partition(self, partition_of: Callable[[Any, Any], int]) -> dict[int, Columns]:
        """The records of each partition; `partition_of(key, value)` says which."""
        keys = self.keys if self.keys is not None else [None] * len(self.values)
        indexes: dict[int, list[int]] = {}
        for index, (key, value) in enumerate(zip(keys, self.values, strict=True)):
            indexes.setdefault(partition_of(key, value), []).append(index)
        if len(indexes) == 1:
            return dict.fromkeys(indexes, self)
        return {partition: self.pick(chosen) for partition, chosen in indexes.items()}

    def pieces(self, size_max: int) -> list[Columns]:
        """Cut so that no piece takes more than `size_max` bytes, unless one record does."""
        count = len(self.values)
        if count * RECORD_OVERHEAD + self.payload_size + BATCH_OVERHEAD <= size_max:
            return [self]
        ends = list(accumulate(map(RECORD_OVERHEAD.__add__, self._record_sizes())))
        pieces: list[Columns] = []
        start, done = 0, 0
        while start < count:
            end = max(bisect_right(ends, done + size_max - BATCH_OVERHEAD), start + 1)
            pieces.append(self.part(start, end))
            start, done = end, ends[end - 1]
        return pieces

    def estimated_size(self) -> int:
        """About the bytes of the record batch, before compression."""
        return self.payload_size + len(self.values) * _TYPICAL_OVERHEAD + BATCH_OVERHEAD

    def frozen(self) -> tuple[Sequence[bytes | None], Sequence[bytes | None] | None]:
        """The values and the keys; of buffers that are not bytes, copies that cannot change.

        Raises:
            TypeError: one is neither bytes, another buffer, nor None.
        """
        keys = self.keys
        return _frozen(self.values, "value"), None if keys is None else _frozen(keys, "key")

    def _record_sizes(self) -> Iterable[int]:
        sizes: Iterable[int] = self.value_sizes
        if self.keys is not None:
            sizes = map(add, sizes, _sizes(self.keys, "key"))
        if self.headers is not None:
            sizes = map(add, sizes, [headers_size(each) for each in self.headers])
        return sizes


def make_batch(
    columns: Columns,
    topic: str,
    partition: int,
    delivery: Delivery,
    created_ms: int,
    *,
    is_built: bool,
) -> ProducerBatch:
    """A closed batch of these records, encoded already if `is_built` and they allow it.

    Raises:
        TypeError: a key or value is not bytes.
    """
    stamps = columns.timestamps
    records = BatchRecords(
        columns.values,  # type: ignore[arg-type]
        [stamps] if isinstance(stamps, int) else stamps,  # type: ignore[arg-type]
        columns.keys,  # type: ignore[arg-type]
        columns.headers,  # type: ignore[arg-type]
    )
    batch = ProducerBatch(
        topic,
        partition,
        delivery,
        records,
        created_ms=created_ms,
        size=columns.estimated_size(),
        size_limit=0,
    )
    batch.is_bulk = True
    batch.close()
    if not is_built or batch.encode_built(columns.value_sizes) is None:
        records.values, records.keys = columns.frozen()  # type: ignore[assignment]
    return batch


def _frozen(column: Sequence[Any], what: str) -> Sequence[bytes | None]:
    if _PLAIN.issuperset(map(type, column)):
        return column
    return [each if type(each) in _PLAIN else _copy(each, what) for each in column]


def _copy(buffer: Any, what: str) -> bytes:
    try:
        return bytes(memoryview(buffer))
    except TypeError:
        kind = type(buffer).__name__
        raise TypeError(f"a {what} is {kind}, not bytes: give a {what}.serializer") from None


def _sizes(column: Sequence[Any], what: str) -> list[int]:
    try:
        return list(map(len, column))
    except TypeError:
        return [0 if each is None else len(_copy(each, what)) for each in column]
