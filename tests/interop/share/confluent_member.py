"""confluent-kafka's ShareConsumer, with the few calls that the tests need."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import AcknowledgeType, Message, ShareConsumer

from tests.interop.share.share_group import SECONDS_MAX, ShareGroup

TYPES = {
    "accept": AcknowledgeType.ACCEPT,
    "release": AcknowledgeType.RELEASE,
    "reject": AcknowledgeType.REJECT,
}
Delivered = tuple[int, int]
"""The offset of a record, and how often it was delivered."""


class ConfluentMember:
    """A member that acknowledges explicitly unless `mode` says otherwise. Close it after use."""

    def __init__(self, group: ShareGroup, mode: str = "explicit", **settings: Any) -> None:
        given = {
            "bootstrap.servers": group.address,
            "group.id": group.name,
            "share.acknowledgement.mode": mode,
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self.consumer = ShareConsumer(given)
        self.consumer.subscribe([group.topic])
        self.messages: list[Message] = []

    def poll(self, seconds: float = SECONDS_MAX) -> list[Delivered]:
        """Return the records of one poll with any; none if there are none in that time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.messages = list(self.consumer.poll(min(0.5, seconds)))
            for each in self.messages:
                assert each.error() is None, each.error()
            if self.messages:
                break
        return [(each.offset(), each.delivery_count()) for each in self.messages]

    def ack(self, kind: str, *offsets: int) -> None:
        """Acknowledge records of the last poll, by default all; nothing is sent yet."""
        for each in self.messages:
            if not offsets or each.offset() in offsets:
                self.consumer.acknowledge(each, TYPES[kind])

    def commit(self) -> None:
        """Send the acknowledgements; all must be taken."""
        done = self.consumer.commit_sync(SECONDS_MAX)
        assert done and not any(done.values()), done

    def close(self) -> None:
        """Leave the group; unacknowledged records are released."""
        self.consumer.close()

    def __enter__(self) -> ConfluentMember:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
