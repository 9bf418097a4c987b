"""A member by aiokafka: the classic protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import (
    CommitFailedError,
    IllegalGenerationError,
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

from tests.interop.groups.journal import COMMIT_EVERY, POLL_SECONDS, Journal, Partition, options

REFUSALS = (
    CommitFailedError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
NO_GENERATION = -1


class Listener(ConsumerRebalanceListener):
    """Records assignments and revocations; commits before partitions are given up."""

    def __init__(self, consumer: AIOKafkaConsumer, journal: Journal) -> None:
        self._consumer = consumer
        self._journal = journal
        self._held: set[Partition] = set()
        self.lock = asyncio.Lock()

    def _generation(self) -> int:
        return int(self._consumer._coordinator.generation)

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """In the eager protocol every partition is new."""
        self._held = set(assigned)
        self._journal.assigned(self._held, self._generation())

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """aiokafka calls this even after an expulsion; it has no generation then."""
        async with self.lock:
            if self._held and self._generation() == NO_GENERATION:
                self._journal.lost(self._held)
            elif self._held:
                await commit(self._consumer, self._journal)
                self._journal.revoked(self._held)
            self._held = set()

    async def leave(self) -> None:
        """aiokafka leaves without calling its listener."""
        async with self.lock:
            self._journal.revoked(self._held)
            self._held = set()


async def commit(consumer: AIOKafkaConsumer, journal: Journal) -> None:
    """Commit the positions, and wait for the answer."""
    offsets = {TopicPartition(*where): at for where, at in journal.uncommitted.items()}
    if not offsets:
        return
    number = journal.committing()
    try:
        await asyncio.wait_for(consumer.commit(offsets), 5)
    except REFUSALS as error:
        journal.refused(number, error)
    except (TimeoutError, KafkaError, IllegalStateError):
        return  # a time-out, a lost connection, or a lost partition: the outcome is unknown
    else:
        journal.committed(number)


async def consume() -> None:
    """Consume until SIGTERM."""
    asked = options()
    journal = Journal()
    consumer = await started(asked)
    listener = Listener(consumer, journal)
    consumer.subscribe(asked["topics"], listener=listener)
    try:
        while not journal.is_stopping:
            found = await consumer.getmany(
                timeout_ms=int(POLL_SECONDS * 1000), max_records=COMMIT_EVERY
            )
            async with listener.lock:
                for records in found.values():
                    for record in records:
                        journal.record(record.topic, record.partition, record.offset)
                await commit(consumer, journal)
    finally:
        await listener.leave()
        await consumer.stop()
    journal.closed()


async def started(asked: dict[str, Any]) -> AIOKafkaConsumer:
    """Return a consumer that has found its broker; aiokafka itself fails at the first refusal."""
    while True:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=asked["address"],
            group_id=asked["group"],
            group_instance_id=asked["instance"],
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=asked["session_ms"],
            heartbeat_interval_ms=asked["heartbeat_ms"],
            max_poll_interval_ms=3 * asked["session_ms"],
            fetch_max_wait_ms=100,
            metadata_max_age_ms=1000,
            partition_assignment_strategy=(RangePartitionAssignor,),
        )
        try:
            await consumer.start()
        except KafkaConnectionError:
            await consumer.stop()
            await asyncio.sleep(POLL_SECONDS)
        else:
            return consumer


if __name__ == "__main__":
    asyncio.run(consume())
