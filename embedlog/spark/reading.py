"""What a task does: read a slice, and say in the connector's words what is not there any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedlog.common import TopicPartition
from embedlog.errors import OffsetOutOfRange, UnknownTopicOrPartition
from embedlog.spark.errors import could_not_read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import StructType

    from embedlog.spark.access import Slice
    from embedlog.spark.options import SourceOptions


def read_slice(
    part: Slice, schema: StructType, options: SourceOptions, group: str
) -> Iterator[Any]:
    """The Arrow batches of `part`, with the columns of `schema`.

    Raises:
        DataLoss: records have gone since it was planned, and that is not to be tolerated.
        CorruptRecord: the log is damaged there; it names the file and the position.
    """
    from embedlog.spark.decode import ArrowChunks
    from embedlog.spark.schema import arrow_schema

    chunks = ArrowChunks(
        arrow_schema(schema), part.topic, part.partition, size_max=options.max_batch_bytes
    )
    try:
        yield from part.arrow_batches(chunks)
    except (OffsetOutOfRange, UnknownTopicOrPartition) as error:
        if options.fail_on_data_loss:
            key = TopicPartition(part.topic, part.partition)
            raise could_not_read(key, part.start, part.end, group) from error
        yield from chunks.flush()
