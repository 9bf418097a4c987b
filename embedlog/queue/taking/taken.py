"""`Taken`: one record that a worker of this process has, or will get."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.share.record import ShareRecord
    from embedlog.errors import KafkaError

    Place = tuple[str, int, int]
    """Topic, partition, offset."""


class Taken:
    """A record, its lock, and the outcome of its acknowledgement."""

    __slots__ = ("error", "has_outcome", "is_settled", "locked_until_ms", "record", "renewals")

    def __init__(self, record: ShareRecord, locked_until_ms: int) -> None:
        self.record = record
        self.locked_until_ms = locked_until_ms
        """Monotonic time at which the lock has certainly ended, unless it is renewed."""
        self.is_settled = False
        """True once an acknowledgement other than a renewal was chosen."""
        self.has_outcome = False
        """True once the leader has answered that acknowledgement."""
        self.renewals = 0
        """Renewals without an outcome."""
        self.error: KafkaError | None = None
        """Why the leader refused the last acknowledgement."""

    @property
    def place(self) -> Place:
        return self.record.topic, self.record.partition, self.record.offset
