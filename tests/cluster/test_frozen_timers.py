"""Tests that freeze time, or move it by days: each timer runs by the machine's clock."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

import embedlog
from embedlog.cluster.cluster import Cluster
from embedlog.config import BrokerConfig
from embedlog.errors import KafkaError, RequestTimedOut, TimedOut
from embedlog.replication.fetch_sessions import EVICTION_MS
from embedlog.replication.throttles import LEADER_RATE, Throttle
from embedlog.runtime import Random, Runtime, Scheduler
from embedlog.runtime.clock import Clock
from embedlog.runtime.memory_files import MemoryFiles
from embedlog.transport import ANY_NODE
from tests.apis import consumer_groups
from tests.client.network.test_network_client import FakeChannels, client, finish
from tests.client.scripted_broker import ScriptedBroker
from tests.cluster.still import PLACE, Still, until
from tests.server.wire_client import WireClient
from wire.error_codes import ErrorCode
from wire.schemas.api_versions import ApiVersionsRequest
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.schemas.metadata import MetadataRequest

LATER = "2030-01-11"
LONG_MS = 600_000


class Ahead(Clock):
    """The machine's clock, which a test puts forward instead of waiting for minutes."""

    __slots__ = ("ahead_ms",)

    def __init__(self) -> None:
        self.ahead_ms = 0

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.ahead_ms


@pytest.fixture
def clock() -> Ahead:
    return Ahead()


@pytest.fixture
def runtime(clock: Ahead) -> Runtime:
    return Runtime(
        clock=clock, files=MemoryFiles(clock), scheduler=Scheduler(clock), random=Random()
    )


# Timers of the broker


def test_a_fetch_session_may_be_evicted_after_two_minutes(
    frozen: Any, clock: Ahead, runtime: Runtime
) -> None:
    settings = {"max.incremental.fetch.session.cache.slots": 1}
    with Cluster(None, settings, runtime=runtime) as cluster:
        topic_id = cluster.create_topic("t").topic_id
        transport = cluster.connect("test")

        def session() -> int:
            topic = FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=0)])
            asked = FetchRequest(max_wait_ms=0, session_epoch=0, topics=[topic])
            answer: int = transport.send(ANY_NODE, asked).result().session_id
            return answer

        assert session()
        frozen.move_to(LATER)
        assert not session()
        clock.ahead_ms += EVICTION_MS + 1
        assert session()


def is_cut(connection: socket.socket) -> bool:
    connection.settimeout(0.001)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False


def test_the_broker_closes_an_idle_connection(frozen: Any) -> None:
    with embedlog.open(connections_max_idle_ms=30) as cluster:
        listener = cluster.listen()
        host, _, port = listener.address.rpartition(":")
        with socket.create_connection((host, int(port))) as connection:
            until(lambda: is_cut(connection))


def test_a_moved_clock_closes_no_connection(frozen: Any) -> None:
    with embedlog.open(connections_max_idle_ms=LONG_MS) as cluster:
        host, _, port = cluster.listen().address.rpartition(":")
        with closing(WireClient((host, int(port)))) as client:
            assert client.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
            frozen.move_to(LATER)
            assert client.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE


def test_a_throttle_counts_the_bytes_of_the_last_seconds(frozen: Any, clock: Ahead) -> None:
    config = BrokerConfig()
    config.set_dynamic({LEADER_RATE: "1000"}, {})
    throttle = Throttle(LEADER_RATE, 1, config, clock.monotonic_ms)
    throttle.record(1_000_000)
    frozen.move_to(LATER)
    assert throttle.is_exceeded
    clock.ahead_ms += 1_000 * config.replication_quota_window_num + 1_000
    assert not throttle.is_exceeded


def test_leaders_go_back_to_the_preferred_brokers(
    frozen: Any, clock: Ahead, runtime: Runtime
) -> None:
    settings = {"leader.imbalance.check.interval.seconds": 10}
    with Cluster(None, settings, brokers=2, runtime=runtime) as cluster:
        cluster.create_topic("t", 1, replication_factor=2)
        partition = cluster.partition("t", 0)
        leader = partition.leader
        preferred = 3 - leader
        partition.reassign([preferred, leader])
        frozen.move_to(LATER)
        admin = cluster.admin()
        admin.list_topics()
        assert partition.leader == leader

        def is_back() -> bool:
            clock.ahead_ms += 500  # in steps, so that no broker loses its session
            admin.list_topics()
            return partition.leader == preferred

        until(is_back)


@pytest.mark.parametrize("moves", [False, True], ids=["frozen", "moved"])
def test_a_member_that_keeps_its_partitions_leaves_at_its_rebalance_timeout(
    still: Still, moves: bool
) -> None:
    still.admin.create_partitions({"t": 2})
    with still.consumer("consumer") as consumer:
        consumer.committed([PLACE])  # makes the topic of the coordinator
    timeout_ms = LONG_MS if moves else 40
    epochs = {"a": 0, "b": 0}
    counts = {"a": 0, "b": 0}

    def beat(member: str) -> int:
        """Send a heartbeat that gives up no partition; return the error code."""
        epoch = epochs[member]
        ask = consumer_groups.stay(member, epoch)
        if not epoch:
            ask = consumer_groups.join(member, "t", rebalance_timeout_ms=timeout_ms)
        answer = still.ask(ask)
        epochs[member] = answer.member_epoch or epoch
        if answer.assignment is not None:
            counts[member] = sum(len(t.partitions) for t in answer.assignment.topic_partitions)
        code: int = answer.error_code
        return code

    assert beat("a") == ErrorCode.NONE
    assert counts["a"] == 2
    assert beat("b") == ErrorCode.NONE
    until(lambda: beat("b") or beat("a") or counts["a"] == 1)  # it shall give one up
    if moves:
        still.move()
        assert beat("a") == ErrorCode.NONE
    else:
        until(lambda: beat("b") or beat("a"))
        assert beat("b") == ErrorCode.NONE


# Timers of the clients


@pytest.fixture
def channels(runtime: Any) -> FakeChannels:
    return FakeChannels(ScriptedBroker({"one": 1}, runtime), runtime)


def test_a_client_closes_an_idle_connection(
    frozen: Any, clock: Ahead, runtime: Any, channels: FakeChannels
) -> None:
    network = client(channels, runtime, connections_max_idle_ms=LONG_MS)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    frozen.move_to(LATER)
    network.poll()
    assert len(channels.open) == 1
    clock.ahead_ms += LONG_MS
    network.poll()
    assert channels.open == []


def test_a_request_over_the_network_times_out(
    frozen: Any, clock: Ahead, runtime: Any, channels: FakeChannels
) -> None:
    network = client(channels, runtime, request_timeout_ms=LONG_MS)
    finish(network, network.send(ANY_NODE, MetadataRequest(topics=None)))
    channels.holds = True
    asked = network.send(ANY_NODE, MetadataRequest(topics=None))
    network.poll()
    frozen.move_to(LATER)
    network.poll()
    assert not asked.done()
    clock.ahead_ms += LONG_MS
    network.poll()
    assert asked.done()
    with pytest.raises(KafkaError):
        asked.result()


@pytest.fixture
def held(frozen: Any) -> Iterator[Cluster]:
    """Two brokers, of which the follower gets nothing: records wait for it."""
    with embedlog.open(brokers=2) as cluster:
        settings = {"min.insync.replicas": 2}
        cluster.create_topic("t", 1, replication_factor=2, config=settings)
        partition = cluster.partition("t", 0)
        partition.hold(3 - partition.leader)
        yield cluster


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"delivery_timeout_ms": 60, "request_timeout_ms": 40}, (TimedOut, RequestTimedOut)),
        ({"delivery_timeout_ms": LONG_MS, "request_timeout_ms": 40, "retries": 0}, RequestTimedOut),
    ],
    ids=["delivery.timeout.ms", "request.timeout.ms"],
)
def test_a_record_without_an_acknowledgement_fails(
    held: Cluster, limits: dict[str, int], error: Any
) -> None:
    with held.producer(linger_ms=0, acks="all", **limits) as producer:
        sent = producer.send("t", b"v")
        until(sent.done)
        with pytest.raises(error):
            sent.result(0)


def test_a_moved_clock_fails_no_record(held: Cluster, frozen: Any) -> None:
    with held.producer(linger_ms=0, acks="all") as producer:
        sent = producer.send("t", b"v")
        frozen.move_to(LATER)
        assert not sent.done()
        partition = held.partition("t", 0)
        partition.release(3 - partition.leader)
        assert sent.result(20).offset == 0


def committed(still: Still, interval_ms: int) -> tuple[embedlog.Consumer, Callable[[], bool]]:
    """Read a record with automatic commits; return the consumer, and whether it has committed."""
    with still.cluster.producer() as producer:
        producer.append("t", b"v")
    consumer = still.cluster.consumer(
        group_id="g", auto_offset_reset="earliest", auto_commit_interval_ms=interval_ms
    )
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(10))
    return consumer, lambda: bool(consumer.poll(0)) or bool(consumer.committed([PLACE])[PLACE])


def test_positions_are_committed_at_each_interval(still: Still) -> None:
    consumer, has_committed = committed(still, 30)
    with consumer:
        until(has_committed)


def test_a_moved_clock_commits_nothing(still: Still) -> None:
    consumer, has_committed = committed(still, LONG_MS)
    with consumer:
        still.move()
        assert not has_committed()
