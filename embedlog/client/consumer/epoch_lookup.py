"""`EpochLookup`: finds the end offsets of leader epochs with OffsetForLeaderEpoch (KIP-320)."""

from __future__ import annotations

from embedlog.client.consumer.leader_lookup import LeaderLookup
from embedlog.common import Value
from embedlog.errors import LogTruncation
from wire.api_keys import ApiKey
from wire.schemas.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.client.consumer.subscription_state import PartitionState
    from embedlog.common import TopicPartition
    from wire.schemas.offset_for_leader_epoch import EpochEndOffset, OffsetForLeaderEpochResponse

    Answers = dict[tuple[str, int], EpochEndOffset]

_FOR_CONSUMERS_SINCE = 3
_CONSUMER = -1


class EndOffset(Value):
    """The offset after the last record of a leader epoch; -1 if the log does not know the epoch."""

    offset: int
    leader_epoch: int


class EpochLookup(LeaderLookup):
    """One look-up for several partitions.

    If a leader's broker is too old to answer, its partitions are neither in `end_offsets` nor in
    `failed`.
    """

    def __init__(self, parts: ConsumerParts, epochs: Mapping[TopicPartition, int]) -> None:
        """`epochs` has, for each partition, the leader epoch of the last record that was read."""
        super().__init__(parts.metadata, parts.settings["retry.backoff.ms"], epochs)
        self._parts = parts
        self.end_offsets: dict[TopicPartition, EndOffset] = {}

    def _ask(self) -> None:
        by_node: dict[int, dict[str, OffsetForLeaderTopic]] = {}
        asked: dict[int, list[TopicPartition]] = {}
        transport = self._parts.transport
        for key in sorted(self._left):
            leader = self._metadata.leader(*key)
            if leader is None:
                self._metadata.request_update()
                continue
            epoch = self._left[key]
            self._asking(key, leader)
            served = transport.versions(leader.leader)
            newest = (served or {}).get(ApiKey.OFFSET_FOR_LEADER_EPOCH, (0, -1))[1]
            if served is not None and newest < _FOR_CONSUMERS_SINCE:
                del self._asked[key]
                self._answered.append(key)
                continue
            topics = by_node.setdefault(leader.leader, {})
            if key.topic not in topics:
                topics[key.topic] = OffsetForLeaderTopic(topic=key.topic)
            topics[key.topic].partitions.append(
                OffsetForLeaderPartition(
                    partition=key.partition,
                    current_leader_epoch=leader.leader_epoch,
                    leader_epoch=epoch,
                )
            )
            asked.setdefault(leader.leader, []).append(key)
        for node_id, topics in by_node.items():
            request = OffsetForLeaderEpochRequest(
                replica_id=_CONSUMER, topics=list(topics.values())
            )
            self._pending.append((asked[node_id], self._parts.send(node_id, request)))

    def _answers_of(self, response: OffsetForLeaderEpochResponse) -> Answers:
        return {
            (topic.topic, each.partition): each
            for topic in response.topics
            for each in topic.partitions
        }

    def _found(self, key: TopicPartition, answer: EpochEndOffset) -> None:
        end = EndOffset(answer.end_offset, answer.leader_epoch)
        self.end_offsets[key] = end if answer.leader_epoch >= 0 else EndOffset(-1, -1)


def raise_truncated(cut: Mapping[TopicPartition, tuple[PartitionState, int | None]]) -> None:
    """Raise LogTruncation.

    `cut` has each partition's state, and the offset where the leader's log begins to differ from
    the records that were read, or None if the leader does not know the epoch.
    """
    raise LogTruncation(
        {key: state.offset for key, (state, _) in cut.items()},
        {key: divergent for key, (_, divergent) in cut.items()},
    )
