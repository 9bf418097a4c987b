"""Consumers of a group in this process, each in a thread of its own, for tests of the test kit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Thread
from typing import Any

from embedlog.testing import Kafka

FAST = {
    "group.consumer.min.heartbeat.interval.ms": 10,
    "group.consumer.heartbeat.interval.ms": 20,
    "group.consumer.min.session.timeout.ms": 100,
    "group.consumer.assignment.interval.ms": 0,
    "group.min.session.timeout.ms": 100,
    "offsets.topic.num.partitions": 3,
    "transaction.state.log.num.partitions": 3,
}
"""Settings of brokers, so that members of KIP-848 learn about a new target soon."""


def settings_of(protocol: str) -> dict[str, Any]:
    """Return the settings of a consumer that learns soon about a rebalance."""
    if protocol == "consumer":
        return {"group_protocol": "consumer"}
    return {"heartbeat_interval_ms": 20, "session_timeout_ms": 5_000}


class Member:
    """A consumer that polls in a thread until `close`."""

    def __init__(self, kafka: Kafka, topic: str, protocol: str, **settings: Any) -> None:
        self.records: list[Any] = []
        self._consumer = kafka.cluster.consumer(
            group_id="g",
            auto_offset_reset="earliest",
            auto_commit_interval_ms=20,
            **settings_of(protocol),
            **settings,
        )
        self._consumer.subscribe([topic])
        self._is_closing = False
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_closing:
                self.records += self._consumer.poll(0.05)
        finally:
            self._consumer.close()

    def close(self) -> None:
        self._is_closing = True
        self._thread.join(20)
        assert not self._thread.is_alive()


@contextmanager
def members(
    kafka: Kafka, *client_ids: str, protocol: str, **settings: Any
) -> Iterator[list[Member]]:
    """Yield polling members of group "g" that read the topic "orders"."""
    with ExitStack() as ends:
        made = []
        for client_id in client_ids:
            made.append(Member(kafka, "orders", protocol, client_id=client_id, **settings))
            ends.callback(made[-1].close)
        yield made
