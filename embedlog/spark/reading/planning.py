"""Plans a read: from options to partitions and offsets, and from these to slices for the tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from embedlog.common import TopicPartition
from embedlog.errors import UnknownTopicOrPartition
from embedlog.spark.access.log_access import LogAccess, Slice
from embedlog.spark.errors import IllegalArgument, could_not_read
from embedlog.spark.offsets import (
    EARLIEST,
    LATEST,
    OffsetRange,
    Positions,
    split_by_count,
    split_by_partitions,
)
from embedlog.spark.options import (
    Assign,
    Bound,
    Committed,
    SourceOptions,
    Subscribe,
    Subscription,
    Timestamp,
    Timestamps,
    Word,
)

Bounds = Mapping[TopicPartition, tuple[int, int]]

_INVESTIGATE = """Please investigate in this order:
1. Check whether start offset is set beyond the end offset or the latest available offset after \
resolution. Possible inputs are:
  (a) Start offset is set to a timestamp, and the end offset is set to an index of offset.
  (b) Start offset is set to an index of offset, and the end offset is set to a timestamp.
  (c) Start offset is set, and the end offset is set to latest.
2. Check whether the Kafka topic-partition is deleted and re-created."""


def subscribed(access: LogAccess, subscription: Subscription | None) -> list[TopicPartition]:
    """Return the sorted partitions of a subscription, or of all topics if it is None.

    Raises:
        UnknownTopicOrPartition: a topic named by `subscribe` does not exist.
    """
    if isinstance(subscription, Assign):
        return sorted(
            TopicPartition(topic, number)
            for topic, numbers in subscription.partitions.items()
            for number in numbers
        )
    if isinstance(subscription, Subscribe):
        topics = subscription.topics
        for topic in topics:
            if not access.partitions(topic):
                raise UnknownTopicOrPartition(
                    f"This server does not host this topic-partition. Topic: {topic}"
                )
    elif subscription is None:
        topics = access.topics()
    else:
        pattern = re.compile(subscription.pattern)
        topics = [name for name in access.topics() if pattern.search(name)]
    return sorted(
        TopicPartition(topic, number) for topic in topics for number in access.partitions(topic)
    )


def starting_positions(
    access: LogAccess, options: SourceOptions, bounds: Bounds, wanted: Iterable[TopicPartition]
) -> Positions:
    """Return where a read of `wanted` begins; partitions that do not exist are left out.

    Raises:
        IllegalArgument: the offsets given are not for exactly these partitions, or all records are
            older than a timestamp.
    """
    return _positions(access, options, options.starting, bounds, wanted, is_start=True)


def ending_positions(
    access: LogAccess, options: SourceOptions, bounds: Bounds, wanted: Iterable[TopicPartition]
) -> Positions:
    """Return where a batch read of `wanted` ends; see `starting_positions`."""
    ending = Word("latest") if options.ending is None else options.ending
    return _positions(access, options, ending, bounds, wanted, is_start=False)


def _positions(
    access: LogAccess,
    options: SourceOptions,
    bound: Bound,
    bounds: Bounds,
    wanted: Iterable[TopicPartition],
    *,
    is_start: bool,
) -> Positions:
    edge = {key: pair[0] if is_start else pair[1] for key, pair in bounds.items()}
    if isinstance(bound, Word):
        at = 0 if bound.word == "earliest" else 1
        return {key: pair[at] for key, pair in bounds.items()}
    if isinstance(bound, Committed):
        stored = access.committed(bound.group)
        return {key: stored.get(key, edge[key]) for key in bounds}
    if isinstance(bound, Timestamp):
        stamps = dict.fromkeys(bounds, bound.timestamp)
        return _by_time(access, options, stamps, bounds, is_start=is_start)
    given = {
        TopicPartition(topic, number): position
        for topic, numbers in bound.partitions.items()
        for number, position in numbers.items()
    }
    _check_same(given, wanted, is_start=is_start)
    if isinstance(bound, Timestamps):
        return _by_time(access, options, given, bounds, is_start=is_start)
    special = {EARLIEST: 0, LATEST: 1}
    return {
        key: bounds[key][special[offset]] if offset in special else offset
        for key, offset in given.items()
        if key in bounds
    }


def _check_same(given: Positions, wanted: Iterable[TopicPartition], *, is_start: bool) -> None:
    assigned = set(wanted)
    if set(given) != assigned:
        which = "start" if is_start else "end"
        raise IllegalArgument(
            f"Partitions specified for Kafka {which} offsets don't match what are assigned. Maybe "
            "topic partitions are created \nor deleted while the query is running. Use -1 for "
            f"latest, -2 for earliest.\nSpecified: {_set(given)} Assigned: {_set(assigned)}"
        )


def _set(partitions: Iterable[TopicPartition]) -> str:
    return f"Set({', '.join(map(str, sorted(partitions)))})"


def _by_time(
    access: LogAccess, options: SourceOptions, stamps: Positions, bounds: Bounds, *, is_start: bool
) -> Positions:
    found = {}
    for key, stamp in stamps.items():
        if key not in bounds:
            continue
        offset = access.offset_for_timestamp(key, stamp)
        if offset is None and is_start and options.timestamp_strategy == "error":
            raise IllegalArgument(
                f"No offset matched from request of topic-partition {key} and timestamp {stamp}."
            )
        found[key] = bounds[key][1] if offset is None else min(offset, bounds[key][1])
    return found


def checked_ranges(
    options: SourceOptions, starts: Positions, ends: Positions, bounds: Bounds, group: str
) -> dict[TopicPartition, tuple[int, int]]:
    """Return the ranges of a batch read without the empty ones.

    Raises:
        IllegalArgument: a range ends before it begins.
        DataLoss: a part of a range no longer exists, and losses are not tolerated.
    """
    ranges = {}
    for key in sorted(set(starts) & set(ends)):
        start, end = starts[key], ends[key]
        if start > end:
            raise IllegalArgument(
                f"The resolved start offset {start} is greater than the resolved end offset {end} "
                f"for topic {key.topic} partition {key.partition}.\n{_INVESTIGATE}"
            )
        start, end = available(options, key, (start, end), bounds[key], group)
        if start < end:
            ranges[key] = (start, end)
    return ranges


def available(
    options: SourceOptions,
    key: TopicPartition,
    wanted: tuple[int, int],
    bounds: tuple[int, int],
    group: str,
) -> tuple[int, int]:
    """Return the part of `wanted` that the log has.

    Raises:
        DataLoss: a part is missing, and losses are not tolerated.
    """
    start, end = max(wanted[0], bounds[0]), min(wanted[1], bounds[1])
    if (start, end) != wanted and wanted[0] < wanted[1] and options.fail_on_data_loss:
        lost_end = min(bounds[0], wanted[1]) if wanted[0] < bounds[0] else wanted[1]
        lost_start = wanted[0] if wanted[0] < bounds[0] else max(wanted[0], bounds[1])
        raise could_not_read(key, lost_start, lost_end, group)
    return start, max(start, end)


def plan(
    access: LogAccess, options: SourceOptions, ranges: Mapping[TopicPartition, tuple[int, int]]
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
