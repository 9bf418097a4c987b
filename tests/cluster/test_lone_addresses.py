"""The addresses of a lone broker over its stops, and what foreign clients notice of its faults."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

import embedlog
from embedlog.cluster.cluster import Cluster

PATIENCE_S = 30.0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with embedlog.open() as made:
        made.create_topic("t", 1)
        yield made


def _is_open(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.parametrize("way", ["kill", "stop"])
def test_every_address_closes_and_comes_back_at_its_port(cluster: Cluster, way: str) -> None:
    broker = cluster.broker(1)
    assert broker.address is None
    first, second = (cluster.listen("127.0.0.1", 0) for _ in range(2))
    for _ in range(2):
        getattr(broker, way)()
        assert broker.address == first.address
        assert not _is_open(first.address)
        assert not _is_open(second.address)
        broker.start()
        assert _is_open(first.address)
        assert _is_open(second.address)
        assert len(broker.core.endpoints) == 2
    third = cluster.listen("127.0.0.1", 0)
    broker.kill()
    second.close()
    broker.start()
    assert not _is_open(second.address)
    assert [_is_open(each.address) for each in (first, third)] == [True, True]
    first.close()
    assert not _is_open(first.address)
    assert broker.address == third.address


def test_a_broker_whose_port_was_taken_stays_down_and_starts_later(cluster: Cluster) -> None:
    address = cluster.listen("127.0.0.1", 0).address
    broker = cluster.broker(1)
    broker.kill()
    host, _, port = address.rpartition(":")
    with socket.socket() as thief:
        thief.bind((host, int(port)))
        thief.listen()
        with pytest.raises(OSError, match="in use") as caught:
            broker.start()
        assert caught.value.filename == address
        assert not broker.is_running
    broker.start()
    assert _is_open(address)
    assert cluster.topics == ["t"]


def test_connections_stay_over_the_first_fault_and_over_a_change_of_the_disk(
    cluster: Cluster,
) -> None:
    listener = cluster.listen("127.0.0.1", 0)
    with (
        embedlog.Producer(listener.address, acks="all") as producer,
        socket.create_connection((listener.host, listener.port)) as idle,
    ):
        producer.send("t", b"1").result(PATIENCE_S)
        disk = cluster.broker(1).disk
        disk.fill()
        disk.free()
        disk.slow(1)
        assert producer.send("t", b"2").result(PATIENCE_S).offset == 1
        # A closed connection would be readable, with nothing to read.
        assert select.select([idle], [], [], 0.05)[0] == []
        cluster.broker(1).kill()
        assert select.select([idle], [], [], PATIENCE_S)[0] == [idle]


def test_a_client_over_tcp_waits_for_a_paused_broker_and_for_one_that_is_down(
    cluster: Cluster,
) -> None:
    address = cluster.listen("127.0.0.1", 0).address
    broker = cluster.broker(1)
    with embedlog.Producer(address) as producer:
        producer.send("t", b"1").result(PATIENCE_S)
        for number, (begin, end) in enumerate(
            [(broker.pause, broker.resume), (broker.kill, broker.start)], 1
        ):
            begin()
            sent = producer.send("t", b"2")
            with pytest.raises(embedlog.TimedOut):
                sent.result(0.05)
            end()
            assert sent.result(PATIENCE_S).offset == number


def test_a_cluster_with_a_broker_down_closes_and_frees_its_port(cluster: Cluster) -> None:
    listener = cluster.listen("127.0.0.1", 0)
    cluster.broker(1).kill()
    cluster.close()
    assert not _is_open(listener.address)
    listener.close()
    with closing(socket.socket()) as another:
        another.bind(("127.0.0.1", listener.port))


# Foreign clients


def _confluent_producer(address: str) -> Any:
    from confluent_kafka import Producer

    return Producer(
        {
            "bootstrap.servers": address,
            "enable.idempotence": True,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 10,
            "log_level": 0,
        }
    )


class _Confluent:
    """confluent-kafka: `send` returns an event and a list that gets the error, if any."""

    def __init__(self, address: str) -> None:
        self._producer = _confluent_producer(address)
        self._address = address

    def send(self, value: bytes) -> list[object]:
        outcome: list[object] = []
        self._producer.produce(
            "t", value, on_delivery=lambda error, message: outcome.append(error or message.offset())
        )
        self._producer.poll(0)
        return outcome

    def wait(self, outcome: list[object], timeout_s: float) -> object:
        """Return the offset or the error; None if there is none in time."""
        self._producer.flush(timeout_s)
        return outcome[0] if outcome else None

    def read(self, count: int) -> list[bytes]:
        from confluent_kafka import Consumer

        consumer = Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": "confluent",
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        with closing(consumer):
            consumer.subscribe(["t"])
            return [each.value() for each in consumer.consume(count, PATIENCE_S)]

    def close(self) -> None:
        self._producer.flush(PATIENCE_S)


class _KafkaPython:
    """kafka-python, with the calls of `_Confluent`."""

    def __init__(self, address: str) -> None:
        from kafka import KafkaProducer

        self._producer = KafkaProducer(
            bootstrap_servers=address,
            retries=1000,
            retry_backoff_ms=20,
            reconnect_backoff_max_ms=100,
            max_in_flight_requests_per_connection=1,
        )
        self._address = address

    def send(self, value: bytes) -> Any:
        return self._producer.send("t", value)

    def wait(self, outcome: Any, timeout_s: float) -> object:
        from kafka.errors import KafkaTimeoutError

        try:
            return outcome.get(timeout_s).offset
        except KafkaTimeoutError:
            return None

    def read(self, count: int) -> list[bytes]:
        from kafka import KafkaConsumer

        consumer = KafkaConsumer(
            "t",
            bootstrap_servers=self._address,
            group_id="kafka-python",
            auto_offset_reset="earliest",
            consumer_timeout_ms=int(PATIENCE_S * 1000),
        )
        with closing(consumer):
            return [next(consumer).value for _ in range(count)]

    def close(self) -> None:
        self._producer.close()


@pytest.fixture(params=[_Confluent, _KafkaPython], ids=["confluent-kafka", "kafka-python"])
def foreign(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Any]:
    client = request.param(cluster.listen("127.0.0.1", 0).address)
    with closing(client):
        assert client.wait(client.send(b"0"), PATIENCE_S) == 0
        yield client


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.parametrize(
    ("begin", "end"), [("kill", "start"), ("stop", "start"), ("pause", "resume")]
)
def test_a_foreign_producer_goes_on_where_it_was(
    cluster: Cluster, foreign: Any, begin: str, end: str
) -> None:
    getattr(cluster.broker(1), begin)()
    sent = [foreign.send(b"%d" % number) for number in (1, 2, 3)]
    assert foreign.wait(sent[0], 0.5) is None
    getattr(cluster.broker(1), end)()
    assert [foreign.wait(each, PATIENCE_S) for each in sent] == [1, 2, 3]
    assert foreign.read(4) == [b"0", b"1", b"2", b"3"]


@pytest.mark.interop
@pytest.mark.slow
def test_a_foreign_consumer_keeps_its_group_over_a_kill(cluster: Cluster, foreign: Any) -> None:
    found: list[bytes] = []
    reading = threading.Thread(target=lambda: found.extend(foreign.read(2)))
    reading.start()
    cluster.broker(1).kill()
    cluster.broker(1).start()
    assert foreign.wait(foreign.send(b"1"), PATIENCE_S) == 1
    reading.join(2 * PATIENCE_S)
    assert found == [b"0", b"1"]


@pytest.mark.interop
@pytest.mark.slow
def test_a_new_foreign_client_waits_for_a_hidden_broker(cluster: Cluster, foreign: Any) -> None:
    cluster.broker(1).hide()
    showing = threading.Timer(1.0, cluster.broker(1).show)
    showing.start()
    another = type(foreign)(cluster.broker(1).address)  # kafka-python waits here already
    with closing(another):
        assert another.wait(another.send(b"1"), PATIENCE_S) == 1
        assert showing.finished.is_set()


@pytest.mark.interop
@pytest.mark.slow
def test_a_foreign_producer_feels_a_slow_and_a_failing_disk(cluster: Cluster, foreign: Any) -> None:
    disk = cluster.broker(1).disk
    disk.slow(700)
    sent = foreign.send(b"1")
    assert foreign.wait(sent, 0.3) is None
    assert foreign.wait(sent, PATIENCE_S) == 1
    disk.slow(0)
    disk.fail(disk.directories[0])
    sent = foreign.send(b"2")
    assert foreign.wait(sent, 0.5) is None  # it is repeated: KAFKA_STORAGE_ERROR
    disk.repair()
    cluster.broker(1).kill()
    cluster.broker(1).start()
    assert foreign.wait(sent, PATIENCE_S) == 2
