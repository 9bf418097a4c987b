"""OffsetForLeaderEpoch: where the epochs of what was read end in the leaders' logs (KIP-320)."""

from __future__ import annotations

from embedlog.client.errors import LogTruncation
from embedlog.client.metadata import STALE_METADATA, as_kafka_error
from embedlog.errors import error_for
from wire.api_keys import ApiKey
from wire.schemas.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from embedlog.client.consumer.consumer_parts import ConsumerParts
    from embedlog.client.consumer.subscription_state import PartitionState
    from embedlog.common import TopicPartition
    from embedlog.errors import KafkaError
    from embedlog.pending import Pending

_FOR_CONSUMERS_SINCE = 3
_CONSUMER = -1


class EndOffset:
    """Where an epoch ends: -1 when the log knows nothing of it. Its records are below `offset`."""

    __slots__ = ("leader_epoch", "offset")

    def __init__(self, offset: int, leader_epoch: int) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch


class EpochLookup:
    """One question. A partition whose leader does not serve it is in none of the results."""

    def __init__(self, parts: ConsumerParts, epochs: Mapping[TopicPartition, int]) -> None:
        """`epochs` are the leader epochs of the last records read."""
        self._parts = parts
        self._backoff_ms: int = parts.settings["retry.backoff.ms"]
        self._epochs = dict(epochs)
        self._left = set(epochs)
        self._pending: list[tuple[list[TopicPartition], Pending[Any]]] = []
        self._not_before_ms = 0
        self.partitions = list(epochs)
        self.end_offsets: dict[TopicPartition, EndOffset] = {}
        self.failed: dict[TopicPartition, KafkaError] = {}

    @property
    def is_done(self) -> bool:
        """Has every partition its answer?"""
        return not self._left and not self._pending

    def advance(self, now_ms: int) -> int | None:
        """Ask, or take answers; milliseconds until time makes more possible."""
        self._take_arrived(now_ms)
        if self._left and now_ms >= self._not_before_ms:
            self._ask()
            self._take_arrived(now_ms)
        return max(self._not_before_ms - now_ms, 0) or None if self._left else None

    def _ask(self) -> None:
        by_node: dict[int, dict[str, OffsetForLeaderTopic]] = {}
        asked: dict[int, list[TopicPartition]] = {}
        transport = self._parts.transport
        for key in sorted(self._left):
            leader = self._parts.metadata.leader(*key)
            if leader is None:
                self._parts.metadata.request_update()
                continue
            self._left.discard(key)
            served = transport.versions(leader.leader)
            newest = (served or {}).get(ApiKey.OFFSET_FOR_LEADER_EPOCH, (0, -1))[1]
            if served is not None and newest < _FOR_CONSUMERS_SINCE:
                continue
            topics = by_node.setdefault(leader.leader, {})
            if key.topic not in topics:
                topics[key.topic] = OffsetForLeaderTopic(topic=key.topic)
            topics[key.topic].partitions.append(
                OffsetForLeaderPartition(
                    partition=key.partition,
                    current_leader_epoch=leader.leader_epoch,
                    leader_epoch=self._epochs[key],
                )
            )
            asked.setdefault(leader.leader, []).append(key)
        for node_id, topics in by_node.items():
            request = OffsetForLeaderEpochRequest(
                replica_id=_CONSUMER, topics=list(topics.values())
            )
            self._pending.append((asked[node_id], self._parts.send(node_id, request)))

    def _take_arrived(self, now_ms: int) -> None:
        pending, self._pending = self._pending, []
        for asked, answer in pending:
            if answer.done():
                self._take(asked, answer, now_ms)
            else:
                self._pending.append((asked, answer))

    def _take(self, asked: list[TopicPartition], pending: Pending[Any], now_ms: int) -> None:
        error = pending.error()
        if error is not None:
            for key in asked:
                self._refused(key, as_kafka_error(error), now_ms)
            return
        answers = {
            (topic.topic, each.partition): each
            for topic in pending.result().topics
            for each in topic.partitions
        }
        for key in asked:
            answer = answers.get((key.topic, key.partition))
            if answer is None:
                self._refused(key, error_for(-1, "the response leaves it out"), now_ms)
            elif answer.error_code:
                self._refused(key, error_for(answer.error_code, f"epochs of {key}"), now_ms)
            else:
                end = EndOffset(answer.end_offset, answer.leader_epoch)
                self.end_offsets[key] = end if answer.leader_epoch >= 0 else EndOffset(-1, -1)

    def _refused(self, key: TopicPartition, error: KafkaError, now_ms: int) -> None:
        if not error.retriable and error.code not in STALE_METADATA:
            self.failed[key] = error
            return
        self._left.add(key)
        self._not_before_ms = now_ms + self._backoff_ms
        self._parts.metadata.request_update()


def raise_truncated(cut: Mapping[TopicPartition, tuple[PartitionState, int | None]]) -> None:
    """Raise LogTruncation for these positions; each with the offset where the log differs."""
    raise LogTruncation(
        {key: state.offset for key, (state, _) in cut.items()},
        {key: divergent for key, (_, divergent) in cut.items()},
    )
