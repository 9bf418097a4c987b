"""The lag of a group: the records that it has not committed.

    committed       high watermark - committed offset
    not committed   high watermark - log start offset, for partitions that a member has

For readers at read_committed the last stable offset replaces the high watermark.

The last records of a log may be markers of transactions, which no consumer reads; some clients then
commit the offset before the marker. So a partition whose rest is only markers has no lag.
"""

from __future__ import annotations

from collections.abc import Iterable

from embedlog.common import TopicPartition
from embedlog.errors import EmbedlogError, UnknownTopicOrPartition
from embedlog.testing.inspection.brokers import Brokers
from embedlog.testing.inspection.group_values import GroupValue
from embedlog.testing.inspection.log_records import COMMITTED, UNCOMMITTED, has_records

_MARKERS_MAX = 64
"""The largest rest of a log that is searched for markers."""


def places_of(
    brokers: Brokers, group: GroupValue, topics: Iterable[str] = ()
) -> list[TopicPartition]:
    """Return the partitions that the group has committed or has, and all of `topics`."""
    places = {*group.committed, *group.assigned}
    for topic in topics:
        places.update(TopicPartition(topic, n) for n in range(brokers.check_topic(topic)))
    return sorted(places)


def lags_of(
    brokers: Brokers, group: GroupValue, topics: Iterable[str] = (), isolation: str = UNCOMMITTED
) -> dict[TopicPartition, int]:
    """Return the lags of the partitions of `places_of`. A partition without a leader has none."""
    found = {}
    is_committed = isolation == COMMITTED
    for place in places_of(brokers, group, topics):
        try:
            partition = brokers.leader(*place)
        except UnknownTopicOrPartition:
            continue
        if partition is None:
            continue
        log, start = partition.log, partition.log.offsets.log_start_offset
        end = log.offsets.last_stable_offset if is_committed else log.offsets.high_watermark
        next_offset = max(start, min(group.committed.get(place, start), end))
        lag = end - next_offset
        if 0 < lag <= _MARKERS_MAX:
            try:
                if not has_records(log, next_offset, end, is_committed=is_committed):
                    lag = 0
            except EmbedlogError:
                lag = end - next_offset  # the log changed during the look
        found[place] = lag
    return found
