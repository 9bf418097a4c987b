"""The batch reader of `format("embedlog")`: the records that exist when Spark plans the read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from embedlog.spark.access.log_access import open_access
from embedlog.spark.options import SourceOptions
from embedlog.spark.reading.planning import (
    checked_ranges,
    ending_positions,
    plan,
    starting_positions,
    subscribed,
)
from embedlog.spark.reading.slices import read_slice

BATCH_GROUP_PREFIX = "spark-kafka-relation"


class BatchReader(DataSourceReader):
    """One batch read, planned once for each `load()`.

    Filters are not pushed down: Spark 4.3 keeps the pruned plan for every other scan of the same
    DataFrame, so that a union of two filters, or a count after a filter, would lose rows.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._group = options.group_id or options.group_id_prefix or BATCH_GROUP_PREFIX

    def partitions(self) -> Sequence[InputPartition]:
        with closing(open_access(self._options)) as access:
            wanted = subscribed(access, self._options.subscription)
            bounds = access.bounds(wanted)
            starts = starting_positions(access, self._options, bounds, wanted)
            ends = ending_positions(access, self._options, bounds, wanted)
            ranges = checked_ranges(self._options, starts, ends, bounds, self._group)
            access.pin({key: start for key, (start, _) in ranges.items()})
            return [InputPartition(part) for part in plan(access, self._options, ranges)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if partition.value is None:
            return  # Spark reads a partition without a value if `partitions` is empty
        yield from read_slice(partition.value, self._schema, self._options, self._group)
