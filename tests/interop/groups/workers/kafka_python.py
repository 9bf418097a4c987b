"""A member by kafka-python: the classic protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    IllegalGenerationError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafka.structs import OffsetAndMetadata

from tests.interop.groups.journal import COMMIT_EVERY, Journal, Partition, options

POLL_MS = 1000
"""Version 3.0.12 may lose the end of a join that outlasts a poll, and then never joins."""
REFUSALS = (
    CommitFailedError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)


class Listener(ConsumerRebalanceListener):
    """Records assignments and revocations; commits before partitions are given up."""

    def __init__(self, consumer: KafkaConsumer, journal: Journal) -> None:
        self._consumer = consumer
        self._journal = journal
        self._held: set[Partition] = set()

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """In the eager protocol every partition is new."""
        self._held = set(assigned)
        generation = self._consumer.group_metadata().generation_id
        self._journal.assigned(self._held, generation)

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """The group waits for this call."""
        if self._held:
            commit(self._consumer, self._journal)
            self._journal.revoked(self._held)
        self._held = set()

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        """The group did not wait."""
        self._journal.lost(lost)
        self._held = set()


def commit(consumer: KafkaConsumer, journal: Journal) -> None:
    """Commit the positions, and wait for the answer."""
    offsets = {
        TopicPartition(*where): OffsetAndMetadata(at, "", -1)
        for where, at in journal.uncommitted.items()
    }
    if not offsets:
        return
    number = journal.committing()
    try:
        consumer.commit(offsets, timeout_ms=5000)
    except FencedInstanceIdError as error:
        journal.refused(number, error)
        raise
    except REFUSALS as error:
        journal.refused(number, error)
    except KafkaError:
        return  # a time-out or a lost connection: the outcome is unknown
    else:
        journal.committed(number)


def started(asked: dict[str, Any]) -> KafkaConsumer:
    """Return a consumer that has found its broker."""
    while True:
        try:
            return KafkaConsumer(
                bootstrap_servers=asked["address"],
                group_id=asked["group"],
                group_instance_id=asked["instance"],
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                session_timeout_ms=asked["session_ms"],
                heartbeat_interval_ms=asked["heartbeat_ms"],
                max_poll_interval_ms=3 * asked["session_ms"],
                fetch_max_wait_ms=100,
                reconnect_backoff_max_ms=500,
                metadata_max_age_ms=1000,
                partition_assignment_strategy=[RangePartitionAssignor],
            )
        except KafkaError as error:
            if not error.retriable:
                raise


def main() -> None:
    """Consume until SIGTERM, or until the member is fenced."""
    asked = options()
    journal = Journal()
    consumer = started(asked)
    consumer.subscribe(asked["topics"], listener=Listener(consumer, journal))
    while not journal.is_stopping:
        try:
            found = consumer.poll(POLL_MS, max_records=COMMIT_EVERY)
            for records in found.values():
                for record in records:
                    journal.record(record.topic, record.partition, record.offset)
            commit(consumer, journal)
        except FencedInstanceIdError as error:
            journal.fenced(error)
            return
        except KafkaError as error:
            if not error.retriable:  # for example after a lost connection
                raise
    consumer.close(autocommit=False)
    journal.closed()


if __name__ == "__main__":
    main()
