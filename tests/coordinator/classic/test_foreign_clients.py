"""librdkafka, kafka-python and aiokafka in one group, over TCP; one leaves, others take over."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog

pytestmark = pytest.mark.interop

TOPIC = "shared"
PARTITIONS = 6
RECORDS = 60
PATIENCE_SECONDS = 40


class Member:
    """A consumer in a thread of its own; any thread may read `assigned` and `read`."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.assigned: set[int] = set()
        self.read: set[tuple[int, int]] = set()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Close the consumer, which leaves the group."""
        self._is_over.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        raise AssertionError("a subclass's")


class Confluent(Member):
    def _run(self) -> None:
        from confluent_kafka import Consumer

        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "mixed",
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "range",
                "heartbeat.interval.ms": 200,
                "session.timeout.ms": 6000,
            }
        )
        consumer.subscribe([TOPIC])
        while not self._is_over.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.read.add((message.partition(), message.offset()))
            self.assigned = {part.partition for part in consumer.assignment()}
        consumer.close()


class KafkaPython(Member):
    def _run(self) -> None:
        from kafka import KafkaConsumer

        consumer = KafkaConsumer(
            TOPIC,
            bootstrap_servers=self.address,
            group_id="mixed",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
            session_timeout_ms=6000,
        )
        while not self._is_over.is_set():
            for records in consumer.poll(timeout_ms=100).values():
                self.read.update((record.partition, record.offset) for record in records)
            self.assigned = {part.partition for part in consumer.assignment()}
        consumer.close()


class AioKafka(Member):
    def _run(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor

        consumer = AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=self.address,
            group_id="mixed",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
            session_timeout_ms=6000,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        await consumer.start()
        while not self._is_over.is_set():
            for records in (await consumer.getmany(timeout_ms=100)).values():
                self.read.update((record.partition, record.offset) for record in records)
            self.assigned = {part.partition for part in consumer.assignment()}
        await consumer.stop()


def wait_until(is_so: Callable[[], bool], what: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


@pytest.fixture
def address() -> Iterator[str]:
    with embedlog.open(group_initial_rebalance_delay_ms=500) as cluster:
        cluster.admin().create_topics({TOPIC: PARTITIONS})
        with cluster.producer() as producer:
            for number in range(RECORDS):
                producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS)
        yield cluster.listen("127.0.0.1", 0).address


def test_three_libraries_share_a_group(address: str) -> None:
    members = [kind(address) for kind in (Confluent, KafkaPython, AioKafka)]

    def shares(count: int) -> Callable[[], bool]:
        def is_so() -> bool:
            parts = [member.assigned for member in members]
            return (
                sorted(part for share in parts for part in share) == list(range(PARTITIONS))
                and [len(share) for share in parts] == [PARTITIONS // count] * count
            )

        return is_so

    def look() -> list[set[int]]:
        return [member.assigned for member in members]

    wait_until(shares(3), look)
    wait_until(
        lambda: len(set().union(*(member.read for member in members))) == RECORDS,
        lambda: [len(member.read) for member in members],
    )
    for left in (2, 1):
        members.pop(0).leave()
        wait_until(shares(left), look)
    members.pop().leave()
