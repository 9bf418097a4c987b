"""Long requests: which ones they are, and that other clients do not wait for them."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import embedlog
from embedlog.server import service
from embedlog.server.addresses import BrokerListener
from embedlog.server.heavy_requests import HeavyRequests, is_heavy, is_heavy_produce
from embedlog.testing import sim_runtime
from tests.crash.peers.attacks import gzipped
from tests.server.wire_client import WireClient
from wire.api_keys import ApiKey
from wire.records.encode.builder import build_batch
from wire.records.format import Codec
from wire.schemas.api_versions import ApiVersionsRequest
from wire.schemas.create_topics import CreatableTopic, CreateTopicsRequest
from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic
from wire.schemas.metadata import MetadataRequest, MetadataRequestTopic
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TIMEOUT_S = 30


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as cluster:
        cluster.create_topic("events", 1)
        yield cluster


@pytest.fixture
def listener(cluster: embedlog.Cluster) -> BrokerListener:
    return cluster.listen()


def connect(listener: BrokerListener) -> WireClient:
    return WireClient((listener.host, listener.port))


class Blocked:
    """Keeps requests of one API waiting in the broker until `release`."""

    def __init__(self, cluster: embedlog.Cluster, api_key: int) -> None:
        self.entered = threading.Event()
        self.release = threading.Event()
        self.threads: set[str] = set()
        handle = cluster.broker().core.handle

        def blocked(context: Any, request: Any) -> Any:
            if context.api_key == api_key:
                self.threads.add(threading.current_thread().name)
                self.entered.set()
                assert self.release.wait(TIMEOUT_S)
            return handle(context, request)

        cluster.broker().core.handle = blocked  # type: ignore[method-assign]


def creation(*names: str) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=each, num_partitions=1, replication_factor=1) for each in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=60_000)


@pytest.mark.parametrize(
    ("api_key", "light_size", "heavy_size"),
    [
        (ApiKey.HEARTBEAT, 8_192, 8_193),
        (ApiKey.DESCRIBE_CONFIGS, 128, 129),
        (ApiKey.METADATA, 512, 513),
        (ApiKey.FETCH, 65_536, 65_537),
        (ApiKey.CREATE_TOPICS, 0, 1),
    ],
)
def test_the_api_and_the_size_say_what_is_heavy(
    api_key: int, light_size: int, heavy_size: int
) -> None:
    assert not is_heavy(api_key, light_size)
    assert is_heavy(api_key, heavy_size)


def produced(*records: bytes | None) -> ProduceRequest:
    data = [PartitionProduceData(index=n, records=each) for n, each in enumerate(records)]
    return ProduceRequest(topic_data=[TopicProduceData(name="events", partition_data=data)])


def test_what_a_batch_says_of_itself_makes_a_produce_heavy() -> None:
    large = build_batch([bytes(1_000_000)], timestamps=1)
    assert not is_heavy_produce(produced(large, None, b"short"))
    assert not is_heavy_produce(produced(build_batch([b""] * 10_000, timestamps=1)))
    assert is_heavy_produce(produced(build_batch([b""] * 10_001, timestamps=1)))
    small = build_batch([b"x" * 100_000], timestamps=1, codec=Codec.GZIP)
    assert not is_heavy_produce(produced(small))
    noise = random.Random(1).randbytes(20_000)
    assert is_heavy_produce(produced(small, build_batch([noise], timestamps=1, codec=Codec.LZ4)))
    assert is_heavy_produce(produced(*[None] * 201))
    topics = produced(None).topic_data
    assert not is_heavy_produce(ProduceRequest(topic_data=topics * 200))
    assert is_heavy_produce(ProduceRequest(topic_data=topics * 201))


def test_compressed_records_weigh_ten_times_as_much() -> None:
    record = bytes([16, 0, 0, 0, 1, 1, 2, 0, 1])
    assert len(gzipped(record * 10_000, 10_000)) < 300
    assert is_heavy_produce(produced(gzipped(record * 10_000, 10_000)))
    assert is_heavy_produce(produced(gzipped(record * 1_001, 1_001)))
    assert not is_heavy_produce(produced(gzipped(record * 1_000, 1_000)))
    plain = build_batch([b""] * 10_001, timestamps=1)
    assert is_heavy_produce(produced(gzipped(record, 1 - 2**31), plain))


def test_the_batches_of_a_request_count_together() -> None:
    plain = build_batch([b""] * 5_000, timestamps=1)
    assert not is_heavy_produce(produced(plain, plain))
    assert is_heavy_produce(produced(plain, plain, build_batch([b""], timestamps=1)))
    noise = build_batch([random.Random(1).randbytes(8_100)], timestamps=1, codec=Codec.LZ4)
    assert not is_heavy_produce(produced(noise, noise))
    assert is_heavy_produce(produced(noise, noise, noise))


@pytest.mark.parametrize("claimed", [-1, 0, -(2**31)])
def test_a_negative_count_makes_up_for_no_other(claimed: int) -> None:
    batch = bytearray(build_batch([b""], timestamps=1))
    batch[57:61] = claimed.to_bytes(4, "big", signed=True)
    many = build_batch([b""] * 10_001, timestamps=1)
    assert not is_heavy_produce(produced(bytes(batch)))
    assert is_heavy_produce(produced(bytes(batch), many))


def test_nobody_waits_for_a_heavy_request(
    cluster: embedlog.Cluster, listener: BrokerListener
) -> None:
    blocked = Blocked(cluster, ApiKey.CREATE_TOPICS)
    with connect(listener) as heavy, connect(listener) as other:
        heavy.send(creation("made"), 5)
        assert blocked.entered.wait(TIMEOUT_S)
        assert other.ask(ApiVersionsRequest(), 0).error_code == 0
        assert other.ask(MetadataRequest(topics=None), 9).topics
        blocked.release.set()
        assert [topic.error_code for topic in heavy.receive().topics] == [0]
    assert "made" in cluster.topics
    assert blocked.threads == {"embedlog-heavy-requests"}


def test_a_small_frame_may_hold_many_records(
    cluster: embedlog.Cluster, listener: BrokerListener
) -> None:
    batch = gzipped(bytes([12, 0, 0, 0, 1, 0, 0]) * 10_001, 10_001)
    assert len(batch) < 512
    request = produced(batch)
    request.acks, request.timeout_ms = -1, 30_000
    blocked = Blocked(cluster, ApiKey.PRODUCE)
    with connect(listener) as heavy, connect(listener) as other:
        heavy.send(request, 9)
        assert blocked.entered.wait(TIMEOUT_S)
        blocked.release.set()
        assert heavy.receive().responses[0].partition_responses
        assert other.ask(ApiVersionsRequest(), 0).error_code == 0
    assert blocked.threads == {"embedlog-heavy-requests"}


def test_heavy_requests_are_answered_in_their_order(listener: BrokerListener) -> None:
    with connect(listener) as client:
        names = [f"t{n}" for n in range(20)]
        for name in names:
            client.send(creation(name), 5)
        assert [client.receive().topics[0].name for _ in names] == names


def test_a_heavy_request_that_is_none_closes_its_connection(listener: BrokerListener) -> None:
    with connect(listener) as client, connect(listener) as other:
        head = ApiKey.CREATE_TOPICS.to_bytes(2, "big") + (5).to_bytes(2, "big") + bytes(6)
        frame = head + b"\0" + b"\xff" * 20
        client.send_bytes(len(frame).to_bytes(4, "big") + frame)
        assert client.is_closed()
        assert other.ask(ApiVersionsRequest(), 0).error_code == 0


def test_a_peer_may_leave_while_its_request_is_worked_on(
    cluster: embedlog.Cluster, listener: BrokerListener
) -> None:
    blocked = Blocked(cluster, ApiKey.CREATE_TOPICS)
    with connect(listener) as client:
        client.send(creation("a"), 5)
        assert blocked.entered.wait(TIMEOUT_S)
    blocked.release.set()
    with connect(listener) as other:
        assert other.ask(creation("b"), 5).topics[0].error_code == 0
    assert {"a", "b"} <= set(cluster.topics)


def test_closing_waits_for_the_request_that_is_worked_on(cluster: embedlog.Cluster) -> None:
    listener = cluster.listen()
    blocked = Blocked(cluster, ApiKey.CREATE_TOPICS)
    with connect(listener) as client:
        client.send(creation("a"), 5)
        assert blocked.entered.wait(TIMEOUT_S)
        closing = threading.Thread(target=listener.close)
        closing.start()
        blocked.release.set()
        closing.join(TIMEOUT_S)
        assert not closing.is_alive()
    names = {thread.name for thread in threading.enumerate()}
    assert "embedlog-heavy-requests" not in names


def test_a_short_request_for_many_topics_or_partitions_is_heavy(
    cluster: embedlog.Cluster, listener: BrokerListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LIGHT_TOPICS_MAX", 1)
    monkeypatch.setattr(service, "LIGHT_SESSION_MAX", 1)
    cluster.create_topic("wide", 2)
    for api_key, several, few in (
        (ApiKey.METADATA, MetadataRequest(topics=None), MetadataRequest(topics=[EVENTS])),
        (ApiKey.FETCH, fetch(0, 1), fetch(0)),
    ):
        blocked = Blocked(cluster, api_key)
        blocked.release.set()
        for request, is_heavy_one in ((few, False), (several, True)):
            with connect(listener) as client:
                answer = client.ask(request, 9)
                if api_key == ApiKey.FETCH:
                    request.topics = []
                    request.session_id, request.session_epoch = answer.session_id, 1
                    assert request.session_id
                blocked.threads.clear()
                client.ask(request, 9)
            assert (blocked.threads == {"embedlog-heavy-requests"}) == is_heavy_one


def test_a_peer_that_leaves_takes_its_heavy_fetch_along(
    cluster: embedlog.Cluster, listener: BrokerListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "is_heavy", lambda api_key, _: api_key == ApiKey.FETCH)
    cluster.create_topic("wide", 1)
    purgatory = cluster.broker().core.replica_manager.fetch_purgatory
    blocked = Blocked(cluster, ApiKey.FETCH)
    waiting = fetch(0)
    waiting.max_wait_ms, waiting.min_bytes = 60_000, 1
    with connect(listener) as other:
        with connect(listener) as leaving:
            leaving.send(waiting, 9)
            assert blocked.entered.wait(TIMEOUT_S)
        assert other.ask(ApiVersionsRequest(), 0).error_code == 0  # the end was noticed before
        blocked.release.set()
        assert other.ask(fetch(0), 9).error_code == 0
        assert purgatory.delayed == 0


EVENTS = MetadataRequestTopic(name="events")


def fetch(*partitions: int) -> FetchRequest:
    """A request that begins a fetch session."""
    asked = [FetchPartition(partition=n, partition_max_bytes=1_000) for n in partitions]
    topics = [FetchTopic(topic="wide", partitions=asked)]
    return FetchRequest(max_wait_ms=0, max_bytes=1_000, session_epoch=0, topics=topics)


class Connection:
    """As much of a connection as `HeavyRequests` needs."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.is_open = is_open


def run_heavy(*works: tuple[Connection, Any]) -> list[Any]:
    """Run requests one after the other; return the failures as (connection, error)."""
    runtime, failures = sim_runtime(), []
    heavy = HeavyRequests(runtime, lambda *failure: failures.append(failure))
    for connection, work in works:
        heavy.add(connection, work)  # type: ignore[arg-type]
    runtime.scheduler.run_due(runtime.clock.monotonic_ms())
    return failures


def test_the_heavy_request_of_a_peer_that_has_left_is_dropped() -> None:
    done: list[int] = []
    run_heavy(
        (Connection(is_open=False), lambda: done.append(1)),
        (Connection(), lambda: done.append(2)),
    )
    assert done == [2]


def test_a_heavy_request_that_fails_costs_its_connection_only() -> None:
    done: list[int] = []
    connection, error = Connection(), RuntimeError("a defect")

    def fail() -> None:
        raise error

    assert run_heavy((connection, fail), (Connection(), lambda: done.append(2))) == [
        (connection, error)
    ]
    assert done == [2]


def test_a_close_drops_the_heavy_requests_that_wait() -> None:
    class LateThread:
        """A thread that comes to its work only when it is closed."""

        def __init__(self, duty: HeavyRequests, _name: str) -> None:
            self.duty = duty

        def notify(self) -> None: ...

        def close(self) -> None:
            self.duty.run_once(0)

    done: list[int] = []
    runtime = SimpleNamespace(scheduler=SimpleNamespace(duty_thread=LateThread))
    heavy = HeavyRequests(runtime, lambda *_: None)  # type: ignore[arg-type]
    heavy.add(Connection(), lambda: done.append(1))  # type: ignore[arg-type]
    heavy.close()
    assert done == []
