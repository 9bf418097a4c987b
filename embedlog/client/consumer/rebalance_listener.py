"""What a user may want to do when partitions come and go."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition


class ConsumerRebalanceListener:
    """Override what you need. Called in the thread that uses the consumer, inside its calls.

    No heartbeat is sent meanwhile: be quicker than session.timeout.ms. The consumer may be used in
    them: to commit, to seek, to ask for positions. An exception does not stop the rebalance; the
    call that did it raises the first one when it is over, with a note that names the method and
    the partitions.

    >>> class Report(embedlog.ConsumerRebalanceListener):
    ...     def on_partitions_assigned(self, partitions):
    ...         print("reading", *partitions)
    >>> Report().on_partitions_assigned([])
    reading
    """

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """These are given up, and still ours: the last moment to commit what was read."""

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """These are ours now, in addition; maybe none. Nothing of them has been read yet."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """These are not ours any more, and maybe another's already; commits would fail.

        Unless overridden they are treated as revoked.
        """
        self.on_partitions_revoked(partitions)
