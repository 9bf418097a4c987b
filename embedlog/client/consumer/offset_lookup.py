"""`OffsetLookup`: finds offsets by timestamp with ListOffsets, for consumers and admin clients."""

from __future__ import annotations

from embedlog.client.consumer.leader_lookup import LeaderLookup
from embedlog.client.lacks import is_missing, lack_of
from embedlog.common import item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Final

    from embedlog.client.metadata import Metadata
    from embedlog.client.settings import Settings
    from embedlog.common import TopicPartition
    from embedlog.runtime.pending import Pending
    from embedlog.transport import Transport
    from wire.schemas.list_offsets import (
        ListOffsetsPartitionResponse,
        ListOffsetsResponse,
        ListOffsetsTopic,
    )

    Answers = dict[tuple[str, int], ListOffsetsPartitionResponse]


class OffsetAndTimestamp(tuple[int, int, int]):
    """An offset found by timestamp: (offset, timestamp, leader epoch); -1 stands for unknown."""

    __slots__ = ()

    offset: Final[int] = item(0)
    timestamp: Final[int] = item(1)
    leader_epoch: Final[int] = item(2)

    def __repr__(self) -> str:
        return f"OffsetAndTimestamp({self[0]}, timestamp {self[1]}, epoch {self[2]})"


class OffsetLookup(LeaderLookup):
    """One look-up for several partitions.

    Each answer adds the partition to `found`, with None if no record matches the timestamp.
    """

    def __init__(
        self,
        transport: Transport,
        metadata: Metadata,
        settings: Settings,
        timestamps: Mapping[TopicPartition, int],
        arrived: Callable[[Pending[Any]], None],
        *,
        may_fail: bool = False,
    ) -> None:
        """`arrived` is called, by any thread, when `advance` has a new answer to take.

        `may_fail`: in process, a partition that the metadata lacks fails at once.
        """
        super().__init__(metadata, settings["retry.backoff.ms"], timestamps)
        self._transport = transport
        self._settings = settings
        self._arrived = arrived
        self._missing_since = metadata.answer_count if may_fail and transport.is_authority else None
        """From this answer of the metadata on, a partition that it lacks fails; None for never."""
        self.found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        if not metadata.wanted.follows_all:
            for topic, _ in self._left:
                metadata.want(topic)
        if may_fail and any(metadata.leader(*key) is None for key in self._left):
            metadata.request_update()

    def _ask(self) -> None:
        from wire.schemas.list_offsets import (
            ListOffsetsPartition,
            ListOffsetsRequest,
            ListOffsetsTopic,
        )

        requests: dict[int, dict[str, ListOffsetsTopic]] = {}
        asked: dict[int, list[TopicPartition]] = {}
        for key, timestamp in list(self._left.items()):
            topic, partition = key
            leader = self._metadata.leader(topic, partition)
            if leader is None:
                error = self._metadata.topic_error(topic)
                since = self._missing_since
                if since is not None and is_missing(self._metadata, topic, partition, since=since):
                    error = lack_of(self._metadata, topic, partition)
                if error is not None:
                    self._fail(key, error)
                else:
                    self._metadata.request_update()
                continue
            topics = requests.setdefault(leader.leader, {})
            if topic not in topics:
                topics[topic] = ListOffsetsTopic(name=topic)
            topics[topic].partitions.append(
                ListOffsetsPartition(
                    partition_index=partition,
                    current_leader_epoch=leader.leader_epoch,
                    timestamp=timestamp,
                )
            )
            asked.setdefault(leader.leader, []).append(key)
            self._asking(key, leader)
        for node_id, by_name in requests.items():
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=int(self._settings.get("isolation.level") == "read_committed"),
                topics=list(by_name.values()),
                timeout_ms=self._settings["request.timeout.ms"],
            )
            pending = self._transport.send(node_id, request)
            self._pending.append((asked[node_id], pending))
            pending.add_callback(self._arrived)

    def _answers_of(self, response: ListOffsetsResponse) -> Answers:
        return {
            (topic.name, each.partition_index): each
            for topic in response.topics
            for each in topic.partitions
        }

    def _found(self, key: TopicPartition, answer: ListOffsetsPartitionResponse) -> None:
        found = OffsetAndTimestamp((answer.offset, answer.timestamp, answer.leader_epoch))
        self.found[key] = found if answer.offset >= 0 else None
