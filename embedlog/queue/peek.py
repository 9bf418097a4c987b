"""Looks at the next jobs of a queue, and locks none."""

from __future__ import annotations

from embedlog.client.admin.share_state import done_ranges
from embedlog.client.consumer.consumer import Consumer
from embedlog.queue.job_record import JobRecord
from embedlog.queue.reading import undone_records
from embedlog.queue.stats import undone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.admin.admin import Admin
    from embedlog.client.connect import Target
    from embedlog.queue.names import QueueNames
    from embedlog.queue.values import Values


def next_jobs(
    target: Target, admin: Admin, names: QueueNames, values: Values, count: int
) -> list[JobRecord]:
    """Return up to `count` jobs that are not done, the highest priority first."""
    _, starts = undone(admin, names)
    done = done_ranges(admin, names.name)
    found: list[JobRecord] = []
    keys = sorted(starts, key=lambda key: (names.levels.index(key.topic), key.partition))
    with Consumer(target, isolation_level="read_committed", max_poll_records=count) as consumer:
        for key in keys:
            for record in undone_records(consumer, key, starts[key], done.get(key, ())):
                if len(found) == count:
                    return found
                found.append(JobRecord(record, values))
    return found
