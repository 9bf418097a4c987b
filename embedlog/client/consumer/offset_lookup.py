"""ListOffsets: from timestamps to offsets, whoever leads the partitions.

A look-up is a small state machine: `advance` asks the leaders, takes answers, refreshes metadata
and asks again where an error says so. Consumer and admin client drive it.
"""

from __future__ import annotations

from _operator import itemgetter

from embedlog.client.metadata import STALE_METADATA, as_kafka_error
from embedlog.errors import error_class, error_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from embedlog.client.metadata import Metadata
    from embedlog.client.settings import Settings
    from embedlog.common import TopicPartition
    from embedlog.errors import KafkaError
    from embedlog.pending import Pending
    from embedlog.transport import Transport
    from wire.schemas.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopic

    _OffsetBase = tuple[int, int, int]
else:
    _OffsetBase = tuple


class OffsetAndTimestamp(_OffsetBase):
    """An offset found by a timestamp: (offset, timestamp, leader epoch); -1 where unknown."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def offset(self) -> int: ...

        @property
        def timestamp(self) -> int: ...

        @property
        def leader_epoch(self) -> int: ...

    else:
        offset = property(itemgetter(0))
        timestamp = property(itemgetter(1))
        leader_epoch = property(itemgetter(2))

    def __repr__(self) -> str:
        return f"OffsetAndTimestamp({self[0]}, timestamp {self[1]}, epoch {self[2]})"


class OffsetLookup:
    """One look-up. `found` grows; a partition without such a record gets None."""

    def __init__(
        self,
        transport: Transport,
        metadata: Metadata,
        settings: Settings,
        timestamps: Mapping[TopicPartition, int],
        arrived: Callable[[Pending[Any]], None],
    ) -> None:
        """`arrived` is called, in whichever thread, when `advance` has something to take."""
        self._transport = transport
        self._metadata = metadata
        self._isolation = int(settings.get("isolation.level") == "read_committed")
        self._backoff_ms: int = settings["retry.backoff.ms"]
        self._request_timeout_ms: int = settings["request.timeout.ms"]
        self._arrived = arrived
        self._left = dict(timestamps)
        self._asked: dict[TopicPartition, int] = {}
        self._pending: list[tuple[list[TopicPartition], Pending[Any]]] = []
        self._not_before_ms = 0
        self.found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        self.failed: dict[TopicPartition, KafkaError] = {}
        if not metadata.follows_all:
            for topic, _ in self._left:
                metadata.want(topic)

    @property
    def is_done(self) -> bool:
        """Has every partition its offset or its error?"""
        return not self._left and not self._asked

    def advance(self, now_ms: int) -> int | None:
        """Do what can be done without waiting; milliseconds until time makes more possible."""
        self._take_arrived(now_ms)
        if self._left and now_ms >= self._not_before_ms:
            self._ask()
            self._take_arrived(now_ms)  # in process the answers are there at once
        if not self._left:
            return None
        return self._not_before_ms - now_ms if now_ms < self._not_before_ms else None

    def _take_arrived(self, now_ms: int) -> None:
        still = []
        for asked, pending in self._pending:
            if pending.done():
                self._take(asked, pending, now_ms)
            else:
                still.append((asked, pending))
        self._pending = still

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
                if error is not None:
                    del self._left[key]
                    self.failed[key] = error
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
            self._asked[key] = self._left.pop(key)
        for node_id, by_name in requests.items():
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=self._isolation,
                topics=list(by_name.values()),
                timeout_ms=self._request_timeout_ms,
            )
            pending = self._transport.send(node_id, request)
            self._pending.append((asked[node_id], pending))
            pending.add_callback(self._arrived)

    def _take(self, asked: list[TopicPartition], pending: Pending[Any], now_ms: int) -> None:
        error = pending.error()
        if error is not None:
            for key in asked:
                self._refused(key, as_kafka_error(error), now_ms)
            return
        answers = {
            (topic.name, partition.partition_index): partition
            for topic in pending.result().topics
            for partition in topic.partitions
        }
        for key in asked:
            answer = answers.get((key.topic, key.partition))
            if answer is None:
                self._refused(key, error_for(-1, "the response leaves it out"), now_ms)
            elif answer.error_code:
                self._refused(key, error_class(answer.error_code)(str(key)), now_ms)
            else:
                del self._asked[key]
                self.found[key] = _offset_of(answer)

    def _refused(self, key: TopicPartition, error: KafkaError, now_ms: int) -> None:
        timestamp = self._asked.pop(key)
        if not error.retriable and error.code not in STALE_METADATA:
            self.failed[key] = error
            return
        self._left[key] = timestamp
        self._not_before_ms = now_ms + self._backoff_ms
        self._metadata.request_update()


def _offset_of(answer: ListOffsetsPartitionResponse) -> OffsetAndTimestamp | None:
    if answer.offset < 0:
        return None
    return OffsetAndTimestamp((answer.offset, answer.timestamp, answer.leader_epoch))
