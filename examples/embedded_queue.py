"""A durable queue inside an application: no thread, no socket, nothing to install beside it.

Run it twice: the second run goes on where the first one stopped.
"""

from __future__ import annotations

import sys
from pathlib import Path

import embedlog


def main(directory: Path) -> None:
    """Append three jobs, then work off everything that is in the queue."""
    with embedlog.open(directory) as cluster:
        if "jobs" not in cluster.admin().list_topics():
            cluster.admin().create_topics({"jobs": 1})
        with cluster.producer() as producer:
            for number in range(3):
                done = producer.send("jobs", f"job {number}".encode())
            print(f"durable up to offset {done.result().offset}")
        with cluster.consumer() as consumer:
            consumer.assign([("jobs", 0)])
            consumer.seek_to_beginning()
            for record in consumer.poll(1000):
                print(record.offset, record.value.decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
