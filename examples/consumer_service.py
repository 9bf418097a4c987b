"""A service that consumes, in a group: start as many as you like, they share the partitions.

    python examples/consumer_service.py localhost:9092 readings averages

Offsets are committed after the work is done: a record may be handled twice after a crash, and is
never lost. SIGTERM or Ctrl-C finishes the records at hand, commits, and leaves the group, so that
the others take over at once.
"""

from __future__ import annotations

import json
import signal
import sys

import embedlog


class Report(embedlog.ConsumerRebalanceListener):
    """Says which partitions this member reads."""

    def on_partitions_assigned(self, partitions: list[embedlog.TopicPartition]) -> None:
        print("assigned", *map(str, partitions), flush=True)

    def on_partitions_revoked(self, partitions: list[embedlog.TopicPartition]) -> None:
        print("revoked", *map(str, partitions), flush=True)


def handle(record: embedlog.ConsumerRecord) -> None:
    """The work."""
    reading = json.loads(record.value)
    print("handled", reading["count"], flush=True)


def main(address: str, topic: str, group: str) -> None:
    """Handle records until told to stop."""
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: stopping.append(number))

    with embedlog.Consumer(
        address, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
    ) as consumer:
        consumer.subscribe([topic], listener=Report())
        while not stopping:
            records = consumer.poll(200)
            for record in records:
                handle(record)
            if records:
                commit(consumer)
    print("stopped", flush=True)


def commit(consumer: embedlog.Consumer) -> None:
    """Store how far the work is done."""
    try:
        consumer.commit()
    except (embedlog.CommitFailed, embedlog.errors.RebalanceInProgress) as error:
        # The partitions have gone, or are going, to others, who will handle these records again.
        print(f"not committed: {error}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
