"""Reads the last records of the project's topics without Spark, for `init` and `dry-run`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import embedlog
from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.project import PipelineSource
from embedlog.spark.reading.columns import records_ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORD_DDL = records_ddl(headers=True)
_POLL_MS = 5000
"""Milliseconds to wait for the next records of a partition over the wire."""


class SampleRecord(NamedTuple):
    """A record in the order of Spark's columns. `timestamp_ms` is -1 for a record without one."""

    key: bytes | None
    value: bytes | None
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_type: int = 0


def last_records(source: PipelineSource, count: int) -> list[SampleRecord]:
    """Return the last `count` records of all partitions together, the oldest first.

    Raises:
        ProjectError: a topic does not exist.
    """
    if source.path is not None and source.format == "embedlog":
        found = _from_directory(source.path, source.topics, count)
    else:
        options = {name.lower(): value for name, value in source.options.items()}
        found = _from_server(options["kafka.bootstrap.servers"], source.topics, count)
    found.sort(key=lambda each: (each.timestamp_ms, each.topic, each.partition, each.offset))
    return found[-count:]


def as_frame(spark: SparkSession, records: Sequence[SampleRecord]) -> DataFrame:
    """Return the records as a frame with the columns of `format("kafka")`."""
    import pyarrow as pa

    times = pa.array([max(r.timestamp_ms, 0) for r in records], pa.timestamp("ms", tz="UTC"))
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "key": pa.array([r.key for r in records], pa.binary()),
            "value": pa.array([r.value for r in records], pa.binary()),
            "topic": pa.array([r.topic for r in records], pa.string()),
            "partition": pa.array([r.partition for r in records], pa.int32()),
            "offset": pa.array([r.offset for r in records], pa.int64()),
            "timestamp": times.cast(pa.timestamp("us", tz="UTC")),
            "timestampType": pa.array([r.timestamp_type for r in records], pa.int32()),
            "headers": pa.array([list(r.headers) or None for r in records], headers),
        }
    )
    return spark.createDataFrame(table, RECORD_DDL)


def _from_directory(path: str, topics: Sequence[str], count: int) -> list[SampleRecord]:
    found = []
    with embedlog.open_reader(path) as reader:
        for topic in topics:
            numbers = reader.partitions(topic)
            if not numbers:
                raise ProjectError(f"{path}: no topic {topic!r}")
            for number in numbers:
                part = reader.partition(topic, number)
                start = max(part.log_start_offset, part.high_watermark - count)
                found += [_sample(record, topic, number) for record in part.records(start)]
    return found


def _from_server(servers: str, topics: Sequence[str], count: int) -> list[SampleRecord]:
    found: list[SampleRecord] = []
    with embedlog.Consumer(servers) as consumer:
        for topic in topics:
            infos = consumer.partitions_for(topic)
            if not infos:
                raise ProjectError(f"{servers}: no topic {topic!r}")
            partitions = [embedlog.TopicPartition(topic, each.partition) for each in infos]
            ends = consumer.end_offsets(partitions)
            starts = consumer.beginning_offsets(partitions)
            for partition in partitions:
                start = max(starts[partition], ends[partition] - count)
                consumer.assign([partition])
                consumer.seek(partition, start)
                while consumer.position(partition) < ends[partition]:
                    polled = list(consumer.poll(_POLL_MS))
                    if not polled:
                        break  # the last offsets are markers of transactions
                    found += [
                        _sample(record, *partition)
                        for record in polled
                        if record.offset < ends[partition]
                    ]
    return found


def _sample(record: Any, topic: str, partition: int) -> SampleRecord:
    headers = tuple((str(name), _bytes(value)) for name, value in record.headers)
    key, value = _bytes(record.key), _bytes(record.value)
    return SampleRecord(key, value, topic, partition, record.offset, record.timestamp, headers)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
