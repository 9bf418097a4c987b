"""A consuming service. Start it several times: all processes share the partitions as a group.

    python examples/consumer_service.py localhost:9092 readings averages

It commits offsets after the work: a crash may repeat a record, but never loses one. On SIGTERM or
Ctrl-C the service finishes its records, commits, and leaves the group, so that the other members
take over at once.
"""

from __future__ import annotations

import json
import signal
import sys

import embedlog


class Report(embedlog.ConsumerRebalanceListener):
    """Print the partitions of this member."""

    def on_partitions_assigned(self, partitions: list[embedlog.TopicPartition]) -> None:
        print("assigned", *map(str, partitions), flush=True)

    def on_partitions_revoked(self, partitions: list[embedlog.TopicPartition]) -> None:
        print("revoked", *map(str, partitions), flush=True)


def handle(record: embedlog.ConsumerRecord) -> None:
    """Handle one record; a real service does its work here."""
    reading = json.loads(record.value)
    print("handled", reading["count"], flush=True)


def main(address: str, topic: str, group: str) -> None:
    """Handle records until SIGTERM or Ctrl-C."""
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
    """Commit the offsets of the handled records."""
    try:
        consumer.commit()
    except (embedlog.CommitFailed, embedlog.errors.RebalanceInProgress) as error:
        # The partitions move to other members, which will handle these records again.
        print(f"not committed: {error}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
