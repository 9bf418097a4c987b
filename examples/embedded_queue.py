"""A durable queue inside an application, without a thread, a socket or another program.

Run it twice: the second run continues where the first one stopped. Kill it in the middle of a job:
the next run does this job again, and no earlier one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import embedlog

PARTITIONS = 1
"""The number of workers that can share the queue; each needs its own thread and consumer."""


def main(directory: Path) -> None:
    """Append three jobs, then do all jobs that are left."""
    with embedlog.open(directory) as cluster:
        if "jobs" not in cluster.topics:
            cluster.create_topic("jobs", partitions=PARTITIONS)
        # As in Kafka, records without a key fill 64 kB of one partition before the next one gets
        # any: one of four workers would get all small jobs. Spread jobs evenly, or give them
        # keys: jobs of one key stay in order, with one worker.
        with cluster.producer(partitioner_class=embedlog.RoundRobinPartitioner) as producer:
            for number in range(3):
                done = producer.append("jobs", f"job {number}".encode())
            print(f"durable up to offset {done.offset}")
        with cluster.consumer(
            group_id="workers", auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer:
            consumer.subscribe(["jobs"])
            # Poll one job at a time, because a commit covers all polled records. The first poll
            # waits because joining a new group takes a moment.
            while jobs := consumer.poll(2_000, max_records=1):
                for job in jobs:
                    print(job.offset, job.value.decode())
                consumer.commit()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
