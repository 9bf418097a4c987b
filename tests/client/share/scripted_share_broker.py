"""A broker with share groups in two hundred lines, whose answers a test can script.

It keeps the state of each offset, and the sessions of each node. It never waits: a fetch without
records is answered at once. `faults` of the base see each request first; `node_id` is then the node
that the client has sent it to.
"""

from __future__ import annotations

from typing import Any

from embedlog.runtime import Runtime
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from embedlog.transport import InProcessTransport
from tests.client.scripted_broker import VERSIONS, Context, ScriptedBroker
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.records import RecordBatch, build_batch
from wire.schemas import find_coordinator, share_acknowledge, share_fetch, share_group_heartbeat

SHARE_VERSIONS = {
    **VERSIONS,
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.SHARE_GROUP_HEARTBEAT: (1, 1),
    ApiKey.SHARE_FETCH: (1, 2),
    ApiKey.SHARE_ACKNOWLEDGE: (1, 2),
}
LOCK_MS = 30_000
INTERVAL_MS = 5_000
ACCEPT, RELEASE, RENEW = 1, 2, 4


class NodeTransport(InProcessTransport):
    """Tells the broker which node a request is for."""

    def __init__(self, broker: ScriptedShareBroker) -> None:
        super().__init__(broker.handle, Context, SHARE_VERSIONS, broker.runtime)
        self._broker = broker

    def send(self, node_id: int, request: Any, **more: Any) -> Pending[Any]:
        self._broker.node_id = node_id
        return super().send(node_id, request, **more)


class ScriptedShareBroker(ScriptedBroker):
    def __init__(self, topics: dict[str, int], runtime: Runtime | None = None) -> None:
        super().__init__(topics, runtime or sim_runtime(seed=7))
        self.node_id = -1
        self.sessions: dict[int, list[Any]] = {}
        """By node, [epoch of the next request, places of the session]."""
        self.counts: dict[tuple[str, int], dict[int, int]] = {}
        """By partition, the deliveries of each offset that is not terminal."""
        self.locked: dict[tuple[str, int], set[int]] = {}
        self.done: dict[tuple[str, int], dict[int, int]] = {}
        """By partition, the last acknowledgement type of each acknowledged offset."""
        self.member_epoch = 0
        self.assigned: list[tuple[str, int]] | None = None
        """The partitions that the member gets; None for all of its topics."""

    def transport(self) -> NodeTransport:
        return NodeTransport(self)

    def write(self, topic: str, *values: bytes, partition: int = 0, **more: Any) -> None:
        self.append(topic, partition, build_batch(list(values), timestamps=1, **more))

    def write_marker(self, topic: str) -> None:
        """Append the marker of a transaction, which has an offset and no record."""
        more = {"control": True, "transactional": True, "producer_id": 3, "producer_epoch": 0}
        self.write(topic, b"\0\0\0\1", base_sequence=0, **more)

    # The group

    def _FindCoordinatorRequest(self, request: Any) -> Any:
        found = [
            find_coordinator.Coordinator(key=key, node_id=1, host="localhost", port=9092)
            for key in request.coordinator_keys
        ]
        return find_coordinator.FindCoordinatorResponse(coordinators=found)

    def _ShareGroupHeartbeatRequest(self, request: Any) -> Any:
        if request.member_epoch < 0:
            return share_group_heartbeat.ShareGroupHeartbeatResponse(member_epoch=-1)
        assignment = None
        if request.subscribed_topic_names is not None:
            self.member_epoch += 1
            assignment = self.assignment(request.subscribed_topic_names)
        return share_group_heartbeat.ShareGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=self.member_epoch,
            heartbeat_interval_ms=INTERVAL_MS,
            assignment=assignment,
        )

    def assignment(self, names: list[str]) -> Any:
        everything = [(name, number) for name in names for number in range(self.topics[name])]
        chosen = everything if self.assigned is None else self.assigned
        topics: dict[bytes, list[int]] = {}
        for name, number in chosen:
            topics.setdefault(self.ids[name], []).append(number)
        return share_group_heartbeat.Assignment(
            topic_partitions=[
                share_group_heartbeat.TopicPartitions(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in topics.items()
            ]
        )

    # Sessions

    def session_error(self, epoch: int) -> int:
        """Return the error of a request with this epoch; open, use or close the session."""
        session = self.sessions.get(self.node_id)
        if epoch == 0:
            self.sessions[self.node_id] = [1, set()]
            return 0
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == -1:
            return 0
        if epoch != session[0]:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session[0] += 1
        return 0

    def name_at(self, topic_id: bytes) -> str:
        return {each: name for name, each in self.ids.items()}[topic_id]

    # Records

    def _ShareFetchRequest(self, request: Any) -> Any:
        error = self.session_error(request.share_session_epoch)
        if error:
            return share_fetch.ShareFetchResponse(error_code=error)
        places = self.sessions[self.node_id][1]
        acknowledged: dict[tuple[str, int], int] = {}
        for topic in request.topics:
            name = self.name_at(topic.topic_id)
            for asked in topic.partitions:
                key = (name, asked.partition_index)
                places.add(key)
                if asked.acknowledgement_batches:
                    assert request.share_session_epoch, "no acknowledgement opens a session"
                    acknowledged[key] = self.acknowledge(key, asked.acknowledgement_batches)
        for topic in request.forgotten_topics_data:
            for number in topic.partitions:
                places.discard((self.name_at(topic.topic_id), number))
        answers = {key: self.fetched(key) for key in sorted(places)}
        topics: dict[bytes, list[Any]] = {}
        for key in sorted(answers.keys() | acknowledged.keys()):
            data = answers.get(key) or share_fetch.PartitionData(
                partition_index=key[1], records=memoryview(b"")
            )
            data.acknowledge_error_code = acknowledged.get(key, 0)
            if data.acquired_records or data.error_code or key in acknowledged:
                topics.setdefault(self.ids[key[0]], []).append(data)
        return share_fetch.ShareFetchResponse(
            acquisition_lock_timeout_ms=LOCK_MS,
            responses=[
                share_fetch.ShareFetchableTopicResponse(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in topics.items()
            ],
        )

    def fetched(self, key: tuple[str, int]) -> Any:
        """Acquire all that is available."""
        done, locked = self.done.setdefault(key, {}), self.locked.setdefault(key, set())
        counts = self.counts.setdefault(key, {})
        ranges: list[Any] = []
        chosen = b""
        for data in self.logs.get(key, []):
            batch = RecordBatch(data)
            free = [
                offset
                for offset in range(batch.base_offset, batch.next_offset)
                if offset not in locked and done.get(offset, RELEASE) == RELEASE
            ]
            chosen += data if free else b""
            for offset in free:
                locked.add(offset)
                counts[offset] = counts.get(offset, 0) + 1
                last = ranges[-1] if ranges else None
                before = (last.last_offset + 1, last.delivery_count) if last else None
                if last and before == (offset, counts[offset]):
                    last.last_offset = offset
                    continue
                ranges.append(
                    share_fetch.AcquiredRecords(
                        first_offset=offset, last_offset=offset, delivery_count=counts[offset]
                    )
                )
        return share_fetch.PartitionData(
            partition_index=key[1], records=memoryview(chosen), acquired_records=ranges
        )

    # Acknowledgements

    def _ShareAcknowledgeRequest(self, request: Any) -> Any:
        error = self.session_error(request.share_session_epoch)
        if error:
            return share_acknowledge.ShareAcknowledgeResponse(error_code=error)
        answers = []
        for topic in request.topics:
            name = self.name_at(topic.topic_id)
            partitions = [
                share_acknowledge.PartitionData(
                    partition_index=each.partition_index,
                    error_code=self.acknowledge(
                        (name, each.partition_index), each.acknowledgement_batches
                    ),
                )
                for each in topic.partitions
            ]
            answers.append(
                share_acknowledge.ShareAcknowledgeTopicResponse(
                    topic_id=topic.topic_id, partitions=partitions
                )
            )
        if request.share_session_epoch == -1:
            for key in self.sessions.pop(self.node_id)[1]:
                self.locked[key] = set()
        return share_acknowledge.ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=LOCK_MS, responses=answers
        )

    def acknowledge(self, key: tuple[str, int], batches: list[Any]) -> int:
        """Take the acknowledgements of a partition, all or none."""
        types: dict[int, int] = {}
        for batch in batches:
            size = batch.last_offset - batch.first_offset + 1
            kinds = batch.acknowledge_types
            kinds = kinds * size if len(kinds) == 1 else kinds
            assert len(kinds) == size, batch
            for offset, kind in enumerate(kinds, batch.first_offset):
                assert offset not in types, "an offset is in the request twice"
                types[offset] = kind
        locked = self.locked.setdefault(key, set())
        if not types.keys() <= locked:
            return ErrorCode.INVALID_RECORD_STATE
        for offset, kind in types.items():
            if kind != RENEW:
                locked.discard(offset)
                self.done.setdefault(key, {})[offset] = kind
        return 0
