"""How one task writes its rows: to staged files of a data directory, or over the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from embedlog.common import TopicPartition
from embedlog.errors import UnknownTopicOrPartition
from embedlog.runtime import real_runtime
from embedlog.spark.sink.encode import encode_batch
from embedlog.spark.sink.options import SinkOptions
from embedlog.spark.sink.rows import Spreader, TopicRows, by_topic
from embedlog.storage.staging.manifest import StagedFile
from embedlog.storage.staging.writer import StagedWriter

if TYPE_CHECKING:
    from embedlog.client.producer.futures import DeliveryFuture

RECORD_OVERHEAD = 21
"""Upper bound of a small record's bytes besides its key, value and headers."""


@dataclass
class StagedMessage(WriterCommitMessage):
    """A task's message to the committer: the commit that its files belong to, and the files.

    `files` are (topic, partition, path in the staging area, size, count of records).
    """

    application: str
    version: int
    files: list[tuple[str, int, str, int, int]]


@dataclass
class SentMessage(WriterCommitMessage):
    """A task's count of records sent over the wire. Nothing is left to commit."""

    count: int


class StagingTask:
    """Writes the rows of one task to staged files of a job."""

    def __init__(self, options: SinkOptions, job: str) -> None:
        runtime = real_runtime()
        self._clock = runtime.clock
        self._files = runtime.files
        self._options = options
        self._job = job
        self._name = runtime.random.uuid().hex()
        self._counts: dict[str, int] = {}
        self._parts: dict[TopicPartition, _StagedPartition] = {}
        self._spreader = Spreader(options.batch_size, self._count_of, runtime.random.below)

    def write(self, batches: Iterator[pa.RecordBatch]) -> list[StagedFile]:
        """Stage all rows. When this returns, they survive a loss of power.

        Raises:
            UnknownTopicOrPartition: a topic or partition does not exist.
            ValueError: a row has no topic.
            OSError: a file cannot be written.
        """
        for batch in batches:
            for topic, some in by_topic(batch, self._options):
                if len(some):
                    self._add(topic, some)
        found = []
        for topic_partition in sorted(self._parts):
            found += self._parts[topic_partition].finish()
        return found

    def _add(self, topic: str, batch: pa.RecordBatch) -> None:
        rows = TopicRows.of(batch, self._clock.wall_ms())
        partitions = self._spreader.partitions(topic, batch, rows)
        first = int(partitions[0])
        if (partitions == first).all():
            self._part(topic, first).add(rows)
            return
        order = np.argsort(partitions, kind="stable")
        cuts = np.flatnonzero(np.diff(partitions[order])) + 1
        for slots in np.split(order, cuts):
            self._part(topic, int(partitions[slots[0]])).add(rows.take(slots))

    def _part(self, topic: str, partition: int) -> _StagedPartition:
        each = TopicPartition(topic, partition)
        part = self._parts.get(each)
        if part is None:
            writer = StagedWriter(
                self._files,
                self._options.path,
                job=self._job,
                topic_partition=each,
                writer=f"{self._name}-{len(self._parts)}",
            )
            part = self._parts[each] = _StagedPartition(writer, self._options)
        return part

    def _count_of(self, topic: str) -> int:
        count = self._counts.get(topic)
        if count is None:
            from embedlog.reader.reader import open_reader

            with open_reader(self._options.path) as reader:
                count = len(reader.partitions(topic))
            if not count:
                raise UnknownTopicOrPartition(
                    f"Topic {topic} not present in metadata of {self._options.path}"
                )
            self._counts[topic] = count
        return count


class _StagedPartition:
    """Rows for one partition, collected until they fill a batch."""

    __slots__ = ("_options", "_parts", "_size", "_writer")

    def __init__(self, writer: StagedWriter, options: SinkOptions) -> None:
        self._writer = writer
        self._options = options
        self._parts: list[TopicRows] = []
        self._size = 0

    def add(self, rows: TopicRows) -> None:
        ends = np.cumsum(rows.sizes + RECORD_OVERHEAD)
        limit = self._options.batch_size
        begin, before, count = 0, 0, len(rows)
        while begin < count:
            end = int(np.searchsorted(ends, before + limit - self._size, side="right"))
            if end == begin and not self._parts:
                end += 1  # a record larger than a batch gets a batch of its own
            if end > begin:
                self._parts.append(rows.slice(begin, end))
                self._size += int(ends[end - 1]) - before
                begin, before = end, int(ends[end - 1])
            if begin < count:
                self._flush()

    def finish(self) -> list[StagedFile]:
        """Return the files, synced."""
        if self._parts:
            self._flush()
        return self._writer.finish()

    def _flush(self) -> None:
        options = self._options
        rows = TopicRows.joined(self._parts)
        self._writer.write(encode_batch(rows, codec=options.codec, level=options.level))
        self._parts = []
        self._size = 0


def send_batches(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> int:
    """Send the rows of one task with its own producer; return their count once acknowledged.

    Raises:
        KafkaError: a row was refused.
        ValueError: a row has no topic.
    """
    from embedlog.client.producer.producer import Producer

    count, clock = 0, real_runtime().clock
    with Producer(None, options.producer) as producer:
        futures: list[DeliveryFuture] = []
        for batch in batches:
            for topic, some in by_topic(batch, options):
                futures += send_rows(producer.send, topic, some, clock.wall_ms())
            if len(futures) > _FUTURES_MAX:
                count += _settle(futures)
        producer.flush()
        return count + _settle(futures)


def send_rows(
    send: Callable[..., DeliveryFuture], topic: str, batch: pa.RecordBatch, now_ms: int
) -> list[DeliveryFuture]:
    """Pass rows to a producer's `send`; rows without a timestamp get `now_ms`."""
    rows = TopicRows.of(batch, now_ms)
    count = len(rows)
    partitions = [None] * count
    if "partition" in batch.schema.names:
        partitions = batch.column("partition").to_pylist()
    values, timestamps = rows.values.to_pylist(), rows.timestamps.tolist()
    keys = [None] * count if rows.keys is None else rows.keys.to_pylist()
    return [
        send(
            topic,
            values[slot],
            key=keys[slot],
            partition=partitions[slot],
            timestamp_ms=timestamps[slot],
            headers=None if rows.headers is None else rows.headers[slot],
        )
        for slot in range(count)
    ]


_FUTURES_MAX = 100_000


def _settle(futures: list[DeliveryFuture]) -> int:
    """Wait for all futures, clear the list, and return their count."""
    for future in futures:
        future.result()
    count = len(futures)
    futures.clear()
    return count
