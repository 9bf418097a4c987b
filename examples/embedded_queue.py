"""A durable queue inside an application: no thread, no socket, nothing to install beside it.

Run it twice: the second run goes on where the first one stopped. Kill it in the middle of a job:
the next run does that job again, and those before it never again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import embedlog

PARTITIONS = 1
"""As many workers can share the queue, each with a consumer of the group in a thread of its own."""


def main(directory: Path) -> None:
    """Append three jobs, then work off everything that nobody has done yet."""
    with embedlog.open(directory) as cluster:
        if "jobs" not in cluster.topics:
            cluster.create_topic("jobs", partitions=PARTITIONS)
        # By default records without a key fill 64 kB of one partition before they go to the next,
        # as in Kafka: of four workers one would have all the small jobs. Spread evenly, or give
        # jobs keys: those with the same key stay in order, and with one worker.
        with cluster.producer(partitioner_class=embedlog.RoundRobinPartitioner) as producer:
            for number in range(3):
                done = producer.append("jobs", f"job {number}".encode())
            print(f"durable up to offset {done.offset}")
        with cluster.consumer(
            group_id="workers", auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer:
            consumer.subscribe(["jobs"])
            # One at a time, as a commit is for everything that was handed out. The wait is for the
            # first of them: to join a group that was never there takes a moment.
            while jobs := consumer.poll(2_000, max_records=1):
                for job in jobs:
                    print(job.offset, job.value.decode())
                consumer.commit()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
