"""The leader sends a consumer to a nearby follower; when the consumer returns (KIP-392)."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import Consumer, TopicPartition
from embedlog.errors import error_for
from embedlog.runtime.pending import Pending
from embedlog.testing import SimRuntime, sim_runtime
from embedlog.transport import InProcessTransport
from tests.client.scripted_broker import VERSIONS, Context, ScriptedBroker
from wire.error_codes import ErrorCode
from wire.records import build_batch
from wire.schemas.fetch import FetchRequest
from wire.schemas.metadata import MetadataResponseBroker

HERE, OTHER = TopicPartition("one", 0), TopicPartition("two", 0)
LEADER, FOLLOWER, THIRD = 1, 2, 3
MAX_AGE_MS = 10_000
BACKOFF_MS = 100


class Replicas(ScriptedBroker):
    """Three nodes with one log. Node 1 leads and sends consumers to `preferred`."""

    def __init__(self, runtime: SimRuntime) -> None:
        super().__init__({"one": 1, "two": 1}, runtime)
        self.preferred = FOLLOWER
        self.nodes = {LEADER, FOLLOWER, THIRD}
        self.offline: list[int] = []
        self.fetched: list[tuple[int, int]] = []
        """(node id, offset) of each fetch of `HERE`."""
        self.refusals: dict[int, list[int | None]] = {}
        """The errors of the next answers by node; None means that no answer comes."""
        self.asked = 0

    def transport(self) -> InProcessTransport:
        return NodeTransport(self)

    def put(self, topic: str = "one") -> None:
        self.append(topic, 0, build_batch([b"value"], timestamps=1000))

    def _MetadataRequest(self, request: Any) -> Any:
        answer = super()._MetadataRequest(request)
        answer.brokers = [
            MetadataResponseBroker(node_id=each, host="localhost", port=9000 + each)
            for each in sorted(self.nodes)
        ]
        for topic in answer.topics:
            for partition in topic.partitions:
                partition.replica_nodes = [LEADER, FOLLOWER]
                partition.isr_nodes = [LEADER, FOLLOWER]
                partition.offline_replicas = self.offline
        return answer

    def _FetchRequest(self, request: Any) -> Any:
        refusals = self.refusals.get(self.asked)
        if refusals and refusals[0] is None:
            refusals.pop()
            lost: Pending[Any] = Pending()
            lost.fail(error_for(ErrorCode.NETWORK_EXCEPTION, "the node is gone"))
            return lost
        return super()._FetchRequest(request)

    def fetch_partition(self, name: str, asked: Any) -> Any:
        answer = super().fetch_partition(name, asked)
        if name != HERE.topic:
            return answer
        self.fetched.append((self.asked, asked.fetch_offset))
        refusals = self.refusals.get(self.asked)
        if refusals:
            answer.error_code = refusals.pop()
            answer.records = b""
        elif self.asked == LEADER and self.preferred != LEADER:
            answer.preferred_read_replica = self.preferred
            answer.records = b""
        return answer


class NodeTransport(InProcessTransport):
    """Tells the broker the node of each request."""

    def __init__(self, broker: Replicas) -> None:
        super().__init__(broker.handle, Context, VERSIONS, broker.runtime)
        self._broker = broker

    def send(self, node_id: int, request: Any, **options: Any) -> Any:
        self._broker.asked = node_id
        return super().send(node_id, request, **options)


@pytest.fixture
def runtime() -> SimRuntime:
    return sim_runtime(seed=5)


@pytest.fixture
def broker(runtime: SimRuntime) -> Replicas:
    broker = Replicas(runtime)
    broker.put()
    return broker


def reader(broker: Replicas, **settings: Any) -> Consumer:
    consumer = Consumer(
        broker.transport(),
        auto_offset_reset="earliest",
        client_rack="east",
        metadata_max_age_ms=MAX_AGE_MS,
        **settings,
    )
    consumer.assign([HERE])
    return consumer


def read_one(consumer: Consumer, broker: Replicas) -> list[int]:
    """Read the next record; return the nodes that were fetched from."""
    before = len(broker.fetched)
    assert len(consumer.poll(1000)) == 1
    return [node for node, _ in broker.fetched[before:]]


def read_one_with_news(consumer: Consumer, broker: Replicas) -> list[int]:
    """Like `read_one`, but the follower's first answer makes the consumer request metadata."""
    broker.refusals[FOLLOWER] = [ErrorCode.UNKNOWN_LEADER_EPOCH]
    return read_one(consumer, broker)


def test_every_fetch_tells_the_rack(broker: Replicas) -> None:
    with reader(broker) as consumer:
        read_one(consumer, broker)
    assert {each.rack_id for each in broker.of_kind(FetchRequest) if each.topics} == {"east"}


def test_the_named_follower_is_read_from_at_once_and_from_then_on(
    broker: Replicas, runtime: SimRuntime
) -> None:
    with reader(broker) as consumer:
        assert read_one(consumer, broker) == [LEADER, FOLLOWER]
        assert runtime.clock.monotonic_ms() == 0
        for _ in range(3):
            broker.put()
            assert read_one(consumer, broker) == [FOLLOWER]
    assert broker.fetched[:3] == [(LEADER, 0), (FOLLOWER, 0), (FOLLOWER, 1)]


def test_the_leader_is_asked_again_after_metadata_max_age(
    broker: Replicas, runtime: SimRuntime
) -> None:
    with reader(broker) as consumer:
        read_one(consumer, broker)
        broker.put()
        runtime.clock.advance(MAX_AGE_MS)
        assert read_one(consumer, broker) == [FOLLOWER]
        broker.put()
        runtime.clock.advance(1)
        assert read_one(consumer, broker) == [LEADER, FOLLOWER]
        runtime.clock.advance(MAX_AGE_MS + 1)
        broker.preferred = LEADER
        broker.put()
        assert read_one(consumer, broker) == [LEADER]


@pytest.mark.parametrize(
    "name",
    ["NOT_LEADER_OR_FOLLOWER", "REPLICA_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR"]
    + ["FENCED_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE", "UNKNOWN_TOPIC_OR_PARTITION"]
    + ["UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID"],
)
def test_a_follower_that_is_none_any_more_is_left(broker: Replicas, name: str) -> None:
    with reader(broker) as consumer:
        read_one(consumer, broker)
        broker.put()
        broker.refusals[FOLLOWER] = [getattr(ErrorCode, name)]
        broker.preferred = LEADER
        assert read_one(consumer, broker) == [FOLLOWER, LEADER]


@pytest.mark.parametrize("name", ["UNKNOWN_LEADER_EPOCH", "UNKNOWN_SERVER_ERROR"])
def test_a_follower_that_lags_behind_is_asked_again(broker: Replicas, name: str) -> None:
    with reader(broker) as consumer:
        read_one(consumer, broker)
        broker.put()
        broker.refusals[FOLLOWER] = [getattr(ErrorCode, name)]
        assert read_one(consumer, broker) == [FOLLOWER, FOLLOWER]


@pytest.mark.parametrize("policy", ["earliest", "none"])
def test_a_follower_without_the_offset_does_not_reset_the_position(
    broker: Replicas, runtime: SimRuntime, policy: str
) -> None:
    with Consumer(broker.transport(), auto_offset_reset=policy) as consumer:
        consumer.assign([HERE])
        consumer.seek(HERE, 0)
        read_one(consumer, broker)
        broker.put()
        broker.refusals[FOLLOWER] = [ErrorCode.OFFSET_OUT_OF_RANGE]
        broker.preferred = LEADER
        assert read_one(consumer, broker) == [FOLLOWER, LEADER]
        assert consumer.position(HERE) == 2
        assert runtime.clock.monotonic_ms() == 0


def test_a_follower_that_cannot_be_reached_is_left_at_once(
    broker: Replicas, runtime: SimRuntime
) -> None:
    with reader(broker) as consumer:
        read_one(consumer, broker)
        broker.put()
        broker.refusals[FOLLOWER] = [None]
        broker.preferred = LEADER
        assert read_one(consumer, broker) == [LEADER]
        assert runtime.clock.monotonic_ms() < BACKOFF_MS


@pytest.mark.parametrize("what", ["the node has left", "the replica is offline"])
def test_a_follower_that_metadata_does_not_know_is_left(broker: Replicas, what: str) -> None:
    with reader(broker) as consumer:
        read_one(consumer, broker)
        if what == "the node has left":
            broker.nodes.discard(FOLLOWER)
        else:
            broker.offline = [FOLLOWER]
        broker.preferred = LEADER
        broker.put()
        assert read_one_with_news(consumer, broker) == [FOLLOWER, LEADER]


def test_a_node_that_is_no_replica_is_not_read_from(broker: Replicas) -> None:
    broker.preferred = THIRD
    with reader(broker) as consumer:
        assert not consumer.poll(0)
        broker.preferred = LEADER
        assert read_one(consumer, broker)[-1] == LEADER
    assert {node for node, _ in broker.fetched} == {LEADER}


def test_a_new_leader_is_asked_before_any_follower(broker: Replicas) -> None:
    with reader(broker) as consumer:
        read_one(consumer, broker)
        broker.leader_epoch = 1
        broker.preferred = LEADER
        broker.put()
        assert read_one_with_news(consumer, broker) == [FOLLOWER, LEADER]


def test_each_partition_has_a_follower_of_its_own(broker: Replicas) -> None:
    broker.put("two")
    with reader(broker) as consumer:
        consumer.assign([HERE, OTHER])
        read: list[str] = []
        while len(read) < 2:
            read += [record.topic for record in consumer.poll(100)]
    assert sorted(read) == ["one", "two"]
    assert broker.fetched[-1][0] == FOLLOWER
