"""The results of a poll: records, batches and columns."""

from __future__ import annotations

from itertools import chain, repeat

from embedlog.common import TopicPartition
from wire.records.decode.rows import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, Final, TypeAlias

    from wire.records.decode.columns import RecordColumns
    from wire.records.decode.rows import Rows
    from wire.records.record import RecordTuple

    Chunk: TypeAlias = "list[ConsumerRecord] | RecordChunk"

    _RecordBase = tuple[str, int, int, int, int, int, Any, Any, Sequence[tuple[str, bytes | None]]]

    def _field(index: int, doc: str) -> Any: ...
else:
    # `namedtuple` makes its fields with this. A field takes two thirds of the time of a property.
    from _collections import _tuplegetter as _field

    _RecordBase = tuple


JOINED_SIZE_MAX = 48
"""More rows than this begin a new `RecordChunk`: adding them to the last one would take longer."""


class ConsumerRecord(_RecordBase):
    """One record and its origin: a tuple with named fields, cheap to create by the million.

    (topic, partition, leader_epoch, timestamp_type, offset, timestamp, key, value, headers)

    `timestamp_type` is 0 if the producer set the timestamp, 1 if the broker set it at append, -1 if
    there is none. `key` and `value` are bytes or None, or the results of the deserializers.

    >>> embedlog.ConsumerRecord(("events", 0, 0, 0, 7, 1700000000000, b"key", b"value", ()))
    ConsumerRecord('events', 0, offset 7, key=b'key', value=b'value')
    """

    __slots__ = ()

    topic: Final[str] = _field(0, "")
    partition: Final[int] = _field(1, "")
    leader_epoch: Final[int] = _field(2, "")
    timestamp_type: Final[int] = _field(3, "")
    offset: Final[int] = _field(4, "")
    timestamp: Final[int] = _field(5, "")
    key: Final[Any] = _field(6, "")
    value: Final[Any] = _field(7, "")
    headers: Final[Sequence[tuple[str, bytes | None]]] = _field(8, "")

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord({self.topic!r}, {self.partition}, offset {self.offset}, "
            f"key={self.key!r}, value={self.value!r})"
        )


class RecordChunk:
    """Records whose first four fields are equal. Iteration creates each record when it is needed.

    So the application can release each record before the next is created. Thousands of records
    alive at once would cost twice as much, because of fresh memory and garbage collection.
    """

    __slots__ = ("_parts", "_size", "head")

    def __init__(self, head: tuple[str, int, int, int]) -> None:
        """`head` is the first four fields of every record."""
        self.head = head
        self._parts: list[Rows] = []
        self._size = 0

    def add(self, rows: Rows, size: int) -> None:
        """Append `rows`, which has `size` records."""
        self._parts.append(rows)
        self._size += size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[ConsumerRecord]:
        # Join many small batches first: to set up a chain of iterators costs as much as 15 records.
        rows = joined(self._parts)
        fields = (rows.offsets, rows.timestamps, rows.keys, rows.values, rows.headers)
        return map(ConsumerRecord, zip(*map(repeat, self.head), *fields))  # noqa: B905


class ConsumerRecords:
    """The records of one poll by partition. Iteration yields them partition by partition.

    >>> records = ConsumerRecords({})
    >>> len(records), list(records)
    (0, [])
    """

    __slots__ = ("_by_partition",)

    def __init__(self, by_partition: dict[TopicPartition, list[Chunk]]) -> None:
        self._by_partition = by_partition

    @staticmethod
    def of_records(records: Iterable[ConsumerRecord]) -> ConsumerRecords | None:
        """Group records by partition; None if an item is no ConsumerRecord."""
        by_partition: dict[TopicPartition, list[ConsumerRecord]] = {}
        for record in records:
            if not isinstance(record, ConsumerRecord):
                return None
            key = TopicPartition(record.topic, record.partition)
            by_partition.setdefault(key, []).append(record)
        return ConsumerRecords({key: [chosen] for key, chosen in by_partition.items()})

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that have records."""
        return list(self._by_partition)

    def records(self, topic_partition: TopicPartition) -> list[ConsumerRecord]:
        """Return the records of one partition, in order; an empty list if there are none."""
        return self[topic_partition] if topic_partition in self._by_partition else []

    def items(self) -> Iterator[tuple[TopicPartition, list[ConsumerRecord]]]:
        """Yield each partition that has records, with the list of its records."""
        for topic_partition in self._by_partition:
            yield topic_partition, self[topic_partition]

    def __getitem__(self, topic_partition: TopicPartition) -> list[ConsumerRecord]:
        chunks = self._by_partition[topic_partition]
        if len(chunks) == 1 and isinstance(chunks[0], list):
            return chunks[0]
        records = list(chain.from_iterable(chunks))
        self._by_partition[topic_partition] = [records]
        return records

    def __contains__(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._by_partition

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return chain.from_iterable(chain.from_iterable(self._by_partition.values()))

    def __len__(self) -> int:
        return sum(map(len, chain.from_iterable(self._by_partition.values())))

    def __bool__(self) -> bool:
        return bool(self._by_partition)

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{key}: {sum(map(len, chunks))}" for key, chunks in self._by_partition.items()
        )
        return f"<ConsumerRecords {counts}>"


class PolledBatch:
    """Records of one record batch as plain tuples, which are cheaper than `ConsumerRecord`.

    A tuple is (offset, timestamp, key, value, headers), with key and value as bytes. Iterating
    creates the tuples one by one; `records` is a list of all tuples.
    """

    __slots__ = ("_records", "_rows", "leader_epoch", "timestamp_type", "topic_partition")

    def __init__(
        self, topic_partition: TopicPartition, leader_epoch: int, timestamp_type: int, rows: Rows
    ) -> None:
        self.topic_partition = topic_partition
        self.leader_epoch = leader_epoch
        self.timestamp_type = timestamp_type
        self._rows = rows
        self._records: list[RecordTuple] | None = None

    @property
    def records(self) -> list[RecordTuple]:
        """A list of all tuples, created on first use."""
        if self._records is None:
            self._records = list(self._rows)
        return self._records

    def values(self) -> list[bytes | None]:
        return self._rows.value_list()

    def __iter__(self) -> Iterator[RecordTuple]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<PolledBatch {self.topic_partition} {len(self)} records>"


class PolledColumns:
    """Successive records as numpy columns: offsets, timestamps, positions and sizes in `buffer`.

    The records are from one record batch, or from several of the same layout. `columns` holds whole
    batches; `start` is the index of the first record at or after the consumer's position, nearly
    always 0. `buffer` maps the log if the records are not compressed, so that nothing is copied.
    """

    __slots__ = ("columns", "leader_epoch", "start", "timestamp_type", "topic_partition")

    def __init__(
        self,
        topic_partition: TopicPartition,
        leader_epoch: int,
        timestamp_type: int,
        columns: RecordColumns,
        start: int,
    ) -> None:
        self.topic_partition = topic_partition
        self.leader_epoch = leader_epoch
        self.timestamp_type = timestamp_type
        self.columns = columns
        self.start = start

    def __len__(self) -> int:
        return self.columns.count - self.start

    @property
    def buffer(self) -> memoryview:
        """The bytes that contain all keys and values."""
        return memoryview(self.columns.buffer)

    @property
    def offsets(self) -> Any:
        """Array of int64."""
        offsets = self.columns.offsets
        return offsets[self.start :] if self.start else offsets

    @property
    def timestamps(self) -> Any:
        """Array of int64 in milliseconds."""
        return self.columns.timestamps[self.start :]

    @property
    def key_positions(self) -> Any:
        """Array of int64: the start of each key in `buffer`; meaningless if its size is -1."""
        return self.columns.key_positions[self.start :]

    @property
    def key_sizes(self) -> Any:
        """Array of int64: the size of each key in bytes; -1 if the key is null."""
        return self.columns.key_sizes[self.start :]

    @property
    def value_positions(self) -> Any:
        """Array of int64: the start of each value in `buffer`; meaningless if its size is -1."""
        return self.columns.value_positions[self.start :]

    @property
    def value_sizes(self) -> Any:
        """Array of int64: the size of each value in bytes; -1 if the value is null."""
        return self.columns.value_sizes[self.start :]

    def values(self) -> list[bytes | None]:
        """Return copies of the values."""
        return self.columns.values()[self.start :]

    def keys(self) -> list[bytes | None]:
        """Return copies of the keys."""
        return self.columns.keys()[self.start :]

    def to_arrow(self, *, copy: bool = False) -> Any:
        """Return a `pyarrow.RecordBatch` of offset, timestamp, key and value without copying bytes.

        Keys and values are binary views. With `copy` they are plain binary columns, for software
        that does not support views. Needs pyarrow.
        """
        from embedlog.client.consumer.arrow import record_batch, views

        buffer = self.buffer
        keys = views(buffer, self.key_positions, self.key_sizes)
        values = views(buffer, self.value_positions, self.value_sizes)
        return record_batch(self.offsets, self.timestamps, keys, values, copy=copy)

    def __repr__(self) -> str:
        return f"<PolledColumns {self.topic_partition} {len(self)} records>"
