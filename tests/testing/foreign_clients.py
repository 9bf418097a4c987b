"""Members of a group with foreign clients, each polling in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Thread
from typing import Any

from embedlog.testing import Kafka

CLIENTS = (
    ("confluent", "classic"),
    ("confluent", "consumer"),
    ("kafka-python", "classic"),
    ("aiokafka", "classic"),
)
"""(library, group protocol)"""


class ForeignMember:
    """A consumer of group "g" that reads "orders" until `close`."""

    def __init__(self, kafka: Kafka, library: str, protocol: str, client_id: str) -> None:
        self.values: list[bytes] = []
        self.is_closing = False
        self._address = kafka.bootstrap_servers
        self._protocol = protocol
        self._client_id = client_id
        run: dict[str, Callable[[], None]] = {
            "confluent": self._confluent,
            "kafka-python": self._kafka_python,
            "aiokafka": lambda: asyncio.run(self._aiokafka()),
        }
        self._thread = Thread(target=run[library], daemon=True)
        self._thread.start()

    def _confluent(self) -> None:
        from confluent_kafka import Consumer

        settings: dict[str, Any] = {
            "bootstrap.servers": self._address,
            "group.id": "g",
            "client.id": self._client_id,
            "group.protocol": self._protocol,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 50,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 50,
            "topic.metadata.refresh.interval.ms": 500,
        }
        if self._protocol == "classic":
            settings |= {"heartbeat.interval.ms": 50, "session.timeout.ms": 6000}
        consumer = Consumer(settings)
        consumer.subscribe(["orders"])
        try:
            while not self.is_closing:
                for message in consumer.consume(10, timeout=0.05):
                    if message.error() is None:
                        self.values.append(message.value())
        finally:
            consumer.close()

    def _kafka_python(self) -> None:
        from kafka import KafkaConsumer

        consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=self._address,
            group_id="g",
            client_id=self._client_id,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=50,
            heartbeat_interval_ms=50,
            session_timeout_ms=6000,
            fetch_max_wait_ms=50,
            isolation_level="read_committed",
        )
        try:
            while not self.is_closing:
                # A poll that ends while the member joins may leave it without heartbeats for ever
                # (dpkp/kafka-python#2617): give it time.
                for records in consumer.poll(timeout_ms=1_000).values():
                    self.values += [each.value for each in records]
        finally:
            consumer.close()

    async def _aiokafka(self) -> None:
        from aiokafka import AIOKafkaConsumer

        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=self._address,
            group_id="g",
            client_id=self._client_id,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=50,
            heartbeat_interval_ms=50,
            session_timeout_ms=6000,
            fetch_max_wait_ms=50,
            isolation_level="read_committed",
        )
        await consumer.start()
        try:
            while not self.is_closing:
                for records in (await consumer.getmany(timeout_ms=50)).values():
                    self.values += [each.value for each in records]
        finally:
            await consumer.stop()

    def close(self) -> None:
        self.is_closing = True
        self._thread.join(30)
        assert not self._thread.is_alive()


@contextmanager
def foreign_members(
    kafka: Kafka, client: tuple[str, str], *client_ids: str
) -> Iterator[list[ForeignMember]]:
    """Yield polling members of group "g" with a (library, protocol)."""
    with ExitStack() as ends:
        made = []
        for client_id in client_ids:
            made.append(ForeignMember(kafka, *client, client_id))
            ends.callback(made[-1].close)
        yield made
