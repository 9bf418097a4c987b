"""What a fetch asks for: the bounds of the whole, and the place in each partition."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.replication.fetch_session import FetchSession
    from embedlog.replication.partition import Partition
    from wire.schemas import fetch

FIRST_WITH_IDS = 13
"""The version from which topics are named by id."""

FIRST_WITH_STATE = 15
"""The version from which the replica's id is in `replica_state`."""

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

    def __init__(self, version: int, request: fetch.FetchRequest, max_bytes: int) -> None:
        """`max_bytes` is the most that the broker gives, whatever is asked for."""
        asked = request.max_bytes
        self.max_bytes = max_bytes = asked if asked < max_bytes else max_bytes
        asked = request.min_bytes
        self.min_bytes = asked if asked < max_bytes else max_bytes
        self.max_wait_ms = request.max_wait_ms
        self.isolation = request.isolation_level
        self.replica_id = (
            request.replica_id if version < FIRST_WITH_STATE else request.replica_state.replica_id
        )
        """-1 is a consumer, as is every other negative number."""
        self.uses_topic_ids = version >= FIRST_WITH_IDS
        self.target_bytes = max_bytes
        """Once that much was read no further partition is."""


class FetchPartition:
    """One partition of a fetch: what the request says of it, under the topic's name.

    In a session it lives on, with what was last answered.

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
        asked: fetch.FetchPartition,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = partition = asked.partition
        self.key = (topic, partition)
        """Equal to the `TopicPartition`, and made in a tenth of the time."""
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch
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

    def has_news(self, data: fetch.PartitionData) -> bool:
        """Is there anything in `data` that the client has not been told?"""
        return (
            bool(data.records)
            or data.error_code != 0
            or self.answered_high_watermark != data.high_watermark
            or self.answered_log_start_offset != data.log_start_offset
            or data.diverging_epoch.epoch != NO_EPOCH
        )

    def was_told(self, partition: Partition) -> bool:
        """Does the client know the offsets of `partition`?"""
        log = partition.log
        return (
            self.answered_high_watermark == log.high_watermark
            and self.answered_log_start_offset == log.log_start_offset
        )

    def note_answered(self, data: fetch.PartitionData) -> None:
        """The client is being told of `data`; an error is told again, and so is its end."""
        self.answered_high_watermark = NOTHING_ANSWERED if data.error_code else data.high_watermark
        self.answered_log_start_offset = data.log_start_offset
