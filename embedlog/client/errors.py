"""Errors about the use of a client, which only clients raise."""

from __future__ import annotations

from embedlog.errors import EmbedlogError, TimedOut
from embedlog.errors import IllegalState as IllegalState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.errors import KafkaError


def because(last_error: KafkaError | None) -> str:
    """Return the end of a `TimedOut` text: the error of the last attempt, if there was one."""
    if last_error is None:
        return ""
    return f"; the last error was: {type(last_error).__name__}: {last_error}"


class ConcurrentUse(EmbedlogError):
    """Two threads used one consumer at the same time; another thread may only call `wakeup`."""


class WakeupError(EmbedlogError):
    """A call of `wakeup` interrupted a waiting call."""


class BufferExhausted(TimedOut):
    """buffer.memory stayed full for max.block.ms: records come faster than brokers take them."""


class SerializationError(EmbedlogError):
    """A serializer refused a record; the serializer's exception is the cause."""


class NoOffsetForPartition(EmbedlogError):
    """A partition has no position, and auto.offset.reset=none forbids choosing one."""


class RecordUnreadable(EmbedlogError):
    """A record cannot be returned: its batch is damaged, or a deserializer refused it.

    The position stays at `offset` of `topic`-`partition`: every poll raises again until the
    consumer seeks past it. A share consumer acknowledges the record and goes on.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        reason: str,
        *,
        advice: str = "seek past it to go on",
    ) -> None:
        super().__init__(f"{topic}-{partition} at offset {offset}: {reason}; {advice}")
        self.topic = topic
        self.partition = partition
        self.offset = offset


class CommitFailed(EmbedlogError):
    """The offsets were not stored: the group has rebalanced without this member.

    Other members have its partitions. The next poll joins the group again.
    """


class RetriableCommitFailed(EmbedlogError):
    """An asynchronous commit was not stored; a commit of later offsets may still succeed."""


class TransactionAborted(EmbedlogError):
    """The transaction was aborted before this record was sent."""
