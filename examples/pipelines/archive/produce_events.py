"""Events of three days in two partitions, with keys, headers and a tombstone."""

from __future__ import annotations

import sys
from pathlib import Path

import embedlog

START_MS = 1_767_225_600_000  # 2026-01-01
COUNT = 300


def main(directory: Path) -> None:
    with embedlog.open(directory / "log") as cluster, cluster.producer() as producer:
        cluster.create_topic("events", 2)
        for number in range(COUNT):
            producer.send(
                "events",
                None if number == 7 else b'{"n": %d}' % number,
                key=b"key %d" % (number % 10),
                partition=number % 2,
                timestamp_ms=START_MS + number * 864_000,
                headers=[("number", b"%d" % number)],
            )
        producer.flush()
    print(f"{COUNT} records in {directory / 'log'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
