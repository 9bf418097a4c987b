"""What a fetch asks for: the bounds of the whole, and the place in each partition."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.replication.fetch_session import FetchSession
    from embedlog.replication.partition import Partition
    from wire.schemas.fetch import PartitionData

NO_EPOCH = -1
NOTHING_ANSWERED = -1


class FetchParams:
    """The part of a fetch that holds for all its partitions."""

    __slots__ = (
        "isolation",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "replica_id",
        "target_bytes",
        "uses_topic_ids",
    )

    def __init__(
        self,
        *,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        isolation: int,
        replica_id: int,
        uses_topic_ids: bool,
        target_bytes: int | None = None,
    ) -> None:
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation = isolation
        self.replica_id = replica_id
        """-1 is a consumer, as is every other negative number."""
        self.uses_topic_ids = uses_topic_ids
        self.target_bytes = max_bytes if target_bytes is None else target_bytes
        """Once that much was read no further partition is; None for `max_bytes`."""


class FetchPartition:
    """One partition of a fetch. In a session it lives on, with what was last answered.

    `topic` is "" while the topic id of a v13 request is unknown; only `resolve` changes that.
    """

    __slots__ = (
        "answered_high_watermark",
        "answered_log_start_offset",
        "current_leader_epoch",
        "fetch_offset",
        "key",
        "last_fetched_epoch",
        "max_bytes",
        "partition",
        "rank",
        "session",
        "source",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        partition: int,
        *,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition
        self.key = (topic, partition)
        """Equal to the `TopicPartition`, and made in a tenth of the time."""
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.answered_high_watermark = NOTHING_ANSWERED
        self.answered_log_start_offset = NOTHING_ANSWERED
        self.rank = 0
        """Its place in the session's order."""
        self.session: FetchSession | None = None
        self.source: Partition | None = None
        """The partition that tells the session of its changes."""

    def resolve(self, topic: str) -> None:
        """The topic id has become known."""
        self.topic = topic
        self.key = (topic, self.partition)

    def take_over(self, newer: FetchPartition) -> None:
        """A later request of the session asks differently for this partition."""
        self.fetch_offset = newer.fetch_offset
        self.max_bytes = newer.max_bytes
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch

    def follow(self, source: Partition | None) -> None:
        """Be told of the changes of `source`, and of no other partition's."""
        if self.source is not None:
            self.source.followers.pop(self, None)
        self.source = source
        if source is not None:
            source.followers[self] = None

    def has_news(self, data: PartitionData) -> bool:
        """Is there anything in `data` that the client has not been told?"""
        return (
            bool(data.records)
            or data.error_code != 0
            or self.answered_high_watermark != data.high_watermark
            or self.answered_log_start_offset != data.log_start_offset
            or data.diverging_epoch.epoch != NO_EPOCH
        )

    def note_answered(self, data: PartitionData) -> None:
        """The client is being told of `data`; an error is told again, and so is its end."""
        self.answered_high_watermark = NOTHING_ANSWERED if data.error_code else data.high_watermark
        self.answered_log_start_offset = data.log_start_offset
