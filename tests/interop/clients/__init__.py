"""Unmodified Kafka clients behind one small interface, so that one test body drives them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

Headers = tuple[tuple[str, bytes | None], ...]


class Row(NamedTuple):
    """A record as given to a producer and returned by a consumer."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int = 1_700_000_000_000


class Client(Protocol):
    """One foreign client library or program."""

    name: str
    codecs: Sequence[str]
    null_values: bool
    headers: bool
    timestamps: bool

    def create_topic(self, address: str, topic: str, partitions: int) -> None:
        """Create the topic with the client's own admin call, or by asking for its metadata."""

    def produce(
        self, address: str, topic: str, rows: Sequence[Row], *, codec: str = "none", acks: int = -1
    ) -> None:
        """Produce to partition 0 and wait until everything is acknowledged (or sent, acks 0)."""

    def consume(self, address: str, topic: str, count: int) -> list[Row]:
        """Read `count` records of partition 0 from its start, by assignment."""

    def offsets(self, address: str, topic: str, timestamp: int) -> int:
        """ListOffsets of partition 0: -2 earliest, -1 latest, or a time (-1: none)."""
