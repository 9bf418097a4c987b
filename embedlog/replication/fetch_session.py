"""One fetch session (KIP-227), and a partition of a fetch, which may live on in a session."""

from __future__ import annotations

from embedlog.replication.partition import Isolation
from embedlog.runtime.locks import Rank, ranked_rlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.replication.partition import Partition
    from wire.schemas import fetch

    Key = tuple[str | bytes, int]

NO_EPOCH = -1
NOTHING_ANSWERED = -1


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
        "log_start_offset",
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
        self.log_start_offset = asked.log_start_offset
        """Of a follower's own log."""
        self.answered_high_watermark = NOTHING_ANSWERED
        self.answered_log_start_offset = NOTHING_ANSWERED
        self.rank = 0
        """Its place in the session's order."""
        self.session: FetchSession | None = None
        self.source: Partition | None = None
        """The partition that tells of its changes."""

    def resolve(self, topic: str) -> None:
        """The topic id has become known."""
        self.topic = topic
        self.key = (topic, self.partition)

    def take_over(self, newer: FetchPartition) -> None:
        """A later request of the session asks differently for this partition."""
        self.fetch_offset = newer.fetch_offset
        self.max_bytes = newer.max_bytes
        is_follower = self.session is not None and self.session.is_privileged
        if is_follower and newer.current_leader_epoch != self.current_leader_epoch:
            # What was told in the term before may have come too late to be taken over.
            self.answered_high_watermark = NOTHING_ANSWERED
        self.current_leader_epoch = newer.current_leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch
        self.log_start_offset = newer.log_start_offset

    def follow(self, source: Partition | None) -> None:
        """Be told of the changes of `source`, and of no other partition's."""
        if self.source is not None:
            self.source.watchers.pop(self.source_changed, None)
        self.source = source
        if source is not None:
            source.watchers[self.source_changed] = None

    def source_changed(self) -> FetchSession | None:
        """The session will look at it again; None when the session has ended."""
        session = self.session
        if session is not None:
            session.active[self] = None
        return session

    def session_used_ms(self) -> int | None:
        """Return when the session was last used (monotonic), or None without a session."""
        session = self.session
        return None if session is None else session.last_used_ms

    def has_news(self, data: fetch.PartitionData) -> bool:
        """Is there anything in `data` that the client has not been told?"""
        return (
            bool(data.records)
            or data.error_code != 0
            or self.answered_high_watermark != data.high_watermark
            or self.answered_log_start_offset != data.log_start_offset
            or data.diverging_epoch.epoch != NO_EPOCH
            or data.preferred_read_replica >= 0
        )

    def was_told(self, partition: Partition) -> bool:
        """Does the client know the offsets of `partition`?"""
        log = partition.log
        return (
            self.answered_high_watermark == log.offsets.high_watermark
            and self.answered_log_start_offset == log.offsets.log_start_offset
        )

    def note_answered(self, data: fetch.PartitionData) -> None:
        """The client is being told of `data`; an error is told again, and so is its end.

        Who has to cut its log first does not take over the high watermark.
        """
        is_taken_over = not data.error_code and data.diverging_epoch.epoch == NO_EPOCH
        self.answered_high_watermark = data.high_watermark if is_taken_over else NOTHING_ANSWERED
        self.answered_log_start_offset = data.log_start_offset


class FetchSession:
    """One session. `lock` guards its epoch, its partitions and their order.

    `active` has no lock: the partitions of which there may be something to tell, added by any
    thread that changes one of them.
    """

    __slots__ = (
        "_last_rank",
        "active",
        "created_ms",
        "epoch",
        "id",
        "is_privileged",
        "isolation",
        "last_used_ms",
        "lock",
        "partitions",
        "uses_topic_ids",
    )

    def __init__(
        self,
        id: int,
        partitions: dict[Key, FetchPartition],
        *,
        uses_topic_ids: bool,
        is_privileged: bool,
        now_ms: int,
    ) -> None:
        self.id = id
        self.partitions = partitions
        self.active: dict[FetchPartition, None] = {}
        self.uses_topic_ids = uses_topic_ids
        self.is_privileged = is_privileged
        """Followers' sessions are: consumers cannot push them out."""
        self.isolation = Isolation.HIGH_WATERMARK
        """Of the last request: what rests, rests under this one."""
        self.epoch = 1
        """The epoch that the next request must carry."""
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.lock = ranked_rlock(Rank.FETCH_SESSION)  # why: `runtime.pending`
        self._last_rank = 0
        for partition in partitions.values():
            self.add(partition)

    def add(self, partition: FetchPartition) -> None:
        """Take a partition in, as the last one, active. Requires: the session lock."""
        partition.session = self
        self.move_to_end(partition)
        self.active[partition] = None

    def forget(self, key: Key) -> None:
        """Fetch a partition no more. Requires: the session lock."""
        partition = self.partitions.pop(key, None)
        if partition is not None:
            partition.session = None
            partition.follow(None)
            self.active.pop(partition, None)

    def move_to_end(self, partition: FetchPartition) -> None:
        """Let a partition be read after all others. Requires: the session lock."""
        self._last_rank += 1
        partition.rank = self._last_rank

    def end(self) -> None:
        """Let go of all partitions."""
        for partition in list(self.partitions.values()):
            partition.session = None
            partition.follow(None)
