"""The follower's half of a fetch session (KIP-227): requests that name only changes.

    first request     names all partitions, begins the session, and is answered at once
    next requests     name the partitions whose offsets have changed or that are no longer fetched;
                      the answer may wait, and names the partitions with news
    no session        the leader's cache is full: every request names all partitions

The fetch offset of a partition is the end of its log. It acknowledges all earlier records.
"""

from __future__ import annotations

from wire.schemas.fetch import FetchRequest, FetchTopic, ForgottenTopic, ReplicaState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.replication.fetcher.followed_partition import FollowedPartition
    from embedlog.replication.membership import Membership

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1
NO_SESSION = 0

_ROUNDS_WITHOUT = 100
"""If the leader had no room for a session, ask for one again after this many fetches."""


class FollowerSession:
    """The fetch session with one leader: builds the requests. Only the leader's fetcher uses it."""

    def __init__(self, node_id: int, membership: Membership) -> None:
        self._node_id = node_id
        self._membership = membership
        self.partitions: dict[tuple[bytes, int], FollowedPartition] = {}
        self.changed: dict[FollowedPartition, None] = {}
        self._forgotten: dict[tuple[bytes, int], None] = {}
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._rounds_without = 0

    def add(self, followed: FollowedPartition) -> None:
        """Name the partition in the next request, because it is new or its offsets have changed."""
        self.partitions[followed.key] = followed
        self.changed[followed] = None
        self._forgotten.pop(followed.key, None)

    def remove(self, followed: FollowedPartition) -> None:
        if self.partitions.get(followed.key) is followed:
            del self.partitions[followed.key]
            self._forgotten[followed.key] = None
        self.changed.pop(followed, None)

    @property
    def has_news(self) -> bool:
        """Whether the next request has a change to name. If so, it may overtake a waiting fetch."""
        return bool(self.changed or self._forgotten) and self._epoch != INITIAL_EPOCH

    def next_request(self) -> FetchRequest | None:
        """Return the request to send, or None if there is nothing to fetch."""
        if not self.partitions and (self._id == NO_SESSION or not self._forgotten):
            self._forgotten.clear()
            return None
        is_full = self._epoch in (INITIAL_EPOCH, FINAL_EPOCH)
        named: Iterable[FollowedPartition] = self.partitions.values() if is_full else self.changed
        config = self._membership.config
        request = FetchRequest(
            replica_state=ReplicaState(
                replica_id=self._node_id, replica_epoch=self._membership.broker_epoch
            ),
            # A later request must not overtake the first request of a session, so the leader must
            # answer it at once.
            max_wait_ms=0 if self._epoch == INITIAL_EPOCH else config.replica_fetch_wait_max_ms,
            min_bytes=config.replica_fetch_min_bytes,
            max_bytes=config.replica_fetch_response_max_bytes,
            session_id=self._id,
            session_epoch=self._epoch,
            topics=_topics(named, config.replica_fetch_max_bytes),
            forgotten_topics_data=[] if is_full else _forgotten(self._forgotten),
        )
        self.changed.clear()
        self._forgotten.clear()
        if self._epoch == FINAL_EPOCH:
            self._rounds_without -= 1
            if self._rounds_without <= 0:
                self._epoch = INITIAL_EPOCH
        elif self._epoch != INITIAL_EPOCH:
            self._epoch = self._epoch + 1 if self._epoch < EPOCH_MAX else 1
        return request

    def answered(self, request: FetchRequest, session_id: int) -> None:
        """Continue the session after `request` was answered without a top-level error."""
        if request.session_epoch == INITIAL_EPOCH:
            self._id = session_id
            self._epoch = 1
            if session_id == NO_SESSION:
                self._epoch, self._rounds_without = FINAL_EPOCH, _ROUNDS_WITHOUT
        elif session_id == NO_SESSION:
            self._id, self._epoch = (
                NO_SESSION,
                INITIAL_EPOCH,
            )  # the session ended because it was empty

    def restart(self, *, is_known: bool = True) -> None:
        """Begin a new session. The next request ends the present one if the leader still has it.

        `is_known` is False if the leader has answered that it no longer has the session.
        """
        if not is_known:
            self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._forgotten.clear()


def _topics(named: Iterable[FollowedPartition], max_bytes: int) -> list[FetchTopic]:
    topics: dict[bytes, FetchTopic] = {}
    for followed in named:
        topic = topics.get(followed.topic_id)
        if topic is None:
            topic = topics[followed.topic_id] = FetchTopic(
                topic=followed.partition.topic, topic_id=followed.topic_id, partitions=[]
            )
        topic.partitions.append(followed.asked(max_bytes))
    return list(topics.values())


def _forgotten(keys: Iterable[tuple[bytes, int]]) -> list[ForgottenTopic]:
    topics: dict[bytes, ForgottenTopic] = {}
    for topic_id, index in keys:
        topic = topics.setdefault(topic_id, ForgottenTopic(topic_id=topic_id, partitions=[]))
        topic.partitions.append(index)
    return list(topics.values())
