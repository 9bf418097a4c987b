"""`OffsetCommits`: the open commits of a consumer, sent in order.

A commit that the user waits for, or before a rebalance, is retried until the wait times out. The
retry leaves out partitions of later commits. An asynchronous commit is not retried. `settle`
reports outcomes in the user's thread: to the interceptors first, then to the callback.
"""

from __future__ import annotations

from embedlog.client.consumer.group.coordinator_lookup import LOST_COORDINATOR
from embedlog.client.consumer.group.group_offsets import OffsetAndMetadata
from embedlog.client.errors import RetriableCommitFailed
from embedlog.client.metadata import as_kafka_error
from embedlog.client.user_code import attempt
from embedlog.common import ZERO_UUID, TopicPartition, deque
from embedlog.errors import EmbedlogError, error_for
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.schema import declaration
from wire.schemas.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from embedlog.client.consumer.group.coordinator_lookup import CoordinatorLookup
    from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.offset_commit import OffsetCommitResponse

    Offsets = Mapping[TopicPartition, OffsetAndMetadata]
    Callback = Callable[[dict[TopicPartition, OffsetAndMetadata], Exception | None], object]


_TOPIC_IDS_SINCE = 10
_CONCERNS_THE_MEMBER = frozenset(
    (
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
    )
)


class Commit:
    """One commit. Once `is_done`, `error` is the reason why it was not stored, or None."""

    __slots__ = (
        "callback",
        "error",
        "is_done",
        "last_refusal",
        "left",
        "not_before_ms",
        "number",
        "offsets",
        "pending",
        "retries",
        "seen_failures",
        "sent_by",
    )

    def __init__(
        self, number: int, offsets: Offsets, *, retries: bool, callback: Callback | None
    ) -> None:
        self.number = number
        """Later commits have higher numbers."""
        self.offsets = dict(offsets)
        self.left = self.offsets
        """The offsets to send: without the partitions of later commits."""
        self.retries = retries
        self.callback = callback
        self.pending: Pending[OffsetCommitResponse] | None = None
        self.sent_by: ConsumerGroupMetadata | None = None
        self.seen_failures = 0
        """Number of failed coordinator look-ups when the commit began."""
        self.not_before_ms = 0
        self.is_done = False
        self.error: Exception | None = None
        self.last_refusal: KafkaError | None = None
        """The error that caused the last retry."""


class OffsetCommits:
    """The commits of one consumer."""

    def __init__(
        self,
        parts: ConsumerParts,
        lookup: CoordinatorLookup,
        identity: Callable[[], ConsumerGroupMetadata],
        refused: Callable[[KafkaError, ConsumerGroupMetadata], Exception],
    ) -> None:
        """`identity()` returns the committing member, or raises if it must not commit now.

        `refused(error, sent_by)` returns the exception for a refusal that concerns the member.
        """
        self._parts = parts
        self._lookup = lookup
        self._identity = identity
        self._refused = refused
        self._backoff_ms: int = parts.settings["retry.backoff.ms"]
        self._count = 0
        self._newest: dict[TopicPartition, int] = {}
        """By partition, the number of the last commit that was sent."""
        self._open: list[Commit] = []
        self._to_tell: deque[Commit] = deque()

    def open(self) -> list[Commit]:
        """Return the commits that have no outcome yet."""
        return list(self._open)

    def begin(self, offsets: Offsets, *, retries: bool, callback: Callback | None = None) -> Commit:
        """Begin a commit, which `advance` will send. If `offsets` is empty, it is done at once."""
        self._count += 1
        commit = Commit(self._count, offsets, retries=retries, callback=callback)
        commit.seen_failures = self._lookup.failure_count
        if commit.offsets:
            self._open.append(commit)
        else:
            self._finish(commit, None)
        return commit

    def give_up(self, commit: Commit) -> None:
        """Forget a commit whose wait has timed out. A late answer is ignored."""
        if commit in self._open:
            self._open.remove(commit)

    def fail_all(self, error: KafkaError) -> None:
        """End all open commits with an error: there is no coordinator to store them."""
        for commit in list(self._open):
            self._finish(commit, error)

    def advance(self, now_ms: int) -> int | None:
        """Send commits and take answers; return milliseconds until the next retry, if any."""
        delay: int | None = None
        for commit in list(self._open):
            if commit.pending is None:
                self._send(commit, now_ms)
            if commit.pending is not None and commit.pending.done():
                self._take(commit, now_ms)
            left = commit.not_before_ms - now_ms
            if not commit.is_done and commit.pending is None and left > 0:
                delay = left if delay is None else min(delay, left)
        return delay

    def settle(self) -> None:
        """Report the outcomes of commits in order. Requires: the user's thread."""
        while self._to_tell:
            commit = self._to_tell.popleft()
            interceptors = self._parts.interceptors
            if commit.error is None and interceptors is not None:
                interceptors.tell("on_commit", commit.offsets)
            if commit.callback is not None:
                about = f"for the commit of {', '.join(map(str, commit.offsets)) or 'nothing'}"
                error = attempt(commit.callback, commit.offsets, commit.error, about=about)
                if error is not None:
                    raise error

    def _send(self, commit: Commit, now_ms: int) -> None:
        node_id = self._lookup.node_id
        if node_id is None:
            self._lookup.need()
            if not commit.retries and self._lookup.failure_count > commit.seen_failures:
                self._finish(commit, RetriableCommitFailed("the coordinator was not found"))
            return
        if now_ms < commit.not_before_ms:
            return
        if commit.sent_by is not None:
            newest, number = self._newest, commit.number
            commit.left = {k: each for k, each in commit.left.items() if newest[k] == number}
            if not commit.left:
                self._finish(commit, None)
                return
        try:
            commit.sent_by = self._identity()
        except EmbedlogError as error:
            self._finish(commit, error)
            return
        self._newest.update(dict.fromkeys(commit.left, commit.number))
        request, version = self._request(commit, commit.sent_by)
        self._parts.counts["commit-total"] += 1
        commit.pending = self._parts.send(node_id, request, version=version)

    def _request(
        self, commit: Commit, sender: ConsumerGroupMetadata
    ) -> tuple[OffsetCommitRequest, int]:
        topics: dict[str, OffsetCommitRequestTopic] = {}
        known = self._parts.metadata.topics
        for (name, number), (offset, text, leader_epoch) in commit.left.items():
            if name not in topics:
                topic_id = known[name].topic_id if name in known else ZERO_UUID
                topics[name] = OffsetCommitRequestTopic(name=name, topic_id=topic_id)
            topics[name].partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=offset,
                    committed_leader_epoch=leader_epoch,
                    committed_metadata=text,
                )
            )
        request = OffsetCommitRequest(
            group_id=sender.group_id,
            generation_id_or_member_epoch=sender.generation_id,
            member_id=sender.member_id,
            group_instance_id=sender.group_instance_id,
            topics=list(topics.values()),
        )
        newest = declaration(OffsetCommitRequest).last_version
        version = min(newest, self._lookup.newest(ApiKey.OFFSET_COMMIT))
        if any(topic.topic_id == ZERO_UUID for topic in topics.values()):
            version = min(version, _TOPIC_IDS_SINCE - 1)
        return request, version

    # Answers

    def _take(self, commit: Commit, now_ms: int) -> None:
        assert commit.pending is not None, commit
        pending, commit.pending = commit.pending, None
        error = pending.error()
        refusal = self._refusal(pending.result()) if error is None else as_kafka_error(error)
        if refusal is None:
            self._finish(commit, None)
            return
        if refusal.code in LOST_COORDINATOR:
            self._lookup.lost()
        if refusal.code in _CONCERNS_THE_MEMBER:
            assert commit.sent_by is not None, commit
            meaning: Exception = self._refused(refusal, commit.sent_by)
            is_retriable = False
        else:
            meaning = refusal
            # A stale epoch allows a retry, because the next heartbeat brings the new epoch.
            is_retriable = refusal.retriable or refusal.code == ErrorCode.STALE_MEMBER_EPOCH
        if refusal.code in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            self._parts.metadata.request_update()
        if refusal.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            is_retriable = not self._parts.transport.is_authority
        if not is_retriable:
            self._finish(commit, meaning)
        elif commit.retries:
            commit.last_refusal = refusal
            commit.not_before_ms = now_ms + self._backoff_ms
        else:
            self._finish(commit, RetriableCommitFailed(str(meaning)))

    def _refusal(self, response: OffsetCommitResponse) -> KafkaError | None:
        """Return an error, preferably a permanent one; None without errors."""
        refusal: KafkaError | None = None
        for topic in response.topics:
            name = topic.name or self._parts.metadata.names_by_id.get(topic.topic_id, "")
            for partition in topic.partitions:
                if partition.error_code:
                    where = str(TopicPartition(name, partition.partition_index))
                    error = error_for(partition.error_code, f"commit of {where}")
                    if refusal is None or (refusal.retriable and not error.retriable):
                        refusal = error
        return refusal

    def _finish(self, commit: Commit, error: Exception | None) -> None:
        if commit in self._open:
            self._open.remove(commit)
        commit.is_done = True
        commit.error = error
        self._to_tell.append(commit)
