"""Errors that only a client raises, about how it is used."""

from __future__ import annotations

from embedlog.errors import EmbedlogError


class IllegalState(EmbedlogError):
    """The call does not fit what the client is doing, such as a seek without an assignment."""


class ConcurrentUse(EmbedlogError):
    """Two threads used one consumer at the same time; only `wakeup` may come from another."""


class WakeupError(EmbedlogError):
    """`wakeup` ended a call that waited."""


class NoOffsetForPartition(EmbedlogError):
    """A partition has no position, and auto.offset.reset=none forbids to choose one."""


class RecordUnreadable(EmbedlogError):
    """A record cannot be handed out: its batch is damaged, or a deserializer refused it.

    The position stays at `offset` of `topic`-`partition`: every poll raises again until the
    consumer seeks past it.
    """

    def __init__(self, topic: str, partition: int, offset: int, reason: str) -> None:
        super().__init__(f"{topic}-{partition} at offset {offset}: {reason}; seek past it to go on")
        self.topic = topic
        self.partition = partition
        self.offset = offset
