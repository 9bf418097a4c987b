"""`CommittedLookup`: looks up the committed offsets of a group with OffsetFetch."""

from __future__ import annotations

from embedlog.client.backoff import Backoff, Retry
from embedlog.client.consumer.group.coordinator_lookup import LOST_COORDINATOR
from embedlog.client.consumer.group.group_offsets import OffsetAndMetadata
from embedlog.client.metadata import as_kafka_error
from embedlog.common import ZERO_UUID, TopicPartition
from embedlog.errors import error_for
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.schema import declaration
from wire.schemas.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from embedlog.client.consumer.group.coordinator_lookup import CoordinatorLookup
    from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.offset_fetch import (
        OffsetFetchResponse,
        OffsetFetchResponseTopic,
        OffsetFetchResponseTopics,
    )

    Topics = list[OffsetFetchRequestTopics]
    AnsweredTopics = list[OffsetFetchResponseTopics] | list[OffsetFetchResponseTopic]

_GROUPS_SINCE = 8
_TOPIC_IDS_SINCE = 10
_MEMBER_NEWS = frozenset((ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID))
"""Errors that an outdated member epoch causes: ask again with the new epoch."""


class CommittedLookup:
    """One look-up. `found` has None for a partition without a committed offset."""

    def __init__(
        self,
        parts: ConsumerParts,
        lookup: CoordinatorLookup,
        asker: Callable[[], ConsumerGroupMetadata],
        partitions: Iterable[TopicPartition],
    ) -> None:
        """`asker` returns the identity to send, which may be only a group id."""
        self._parts = parts
        self._lookup = lookup
        self._asker = asker
        self._group_id = asker().group_id
        self._left = dict.fromkeys(partitions)
        self._answered: list[TopicPartition] = []
        self._asked_names: dict[bytes, str] = {}
        """The names of the topics by the ids of the last request: a topic may get a new id."""
        self._pending: Pending[OffsetFetchResponse] | None = None
        self._retry = Retry(Backoff.of_retries(parts.settings, parts.transport.runtime.random))
        self.found: dict[TopicPartition, OffsetAndMetadata | None] = {}
        self.error: KafkaError | None = None
        self.last_refusal: KafkaError | None = None
        """The error that caused the last retry."""

    @property
    def is_done(self) -> bool:
        return not self._left

    def take_answered(self) -> list[TopicPartition]:
        """Return the partitions that got their answer, or failed, since the last call."""
        answered, self._answered = self._answered, []
        return answered

    def forget(self, key: TopicPartition) -> None:
        """Ask no more about a partition; ignore its answer if the request is under way."""
        self._left.pop(key, None)

    def advance(self, now_ms: int) -> int | None:
        """Send the request or take the answer; return milliseconds until the next retry, if any."""
        if self.is_done:
            return None
        if self._pending is None:
            node_id = self._lookup.node_id
            left = self._retry.left_ms(now_ms)
            if node_id is None:
                self._lookup.need()
                return None
            if left:
                return left
            request, version = self._request()
            self._pending = self._parts.send(node_id, request, version=version)
        if not self._pending.done():
            return None
        pending, self._pending = self._pending, None
        error = pending.error()
        refusal = self._take(pending.result()) if error is None else as_kafka_error(error)
        if refusal is None:
            return None
        return self._refused(refusal, now_ms)

    def fail(self, error: KafkaError) -> None:
        self.error = error
        self._answered += self._left
        self._left.clear()

    def _request(self) -> tuple[OffsetFetchRequest, int]:
        asker = self._asker()
        newest = declaration(OffsetFetchRequest).last_version
        version = min(newest, self._lookup.newest(ApiKey.OFFSET_FETCH))
        topics = self._topics()
        if version < _GROUPS_SINCE:
            old = [
                OffsetFetchRequestTopic(name=each.name, partition_indexes=each.partition_indexes)
                for each in topics
            ]
            return OffsetFetchRequest(group_id=self._group_id, topics=old), version
        if any(topic.topic_id == ZERO_UUID for topic in topics):
            version = min(version, _TOPIC_IDS_SINCE - 1)
        is_member = asker.generation_id >= 0
        group = OffsetFetchRequestGroup(
            group_id=self._group_id,
            member_id=asker.member_id if is_member else None,
            member_epoch=asker.generation_id,
            topics=topics,
        )
        # Offsets in an open transaction may still be aborted: wait for its end (KIP-447).
        return OffsetFetchRequest(groups=[group], require_stable=True), version

    def _topics(self) -> Topics:
        topics: dict[str, OffsetFetchRequestTopics] = {}
        known = self._parts.metadata.topics
        for name, number in self._left:
            if name not in topics:
                topic_id = known[name].topic_id if name in known else ZERO_UUID
                topics[name] = OffsetFetchRequestTopics(name=name, topic_id=topic_id)
                self._asked_names[topic_id] = name
            topics[name].partition_indexes.append(number)
        return list(topics.values())

    def _take(self, response: OffsetFetchResponse) -> KafkaError | None:
        """Store the offsets of an answer; return the error of the partitions that are left."""
        answer = response.groups[0] if response.groups else response
        if answer.error_code:
            return error_for(answer.error_code, f"offsets of group {self._group_id!r}")
        refusals: list[KafkaError] = []
        answered = dict(self._found_in(answer.topics, refusals))
        if not refusals:
            # Old brokers leave partitions without a committed offset out.
            answered = {key: answered.get(key) for key in self._left}
        for key, found in answered.items():
            del self._left[key]
            self.found[key] = found
            self._answered.append(key)
        return min(refusals, key=lambda each: each.retriable, default=None)

    def _found_in(
        self, topics: AnsweredTopics, refusals: list[KafkaError]
    ) -> Iterator[tuple[TopicPartition, OffsetAndMetadata | None]]:
        """Yield the partitions' committed offsets; add the errors of other ones to `refusals`."""
        for topic in topics:
            name = topic.name or self._asked_names.get(getattr(topic, "topic_id", ZERO_UUID), "")
            for each in topic.partitions:
                key = TopicPartition(name, each.partition_index)
                offset = each.committed_offset
                if key not in self._left:
                    continue
                if each.error_code:
                    refusals.append(error_for(each.error_code, f"committed offset of {key}"))
                elif offset < 0:
                    yield key, None
                else:
                    text = each.metadata or ""
                    yield key, OffsetAndMetadata(offset, text, each.committed_leader_epoch)

    def _refused(self, error: KafkaError, now_ms: int) -> int | None:
        if error.code in LOST_COORDINATOR:
            self._lookup.lost()
        if not error.retriable and error.code not in _MEMBER_NEWS:
            self.fail(error)
            return None
        self.last_refusal = error
        self._parts.metadata.request_update()
        self._retry.failed(now_ms)
        return self._retry.left_ms(now_ms)
