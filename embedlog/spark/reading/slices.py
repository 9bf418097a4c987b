"""A task's read of one slice, with the connector's errors for records that no longer exist."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from pyspark.sql.types import StructType

from embedlog.common import TopicPartition
from embedlog.errors import OffsetOutOfRange, UnknownTopicOrPartition
from embedlog.logger import Logger
from embedlog.runtime.ahead import one_ahead
from embedlog.spark.access.log_access import Slice
from embedlog.spark.errors import could_not_read
from embedlog.spark.options import SourceOptions

_log = Logger("spark")


def read_slice(
    part: Slice, schema: StructType, options: SourceOptions, group: str
) -> Iterator[Any]:
    """Yield the Arrow batches of `part` with the columns of `schema`.

    A thread prepares the next batch while Spark takes one. If losses are tolerated, the read skips
    removed records and continues at the first offset of the log, as the connector does.

    Raises:
        DataLoss: records were removed after the read was planned, and losses are not tolerated.
        CorruptRecord: the log is damaged; the error names the file and the position.
    """
    return one_ahead(_batches(part, schema, options, group), "embedlog-spark-read")


def _batches(
    part: Slice, schema: StructType, options: SourceOptions, group: str
) -> Generator[Any, None, None]:
    from embedlog.spark.access.arrow_chunks import ArrowChunks
    from embedlog.spark.reading.columns import arrow_schema

    whole, size_max = part.range, options.max_batch_bytes
    key = TopicPartition(whole.topic, whole.partition)
    columns = arrow_schema(schema)
    chunks = ArrowChunks(columns, *key, whole.start, whole.end, size_max=size_max)
    remaining: Slice | None = part
    while remaining is not None:
        try:
            yield from remaining.arrow_batches(chunks)
            break
        except (OffsetOutOfRange, UnknownTopicOrPartition) as error:
            loss = could_not_read(key, chunks.next_offset, whole.end, group)
            if options.fail_on_data_loss:
                raise loss from error
            _log.warning("%s", loss)
            remaining = _behind_the_loss(part, chunks.next_offset)
    yield from chunks.flush()


def _behind_the_loss(part: Slice, offset: int) -> Slice | None:
    try:
        return part.remaining(offset)
    except UnknownTopicOrPartition:
        return None
