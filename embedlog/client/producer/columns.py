"""`send_batch`: many records at once become record batches without touching each one.

Records are counted and cut by C loops; what is looked at one by one are keys, when they decide
the partition.
"""

from __future__ import annotations

from _bisect import bisect_right
from _operator import add
from itertools import accumulate

from embedlog.client.arguments import several, timestamp_ms
from embedlog.client.producer.accumulator import BATCH_OVERHEAD, headers_size
from embedlog.client.producer.batches import ProducerBatch
from embedlog.client.producer.records import (
    Acknowledgement,
    checked_headers,
    intercepted,
    serialized,
)
from embedlog.errors import KafkaError, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from embedlog.client.producer.batches import Delivery, Headers, PartitionQueue
    from embedlog.client.producer.sends import SendParts

    Given = tuple[
        Sequence[Any], Sequence[Any] | None, Sequence[int] | int, Sequence[Headers] | None
    ]
    """Values, keys, timestamps, headers."""


_RECORD_OVERHEAD = 36
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
        if count * _RECORD_OVERHEAD + self.payload_size + BATCH_OVERHEAD <= size_max:
            return [self]
        ends = list(accumulate(map(_RECORD_OVERHEAD.__add__, self._record_sizes())))
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
    size = columns.estimated_size()
    batch = ProducerBatch(topic, partition, delivery, created_ms=created_ms, size_limit=size)
    batch.is_bulk = True
    batch.size = size
    batch.values = columns.values  # type: ignore[assignment]
    batch.keys = columns.keys  # type: ignore[assignment]
    batch.headers = columns.headers  # type: ignore[assignment]
    stamps = columns.timestamps
    batch.timestamps = [stamps] if isinstance(stamps, int) else stamps  # type: ignore[assignment]
    batch.close()
    if not is_built or batch.encode_built(columns.value_sizes) is None:
        batch.values, batch.keys = columns.frozen()  # type: ignore[assignment]
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


class ColumnSends:
    """What one producer does with many records at once. As thread-safe as the producer is."""

    def __init__(self, parts: SendParts, *, is_built: bool) -> None:
        """`is_built`: encode in the call, as the broker is in this process."""
        self._parts = parts
        self._is_built = is_built
        self.refused_count = 0
        """Records that failed before they were in a batch."""

    def queue(self, topic: str, given: Given, partition: int | None) -> list[ProducerBatch]:
        """Queue records, as the batches that they become.

        What the cluster or a limit refuses is a failed batch, the last of its topic.

        Raises:
            ClosedError, SerializationError, TypeError, ValueError: see `Producer.send_batch`.
        """
        batches: list[ProducerBatch] = []
        chain = self._parts.interceptors
        if chain is None:
            self._queue(batches, topic, given, partition)
        else:
            for name, number, columns in intercepted(chain, topic, given, partition):
                try:
                    self._queue(batches, name, columns, number)
                except Exception as error:
                    self._tell_refused(name, number, error, len(columns[0]))
                    raise
        return batches

    def _queue(
        self, batches: list[ProducerBatch], topic: str, given: Given, partition: int | None
    ) -> None:
        columns = Columns(*self._serialized(topic, given))
        before = (given[1], given[0])
        if len(columns.values) == 0:
            return
        queued_count = 0
        divide = self._parts.destinations.divide
        try:
            for queue, records in divide(topic, columns, partition, before):
                for piece in records.pieces(self._parts.limits.size_max):
                    batches.append(self._add(queue, piece))
                    queued_count += len(piece.values)
        except (KafkaError, TimedOut) as error:
            refused = ProducerBatch.refused(topic, partition, error, self._parts.delivery)
            batches.append(refused)
            count = refused.record_count = len(columns.values) - queued_count
            self._parts.failures.add(refused)
            self.refused_count += count
            self._tell_refused(topic, partition, error, count)

    def _serialized(self, topic: str, given: Given) -> Given:
        values, keys, timestamps, headers = given
        if self._parts.serialize_value is not None:
            make = self._parts.serialize_value
            values = [serialized(make, value, "value", topic) for value in values]
        if self._parts.serialize_key is not None and keys is not None:
            make = self._parts.serialize_key
            keys = [serialized(make, key, "key", topic) for key in keys]
        return values, keys, timestamps, headers

    def _add(self, queue: PartitionQueue, columns: Columns) -> ProducerBatch:
        if len(columns.values) == 1:
            self._parts.limits.check(
                None if columns.keys is None else columns.keys[0],
                columns.values[0],
                None if columns.headers is None else columns.headers[0],
            )
        batch = make_batch(
            columns,
            queue.topic.name,
            queue.partition,
            self._parts.delivery,
            self._parts.clock.monotonic_ms(),
            is_built=self._is_built,
        )
        if self._parts.interceptors is not None:
            batch.is_bulk = False  # each record's metadata is asked for
            batch.call_for_each(Acknowledgement(self._parts.interceptors, None))
        accumulator = self._parts.accumulator
        if not accumulator.add_batch(queue, batch):
            self._parts.memory.until(lambda: accumulator.add_batch(queue, batch))
        return batch

    def _tell_refused(
        self, topic: str, partition: int | None, error: Exception, count: int
    ) -> None:
        if self._parts.interceptors is not None:
            failed = ProducerBatch.refused(topic, partition, error, self._parts.delivery)
            for _ in range(count):
                self._parts.interceptors.tell("on_acknowledgement", failed.metadata(0), error)
