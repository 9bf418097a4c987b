"""A simulated broker whose share coordinator is in memory, for the scenarios of its leaders."""

from __future__ import annotations

import struct
from typing import Any

import wire
from embedlog.cluster.cluster import Cluster
from tests.golden.simulated import LoopbackLink, Simulated
from tests.golden.three_brokers.clusters import Kind
from tests.golden.three_brokers.simulated import SimulatedCluster
from tests.sharing.memory_broker import give_state
from tests.sharing.memory_state import MemoryState
from tests.support.kafka_cluster import BROKERS
from wire.headers import decode_request_header
from wire.registry import request_class
from wire.schemas import delete_share_group_state as delete
from wire.schemas import initialize_share_group_state as initialize
from wire.schemas import read_share_group_state as read
from wire.schemas import read_share_group_state_summary as summary


class SimulatedLeader(Simulated):
    """The requests for stored states are answered here; the broker gets all others."""

    def __init__(self, settings: dict[str, str]) -> None:
        super().__init__(settings)
        self.state = give_state(self._cluster.broker().core)

    def connect(self) -> LoopbackLink:
        return LeaderLink(self._cluster, self.state)


class SimulatedLeaders(SimulatedCluster):
    """The same with three brokers and one share coordinator."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(kind)
        self.state = MemoryState()
        for node_id in BROKERS:
            give_state(self._cluster.broker(node_id).core, self.state)

    def link(self, node_id: int) -> LoopbackLink:
        return LeaderLink(self._cluster, self.state, node_id)

    def start(self, node_id: int) -> None:
        super().start(node_id)
        give_state(self._cluster.broker(node_id).core, self.state)


class LeaderLink(LoopbackLink):
    """A connection of such a broker."""

    def __init__(self, cluster: Cluster, state: MemoryState, node_id: int | None = None) -> None:
        super().__init__(cluster, node_id)
        self._state = state

    def send(self, payload: bytes) -> None:
        api_key, version, correlation_id, _, position = decode_request_header(memoryview(payload))
        answers = {83: self._initialize, 84: self._read, 86: self._delete, 87: self._summary}
        answer = answers.get(api_key)
        if answer is None:
            super().send(payload)
            return
        request = wire.decode(request_class(api_key), version, payload, position)
        frame = struct.pack(">i", correlation_id) + b"\0" + wire.encode(answer(request), version)
        self._events.append(_Answer(frame))

    def _initialize(self, request: Any) -> Any:
        ((topic, row),) = _rows(request)
        place = (topic.topic_id, row.partition)
        self._state.initialize(
            request.group_id, place, start=row.start_offset, epoch=row.state_epoch
        )
        result = initialize.PartitionResult(partition=row.partition)
        results = [initialize.InitializeStateResult(topic_id=place[0], partitions=[result])]
        return initialize.InitializeShareGroupStateResponse(results=results)

    def _delete(self, request: Any) -> Any:
        ((topic, row),) = _rows(request)
        self._state.states.pop((request.group_id, (topic.topic_id, row.partition)), None)
        result = delete.PartitionResult(partition=row.partition)
        results = [delete.DeleteStateResult(topic_id=topic.topic_id, partitions=[result])]
        return delete.DeleteShareGroupStateResponse(results=results)

    def _read(self, request: Any) -> Any:
        ((topic, row),) = _rows(request)
        found = self._state.states[request.group_id, (topic.topic_id, row.partition)]
        result = read.PartitionResult(
            partition=row.partition,
            state_epoch=found.state_epoch,
            start_offset=found.start_offset,
            state_batches=[
                read.StateBatch(
                    first_offset=batch.first_offset,
                    last_offset=batch.last_offset,
                    delivery_state=batch.delivery_state,
                    delivery_count=batch.delivery_count,
                )
                for batch in found.batches
            ],
        )
        results = [read.ReadStateResult(topic_id=topic.topic_id, partitions=[result])]
        return read.ReadShareGroupStateResponse(results=results)

    def _summary(self, request: Any) -> Any:
        ((topic, row),) = _rows(request)
        found = self._state.states[request.group_id, (topic.topic_id, row.partition)]
        result = summary.PartitionResult(
            partition=row.partition,
            state_epoch=found.state_epoch,
            leader_epoch=found.leader_epoch,
            start_offset=found.start_offset,
            delivery_complete_count=found.complete_count,
        )
        results = [summary.ReadStateSummaryResult(topic_id=topic.topic_id, partitions=[result])]
        return summary.ReadShareGroupStateSummaryResponse(results=results)


class _Answer:
    reason = ""

    def __init__(self, frame: bytes) -> None:
        self.frame = frame


def _rows(request: Any) -> list[tuple[Any, Any]]:
    return [(topic, row) for topic in request.topics for row in topic.partitions]
