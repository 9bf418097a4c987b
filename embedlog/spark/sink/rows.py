"""An Arrow batch of rows as records: topic, partition, key, value, headers, timestamp.

Columns are found by name; other columns are ignored, as in the connector. The connector also
ignores `timestamp`; embedlog writes it because a restore needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from embedlog.errors import UnknownTopicOrPartition
from embedlog.spark.sink.murmur2 import murmur2, partitions_of
from embedlog.spark.sink.options import SinkOptions

NULL_TOPIC = "null topic present in the data. Use the topic option for setting a topic."


class TopicRows:
    """Rows for one topic, as columns.

    `keys` and `values` are Arrow arrays of binary, `timestamps` are milliseconds. `keys` and
    `headers` are None if no row has one.
    """

    __slots__ = ("headers", "keys", "timestamps", "values")

    def __init__(
        self,
        values: pa.Array,
        keys: pa.Array | None,
        timestamps: NDArray[np.int64],
        headers: list[list[tuple[str, bytes | None]]] | None,
    ) -> None:
        self.values = values
        self.keys = keys
        self.timestamps = timestamps
        self.headers = headers

    @classmethod
    def of(cls, batch: pa.RecordBatch, now_ms: int) -> TopicRows:
        """Return the rows of a batch; rows without a timestamp get `now_ms`."""
        keys = _binary(batch.column("key")) if "key" in batch.schema.names else None
        return cls(
            _binary(batch.column("value")),
            None if keys is None or keys.null_count == len(keys) else keys,
            _timestamps(batch, now_ms),
            _headers(batch),
        )

    @classmethod
    def joined(cls, parts: list[TopicRows]) -> TopicRows:
        """Return all rows of some parts, in that order."""
        if len(parts) == 1:
            return parts[0]
        keys = headers = None
        if any(part.keys is not None for part in parts):
            keys = pa.concat_arrays(
                [pa.nulls(len(p), pa.binary()) if p.keys is None else p.keys for p in parts]
            )
        if any(part.headers is not None for part in parts):
            headers = [each for part in parts for each in part.headers or [[]] * len(part)]
        return cls(
            pa.concat_arrays([part.values for part in parts]),
            keys,
            np.concatenate([part.timestamps for part in parts]),
            headers,
        )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Size in bytes of key, value and headers of each row."""
        sizes = np.maximum(field_sizes(self.values), 0)
        if self.keys is not None:
            sizes = sizes + np.maximum(field_sizes(self.keys), 0)
        if self.headers is not None:
            sizes = sizes + np.fromiter(map(_headers_size, self.headers), np.int64, len(sizes))
        return sizes

    def take(self, slots: NDArray[np.int64]) -> TopicRows:
        indexes = pa.array(slots)
        headers = self.headers
        return TopicRows(
            self.values.take(indexes),
            None if self.keys is None else self.keys.take(indexes),
            self.timestamps[slots],
            None if headers is None else [headers[slot] for slot in slots.tolist()],
        )

    def slice(self, begin: int, end: int) -> TopicRows:
        return TopicRows(
            self.values.slice(begin, end - begin),
            None if self.keys is None else self.keys.slice(begin, end - begin),
            self.timestamps[begin:end],
            None if self.headers is None else self.headers[begin:end],
        )


class Spreader:
    """Chooses the partition of each row: by its column `partition`, by its key, or the sticky one.

    For one task. `count_of(topic)` returns a topic's partition count, `below(n)` draws from [0, n).
    """

    def __init__(
        self, batch_size: int, count_of: Callable[[str], int], below: Callable[[int], int]
    ) -> None:
        self._batch_size = max(batch_size, 1)
        self._count_of = count_of
        self._below = below
        self._sticky: dict[str, tuple[int, int]] = {}
        """Topic -> the partition for rows without a key, and its bytes so far."""

    def partitions(self, topic: str, batch: pa.RecordBatch, rows: TopicRows) -> NDArray[np.int64]:
        """Return the partition of each row.

        Raises:
            UnknownTopicOrPartition: the topic, or the partition that a row names, does not exist.
        """
        count = self._count_of(topic)
        found = np.full(len(rows), -1, dtype=np.int64)
        if rows.keys is not None:
            key = rows.keys
            has_key = np.asarray(pc.is_valid(key))
            if has_key.any():
                starts, sizes, data = _places(key)
                hashed = murmur2(data, starts[has_key], sizes[has_key])
                found[has_key] = partitions_of(hashed, count)
        if "partition" in batch.schema.names:
            column = batch.column("partition")
            is_given = np.asarray(pc.is_valid(column))
            given = np.asarray(pc.fill_null(column, 0)).astype(np.int64)
            bad = given[is_given & ((given < 0) | (given >= count))]
            if len(bad):
                raise UnknownTopicOrPartition(
                    f"Topic {topic} has {count} partitions, and a row says partition {bad[0]}"
                )
            found[is_given] = given[is_given]
        free = np.flatnonzero(found < 0)
        if len(free):
            found[free] = self._spread(topic, count, rows.sizes[free])
        return found

    def _spread(self, topic: str, count: int, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Fill one partition with about one batch, then go on to the next."""
        first, filled = self._sticky.get(topic) or (self._below(count), 0)
        ends = filled + np.cumsum(sizes)
        steps = (ends - sizes) // self._batch_size
        last = int(steps[-1])
        self._sticky[topic] = (first + last) % count, int(ends[-1]) - last * self._batch_size
        return (first + steps) % count


def by_topic(batch: pa.RecordBatch, options: SinkOptions) -> list[tuple[str, pa.RecordBatch]]:
    """Return the rows of each topic, in their order. Raises ValueError if a row has no topic."""
    if options.topic is not None:
        return [(options.topic, batch)]
    column = batch.column("topic")
    if column.null_count:
        raise ValueError(NULL_TOPIC)
    names = pc.unique(column).to_pylist()
    if len(names) == 1:
        return [(names[0], batch)]
    return [(name, batch.filter(pc.equal(column, name))) for name in names]


def _binary(column: Any) -> pa.Array:
    return column if pa.types.is_binary(column.type) else column.cast(pa.binary())


def _places(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64], memoryview]:
    """Return the starts and sizes of the fields in the column's data, and the data."""
    _, offsets, data = column.buffers()
    count = len(column)
    ends = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + count + 1]
    starts = ends[:-1].astype(np.int64)
    return starts, ends[1:] - starts, memoryview(b"" if data is None else data)


def _timestamps(batch: pa.RecordBatch, now_ms: int) -> NDArray[np.int64]:
    if "timestamp" not in batch.schema.names:
        return np.full(len(batch), now_ms, dtype=np.int64)
    column = batch.column("timestamp").cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    # Round down even before 1970: integer division in Arrow rounds toward zero.
    milliseconds: NDArray[np.int64] = np.asarray(pc.fill_null(column, now_ms * 1000)) // 1000
    return milliseconds


def _headers(batch: pa.RecordBatch) -> list[list[tuple[str, bytes | None]]] | None:
    if "headers" not in batch.schema.names:
        return None
    return [
        [(each["key"], each["value"]) for each in row or ()]
        for row in batch.column("headers").to_pylist()
    ]


def _headers_size(headers: list[tuple[str, bytes | None]]) -> int:
    return sum(len(key.encode()) + len(value or b"") + 10 for key, value in headers)


def field_sizes(column: pa.Array) -> NDArray[np.int64]:
    """Return the size in bytes of each field, -1 for null."""
    sizes = np.asarray(pc.fill_null(pc.binary_length(column), -1))
    return sizes.astype(np.int64)
