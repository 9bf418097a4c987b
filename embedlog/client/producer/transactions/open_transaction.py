"""What a transactional producer knows of the transaction that is open."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.producer.transactions.prepared import PreparedTransaction


class OpenTransaction:
    """What one transaction is made of, from its begin to its end."""

    __slots__ = (
        "is_ending",
        "is_started",
        "is_v2",
        "needs_epoch",
        "new_partitions",
        "partitions",
        "pending_partitions",
        "prepared",
    )

    def __init__(self, *, is_v2: bool) -> None:
        self.is_v2 = is_v2
        """Do brokers make what is written part of it by themselves?"""
        self.is_started = False
        """May the coordinator know of it?"""
        self.is_ending = False
        """Was its end sent, so that nothing may become part of it any more?"""
        self.needs_epoch = False
        """Were sequences lost, so that the next one needs a new epoch?"""
        self.partitions: set[tuple[str, int]] = set()
        """Those that are part of it."""
        self.new_partitions: set[tuple[str, int]] = set()
        """Those that are to become part of it."""
        self.pending_partitions: set[tuple[str, int]] = set()
        """Those that were asked for."""
        self.prepared: PreparedTransaction | None = None
