"""`QueueStats`: the numbers of a queue at one moment."""

from __future__ import annotations

from embedlog.client.admin.results import OffsetSpec
from embedlog.client.admin.share_state import done_ranges
from embedlog.client.consumer.consumer import Consumer
from embedlog.common import TopicPartition, Value
from embedlog.errors import ClosedError
from embedlog.queue.reading import read_to_end, undone_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from embedlog.client.admin.admin import Admin
    from embedlog.client.connect import Target
    from embedlog.queue.names import QueueNames

    Offsets = dict[TopicPartition, int]


class QueueStats(Value):
    """The numbers of a queue. They were read one after another, so they may differ by a few jobs.

    `oldest_s` is the age in seconds of the oldest job that is ready or locked; None without jobs.
    """

    ready: int
    """Jobs that a worker can get now."""
    locked: int
    """Jobs that workers have: all workers if the broker is in this process, else its own workers.
    The other ones' jobs count as ready then."""
    delayed: int
    """Jobs for later, and texts of `dedupe` that are remembered."""
    dead: int
    """Jobs that were given up."""
    oldest_s: float | None
    late: int
    """Acknowledgements of this process that came after the end of the lock."""


def undone(admin: Admin, names: QueueNames) -> tuple[int, Offsets]:
    """Return the number of jobs that are not done, and the group's first offset by partition."""
    topics = admin.describe_topics(names.levels)
    topics.check()
    keys = [
        TopicPartition(topic, each.partition)
        for topic, info in topics.values.items()
        for each in info.partitions
    ]
    found = admin.list_share_group_offsets({names.name: keys})
    known = found.values.get(names.name)
    starts: Offsets = {}
    count = 0
    unread: list[TopicPartition] = []
    for key in keys:
        offset = None if known is None else known.values.get(key)
        if offset is None or offset.lag < 0:
            unread.append(key)  # no worker has looked at the partition yet
        else:
            starts[key] = offset.start_offset
            count += offset.lag
    first, end = edges(admin, unread)
    for key in unread:
        starts[key] = first[key]
        count += end[key] - first[key]
    return count, starts


def edges(admin: Admin, keys: Iterable[TopicPartition]) -> tuple[Offsets, Offsets]:
    """Return the first offsets and the ends of partitions, as readers of committed records see.

    Raises:
        KafkaError: a partition has no leader now.
    """
    found: list[Offsets] = []
    for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST):
        given = dict.fromkeys(keys, spec)
        answer = admin.list_offsets(given, isolation_level="read_committed")
        answer.check()
        found.append({key: each.offset for key, each in answer.values.items() if each is not None})
    return found[0], found[1]


def locked_count(target: Target, group: str) -> int | None:
    """Return how many records the members of a group hold; None if no broker is in this process."""
    brokers = getattr(target, "brokers", None)
    if not brokers:
        return None
    total = 0
    for broker in brokers:
        try:
            metrics: dict[Any, dict[str, int]] = broker.share_metrics()
        except ClosedError:  # it does not run
            continue
        total += sum(
            numbers["AcquiredCount"] for key, numbers in metrics.items() if key[0] == group
        )
    return total


def oldest_ms(target: Target, admin: Admin, group: str, starts: Offsets) -> int | None:
    """Return the timestamp of the oldest job that is not done; None without jobs.

    `starts` are the group's first offsets.
    """
    found: list[int] = []
    done = done_ranges(admin, group)
    with Consumer(target, isolation_level="read_committed") as consumer:
        for key, start in starts.items():
            record = next(undone_records(consumer, key, start, done.get(key, ())), None)
            if record is not None:
                found.append(record.timestamp)
    return min(found, default=None)


def delayed_count(target: Target, topic: str) -> int:
    """Count the delayed jobs by reading their topic."""
    live: set[bytes] = set()
    with Consumer(target, isolation_level="read_committed", max_poll_records=5000) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        for record in read_to_end(consumer, [(topic, 0)]):
            if record.key is None:
                continue
            if record.value is None:
                live.discard(bytes(record.key))
            else:
                live.add(bytes(record.key))
    return len(live)
