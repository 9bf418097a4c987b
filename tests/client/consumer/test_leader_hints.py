"""The answer of a wrong node names the leader; the consumer goes there at once (KIP-951)."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import Consumer, TopicPartition
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from embedlog.transport import InProcessTransport
from tests.client.scripted_broker import VERSIONS, Context, ScriptedBroker
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.records import build_batch
from wire.schemas import offset_for_leader_epoch
from wire.schemas.fetch import LeaderIdAndEpoch, NodeEndpoint
from wire.schemas.metadata import MetadataRequest

HERE = TopicPartition("one", 0)
OLD, NEW = 1, 2


class Moved(ScriptedBroker):
    """Node 2 has taken over from node 1. Only one Metadata request is answered, with node 1."""

    def __init__(self) -> None:
        super().__init__({"one": 1}, sim_runtime(seed=5))
        self.code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        self.told = LeaderIdAndEpoch(leader_id=NEW, leader_epoch=1)
        self.endpoints = [NodeEndpoint(node_id=NEW, host="localhost", port=9002)]
        self.leads = OLD
        self.asked = 0
        self.sent: list[tuple[int, str]] = []
        self.ends = 1
        """The end of epoch 0 according to the new leader."""

    def transport(self) -> InProcessTransport:
        return NodeTransport(self)

    def _MetadataRequest(self, request: Any) -> Any:
        if self.leads == OLD:
            return super()._MetadataRequest(request)
        silence: Pending[Any] = Pending()
        return silence

    def _OffsetForLeaderEpochRequest(self, request: Any) -> Any:
        end = offset_for_leader_epoch.EpochEndOffset(
            partition=0, leader_epoch=0, end_offset=self.ends
        )
        topic = offset_for_leader_epoch.OffsetForLeaderTopicResult(topic="one", partitions=[end])
        return offset_for_leader_epoch.OffsetForLeaderEpochResponse(topics=[topic])

    def _FetchRequest(self, request: Any) -> Any:
        response = super()._FetchRequest(request)
        if self.asked != self.leads and not isinstance(response, Pending):
            response.node_endpoints = self.endpoints
        return response

    def fetch_partition(self, name: str, asked: Any) -> Any:
        answer = super().fetch_partition(name, asked)
        if self.asked != self.leads:
            answer.error_code = self.code
            answer.current_leader = self.told
            answer.records = b""
        return answer


class NodeTransport(InProcessTransport):
    """Tells the broker the node of each request."""

    def __init__(self, broker: Moved) -> None:
        served = {**VERSIONS, ApiKey.OFFSET_FOR_LEADER_EPOCH: (0, 4)}
        super().__init__(broker.handle, Context, served, broker.runtime)
        self._broker = broker

    def send(self, node_id: int, request: Any, **options: Any) -> Any:
        self._broker.asked = node_id
        self._broker.sent.append((node_id, type(request).__name__))
        return super().send(node_id, request, **options)


@pytest.fixture
def broker() -> Moved:
    broker = Moved()
    broker.append("one", 0, build_batch([b"first"], timestamps=1000))
    return broker


def read(broker: Moved, consumer: Consumer) -> list[bytes | None]:
    return [record.value for record in consumer.poll(1_000)]


def begun(broker: Moved) -> Consumer:
    """A consumer that has read the first record. Node 2 leads from here on and has a second one."""
    consumer = Consumer(broker.transport(), auto_offset_reset="earliest")
    consumer.assign([HERE])
    assert read(broker, consumer) == [b"first"]
    broker.leads = NEW
    broker.append("one", 0, build_batch([b"second"], timestamps=1000))
    broker.sent.clear()
    return consumer


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH])
def test_the_leader_that_is_named_is_read_from_once_it_is_proven(broker: Moved, code: int) -> None:
    broker.code = code
    consumer = begun(broker)
    started_ms = broker.runtime.clock.monotonic_ms()
    assert read(broker, consumer) == [b"second"]
    assert broker.runtime.clock.monotonic_ms() == started_ms, "it did not wait"
    without = [(node, kind) for node, kind in broker.sent if kind != MetadataRequest.__name__]
    assert without[:3] == [
        (OLD, "FetchRequest"),
        (NEW, "OffsetForLeaderEpochRequest"),
        (NEW, "FetchRequest"),
    ]


def test_the_log_of_the_leader_that_is_named_may_be_another(broker: Moved) -> None:
    consumer = begun(broker)
    broker.ends = 0
    del broker.logs[HERE]
    broker.append("one", 0, build_batch([b"other first"], timestamps=1000))
    assert read(broker, consumer) == [b"other first"]
    assert consumer.position(HERE) == 1


@pytest.mark.parametrize("what", ["no leader", "no address", "no news"])
def test_who_is_told_nothing_of_use_asks_for_metadata(broker: Moved, what: str) -> None:
    if what == "no address":
        broker.endpoints = []
    else:
        broker.told = LeaderIdAndEpoch(leader_id=NEW, leader_epoch=0)
        if what == "no leader":
            broker.told = LeaderIdAndEpoch()
    consumer = begun(broker)
    assert read(broker, consumer) == []
    assert {node for node, kind in broker.sent if kind == "FetchRequest"} == {OLD}
    assert MetadataRequest.__name__ in [kind for _, kind in broker.sent]
