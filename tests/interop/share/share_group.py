"""A topic, and a share group for it: settings, records, and the offsets that the broker reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.server.wire_client import WireClient
from wire.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from wire.schemas.find_coordinator import FindCoordinatorRequest

SETTINGS = {
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "3000",
    "group.share.assignment.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": "1000",
    "errors.deadletterqueue.auto.create.topics.enable": "true",
}
"""A member gets its partitions at once, and a broker notices a dead one after seconds."""
SECONDS_MAX = 30


class Offsets(NamedTuple):
    """The offsets of a share partition: -1 for unknown."""

    start: int
    lag: int


class ShareGroup:
    """A topic and the name of a group, which reads the topic from its beginning."""

    def __init__(self, address: str, name: str, *, partitions: int = 1, replicas: int = 1) -> None:
        self.address = address
        self.name = f"{name}-group"
        self.topic = f"{name}-topic"
        self._admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        made = self._admin.create_topics([NewTopic(self.topic, partitions, replicas)])
        made[self.topic].result(SECONDS_MAX)
        self.configure({"share.auto.offset.reset": "earliest"})

    def configure(self, settings: dict[str, str]) -> None:
        """Set configs of the group."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.GROUP, self.name, incremental_configs=entries)
        (done,) = self._admin.incremental_alter_configs([resource]).values()
        done.result(SECONDS_MAX)

    def produce(self, values: Iterable[object], *, partition: int = 0) -> None:
        """Produce these values, as text, in one batch if possible."""
        refused: list[object] = []
        settings = {"bootstrap.servers": self.address, "linger.ms": 20, "log_level": 0}
        producer = Producer({**settings, "enable.idempotence": True})
        for value in values:
            producer.produce(
                self.topic, str(value).encode(), partition=partition,
                on_delivery=lambda error, _: error and refused.append(error),
            )  # fmt: skip
        assert producer.flush(SECONDS_MAX) == 0
        assert not refused, refused[0]

    def offsets(self) -> dict[int, Offsets]:
        """Return the offsets of the topic's share partitions, by partition.

        Raises:
            AssertionError: the coordinator refuses to tell them.
        """
        with WireClient(_place(self.address.partition(",")[0])) as client:
            key = {"key_type": 0, "coordinator_keys": [self.name]}
            (found,) = client.ask(FindCoordinatorRequest(**key), 4).coordinators
        group = DescribeShareGroupOffsetsRequestGroup(group_id=self.name, topics=None)
        with WireClient((found.host, found.port)) as client:
            answer = client.ask(DescribeShareGroupOffsetsRequest(groups=[group]), 1).groups[0]
        assert answer.error_code == 0, answer
        return {
            each.partition_index: Offsets(each.start_offset, each.lag)
            for topic in answer.topics
            for each in topic.partitions
            if topic.topic_name == self.topic
        }

    def lag(self) -> int:
        """Return the number of records of all share partitions whose delivery is not over; -1 while
        nothing was acknowledged.

        The start offset is no measure: the broker stores it with the next acknowledgement.
        """
        lags = [each.lag for each in self.offsets().values()]
        return -1 if -1 in lags or not lags else sum(lags)

    def wait_for_lag(self, lag: int) -> None:
        """Wait until this number of records is left."""
        wait(lambda: self.lag() == lag, lambda: f"{self.offsets()}, not {lag}")

    def dead_letters(self, topic: str, count: int) -> list[Message]:
        """Read this many records of a dead letter queue with a plain consumer."""
        settings = {"bootstrap.servers": self.address, "group.id": f"{self.name}-reader"}
        reader = Consumer({**settings, "auto.offset.reset": "earliest", "log_level": 0})
        reader.subscribe([topic])
        found: list[Message] = []
        deadline = time.monotonic() + SECONDS_MAX
        while len(found) < count and time.monotonic() < deadline:
            found += [each for each in reader.consume(count, 0.5) if each.error() is None]
        found += reader.consume(1, 0.5)
        reader.close()
        return found


def wait(is_so: Callable[[], bool], otherwise: Callable[[], str]) -> None:
    """Wait until the condition holds.

    Raises:
        AssertionError: it never held.
    """
    deadline = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.05)


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
