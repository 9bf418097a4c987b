"""Helpers that fill topics, and read them as a member of a share group."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from embedlog import Admin, ConfigResource, Producer, ShareConsumer, ShareRecord

EXPLICIT = {"share.acknowledgement.mode": "explicit"}
WAIT_MS = 15_000
GROUP_SETTINGS = {"share.auto.offset.reset": "earliest", "share.assignment.interval.ms": "0"}
_numbers = count()

Connect = Callable[[], Any]


class Place:
    """A topic and a share group of one test, both new."""

    def __init__(self, connect: Connect, partitions: int, **group_settings: str) -> None:
        number = next(_numbers)
        self.connect = connect
        self.topic = f"jobs-{number}"
        self.group = f"workers-{number}"
        with Admin(connect()) as admin:
            admin.create_topics({self.topic: partitions}).check()
        self.configure(**GROUP_SETTINGS, **group_settings)

    def configure(self, **settings: str) -> None:
        changes = {name: (0, value) for name, value in settings.items()}
        with Admin(self.connect()) as admin:
            admin.incremental_alter_configs({ConfigResource("group", self.group): changes}).check()

    def fill(self, *values: bytes, partition: int = 0, one_batch: bool = True) -> None:
        """Write values to a partition, in one batch or in a batch each."""
        with Producer(self.connect()) as producer:
            for each in [values] if one_batch else [(value,) for value in values]:
                producer.send_batch(self.topic, list(each), partition=partition).result()

    def consumer(self, *settings: dict[str, Any], **more: Any) -> ShareConsumer:
        """Return a subscribed member of the group."""
        chosen: dict[str, Any] = {"group.id": self.group}
        for each in settings:
            chosen.update(each)
        consumer = ShareConsumer(self.connect(), chosen, **more)
        consumer.subscribe([self.topic])
        return consumer


def read(consumer: ShareConsumer, count: int) -> list[ShareRecord]:
    """Poll until `count` records have come."""
    found: list[ShareRecord] = []
    while len(found) < count:
        records = consumer.poll(WAIT_MS)
        assert records, f"{len(found)} of {count} records"
        found += records
    assert len(found) == count, found
    return found


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]
