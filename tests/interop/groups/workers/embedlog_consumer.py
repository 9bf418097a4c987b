"""A member by our own consumer, of the classic or the consumer protocol."""

from __future__ import annotations

from typing import Any

import embedlog
from embedlog.client.errors import CommitFailed
from embedlog.common import TopicPartition
from embedlog.errors import FencedInstanceId, KafkaError, RebalanceInProgress, TimedOut
from tests.interop.groups.journal import COMMIT_EVERY, POLL_SECONDS, Journal, options


class Listener(embedlog.ConsumerRebalanceListener):
    """Records assignments, revocations and losses; commits before partitions are given up."""

    def __init__(self, consumer: embedlog.Consumer, journal: Journal) -> None:
        self._consumer = consumer
        self._journal = journal

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Partitions come in addition to the present ones."""
        generation = self._consumer.group_metadata().generation_id
        self._journal.assigned(map(tuple, partitions), generation)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """The group waits for this call."""
        commit(self._consumer, self._journal)
        self._journal.revoked(map(tuple, partitions))

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """The group did not wait."""
        self._journal.lost(map(tuple, partitions))


def commit(consumer: embedlog.Consumer, journal: Journal) -> None:
    """Commit the positions, and wait for the answer."""
    offsets = dict(journal.uncommitted)
    if not offsets:
        return
    number = journal.committing()
    try:
        consumer.commit(offsets, timeout_ms=5000)
    except FencedInstanceId as error:
        journal.refused(number, error)
        raise
    except (CommitFailed, RebalanceInProgress) as error:
        journal.refused(number, error)
    except (TimedOut, KafkaError):
        return  # the outcome is unknown
    else:
        journal.committed(number)


def main() -> None:
    """Consume until SIGTERM, or until the member is fenced."""
    asked = options()
    journal = Journal()
    consumer = embedlog.Consumer(asked["address"], **settings(asked))
    consumer.subscribe(asked["topics"], listener=Listener(consumer, journal))
    while not journal.is_stopping:
        try:
            for record in consumer.poll(int(POLL_SECONDS * 1000), max_records=COMMIT_EVERY):
                journal.record(record.topic, record.partition, record.offset)
            commit(consumer, journal)
        except FencedInstanceId as error:
            journal.fenced(error)
            return
    consumer.close()
    journal.closed()


def settings(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as Kafka's settings."""
    found = {
        "group_id": asked["group"],
        "group_protocol": asked["protocol"],
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": 100,
        "metadata_max_age_ms": 1000,
        "reconnect_backoff_max_ms": 500,
        "max_poll_interval_ms": 3 * asked["session_ms"],
    }
    if asked["instance"]:
        found["group_instance_id"] = asked["instance"]
    if asked["protocol"] == "classic":
        found["session_timeout_ms"] = asked["session_ms"]
        found["heartbeat_interval_ms"] = asked["heartbeat_ms"]
        found["partition_assignment_strategy"] = "range"
    return found


if __name__ == "__main__":
    main()
