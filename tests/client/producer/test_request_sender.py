"""A producer over the network: its requests, and their outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import embedlog
from embedlog import ConfigResource, ResourceType
from embedlog.client.producer.producer import Producer
from embedlog.runtime.pending import Pending
from embedlog.testing import sim_runtime
from embedlog.testing.loopback_transport import LoopbackTransport
from tests.client.scripted_broker import PASS, ScriptedBroker
from wire.schemas.produce import ProduceRequest

TOPIC = ConfigResource(ResourceType.TOPIC, "t")


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as opened:
        opened.create_topic("t", 1)
        yield opened


def _offsets(producer: Producer, count: int) -> list[int]:
    return [producer.send("t", b"%d" % number).result().offset for number in range(count)]


@pytest.mark.parametrize("settings", [{}, {"acks": "1"}, {"compression_type": "gzip"}])
def test_each_record_learns_its_offset(cluster: embedlog.Cluster, settings: Any) -> None:
    with Producer(LoopbackTransport(cluster), settings) as producer:
        assert _offsets(producer, 20) == list(range(20))
        assert producer.metrics()["record-send-total"] == 20
    with cluster.consumer() as consumer:
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        assert [each.value for each in consumer.poll(1000)] == [b"%d" % n for n in range(20)]


def test_the_brokers_time_is_told_where_the_topic_stamps_at_append(
    cluster: embedlog.Cluster,
) -> None:
    with cluster.admin() as admin:
        admin.alter_configs({TOPIC: {"message.timestamp.type": "LogAppendTime"}}).check()
    with Producer(LoopbackTransport(cluster)) as producer:
        for _ in range(12):
            assert producer.send("t", b"v", timestamp_ms=5).result().timestamp > 5


def test_a_topic_made_anew_gets_its_records(cluster: embedlog.Cluster) -> None:
    transport = LoopbackTransport(cluster)
    with Producer(transport) as producer, cluster.admin() as admin:
        assert _offsets(producer, 3) == [0, 1, 2]
        admin.delete_topics(["t"]).check()
        admin.create_topics({"t": 1}).check()
        assert _offsets(producer, 3) == [0, 1, 2]


def test_a_refusal_after_good_answers_is_seen(cluster: embedlog.Cluster) -> None:
    with Producer(LoopbackTransport(cluster)) as producer, cluster.admin() as admin:
        assert _offsets(producer, 3) == [0, 1, 2]
        admin.alter_configs({TOPIC: {"max.message.bytes": "200"}}).check()
        error = producer.send("t", bytes(1000)).exception()
        assert isinstance(error, embedlog.errors.MessageTooLarge)
        assert _offsets(producer, 2) == [3, 4]


def test_records_go_on_over_a_connection_that_is_made_anew(cluster: embedlog.Cluster) -> None:
    transport = LoopbackTransport(cluster)
    with Producer(transport) as producer:
        assert _offsets(producer, 3) == [0, 1, 2]
        transport.channels.cut()
        assert _offsets(producer, 3) == [3, 4, 5]


def _requests(sizes: list[int]) -> list[list[int]]:
    """Return the partitions in each request, for three records of these sizes.

    Each record has its own partition and batch; a request takes 4,500 bytes, and waits for the one
    before.
    """
    runtime = sim_runtime(seed=1)
    broker = ScriptedBroker({"t": len(sizes)}, runtime)
    held: list[tuple[Any, Pending[Any]]] = []
    requests: list[list[int]] = []

    def hold(request: Any) -> Any:
        if not isinstance(request, ProduceRequest):
            return PASS
        held.append((request, Pending()))
        return held[-1][1]

    settings: dict[str, Any] = {
        "max_request_size": 4_500,
        "max_in_flight_requests_per_connection": 1,
        "linger_ms": 1_000,
        "enable_idempotence": False,
    }
    with Producer(broker.transport(), settings, batch_size=0) as producer:
        producer.partitions_for("t")
        broker.faults.append(hold)
        futures = [
            producer.send("t", bytes(size), partition=partition)
            for _ in range(3)
            for partition, size in enumerate(sizes)
        ]
        while not all(future.done() for future in futures):
            with suppress(embedlog.TimedOut):
                producer.flush(0)
            asked, held[:] = list(held), []
            for request, _ in asked:
                requests.append([data.index for data in request.topic_data[0].partition_data])
            for request, pending in asked:
                pending.complete(broker.answer(request))
    return requests


def test_partitions_take_turns_when_a_request_is_full() -> None:
    assert _requests([2_000] * 4) == [[0], [1, 2], [3, 0], [1, 2], [3, 0], [1, 2], [3]]


def test_a_large_batch_goes_alone_and_nothing_overtakes_it() -> None:
    assert _requests([1_000, 4_400, 1_000]) == [[0], [1], [2, 0], [1], [2, 0], [1], [2]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"enable_idempotence": False},
        {"enable_idempotence": True},
        {"enable_idempotence": True, "compression_type": "gzip"},
        {"enable_idempotence": False, "max_in_flight_requests_per_connection": 1},
        {"enable_idempotence": True, "max_in_flight_requests_per_connection": 2},
        {"enable_idempotence": False, "acks": "0"},
        # Batches are cut before they are sent, with other batches of their queue behind them.
        {"enable_idempotence": False, "max_request_size": 1500},
        {"enable_idempotence": True, "max_request_size": 1500},
    ],
)
def test_a_backlog_is_written_in_the_order_of_sending(
    cluster: embedlog.Cluster, settings: dict[str, Any]
) -> None:
    address = cluster.listen("127.0.0.1", 0).address
    values = [b"%d" % number * 60 for number in range(900)]
    with Producer(address, settings, batch_size=4000) as producer:
        futures = [producer.send("t", value) for value in values]
        producer.flush()
        if settings.get("acks") != "0":
            assert [each.result().offset for each in futures] == list(range(900))
        assert producer.metrics()["record-send-total"] == 900
    with cluster.consumer() as consumer:
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        found: list[bytes | None] = []
        while len(found) < 900:
            found += [each.value for each in consumer.poll(1000)]
    assert found == values
