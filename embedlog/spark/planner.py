"""Cut ranges of offsets into the slices that tasks read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedlog.spark.offsets import OffsetRange, split_by_count, split_by_partitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.common import TopicPartition
    from embedlog.spark.access import LogAccess, Slice
    from embedlog.spark.options import SourceOptions


def plan(
    access: LogAccess,
    options: SourceOptions,
    ranges: Mapping[TopicPartition, tuple[int, int]],
) -> list[Slice]:
    """Return one slice for each task, in the order of topic, partition and offset.

    Kafka's source makes one slice of each partition unless `minPartitions` asks for more. This
    function also cuts long slices, at record batches, into parts of `maxPartitionBytes`.
    """
    whole = [OffsetRange(*key, *ranges[key]) for key in sorted(ranges)]
    parts = split_by_count(whole, options.max_records_per_partition)
    parts = split_by_partitions(parts, options.min_partitions)
    slices: list[Slice] = []
    for part in parts:
        key = part.topic_partition
        start = part.start
        for cut in access.cuts(key, part.start, part.end, options.max_partition_bytes):
            slices.append(access.slice(key, start, cut))
            start = cut
        slices.append(access.slice(key, start, part.end))
    return slices
