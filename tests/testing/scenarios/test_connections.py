"""Connections, addresses and brokers that come and go."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from embedlog.testing import Kafka
from tests.testing.scenarios.clients import (
    SECONDS,
    SENDERS,
    admin,
    consumer,
    failure,
    member,
    producer,
    reader,
    send,
    take,
    until_assigned,
)

pytestmark = pytest.mark.interop
BROKERS = 3


class Lines(logging.Handler):
    """Keeps what a client logs."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def logger(name: str) -> tuple[logging.Logger, Lines]:
    """Return a logger for a client, and its lines."""
    made, lines = logging.getLogger(name), Lines()
    made.addHandler(lines)
    made.propagate = False
    return made, lines


senders = pytest.mark.parametrize("sender", SENDERS.values(), ids=SENDERS)
Sender = Callable[..., int]


def test_a_connection_that_is_not_answered_is_given_up(kafka: Kafka) -> None:
    """Nobody answers on a new connection: it ends after socket.connection.setup.timeout.ms."""
    made, lines = logger("setup")
    settings = {"socket.connection.setup.timeout.ms": 1_000, "logger": made}
    with kafka.toxic(hang=True):
        by = kafka.closing(Producer(kafka.client_config("confluent", "producer", **settings)))
        assert failure(by.list_topics, timeout=2.5).name() == "_TRANSPORT"
    by.poll(0)
    assert any("setup timed out" in line.lower() for line in lines.lines), lines.lines


@senders
def test_slow_connections_deliver(kafka: Kafka, topic: str, sender: Sender) -> None:
    """Latency in both directions, and answers in small pieces, change nothing but the time."""
    with kafka.toxic(latency=0.005, slice=50):
        assert sender(kafka, topic, b"x" * 1_000) == 0
    assert kafka.topic(topic).values() == [b"x" * 1_000]


def test_connections_that_break_after_some_bytes(kafka: Kafka, topic: str) -> None:
    """Each connection takes 4,000 bytes and breaks: an idempotent producer delivers all, once."""
    by = producer(kafka, enable_idempotence=True, batch_num_messages=1)
    values = [b"%03d" % number * 100 for number in range(30)]
    with kafka.toxic(limit=4_000, direction="to-broker", cut=True) as toxic:
        send(by, topic, values)
    assert toxic.connections > 2
    assert kafka.topic(topic).values() == values


def test_all_connections_break_at_once(kafka: Kafka, topic: str) -> None:
    """A producer and a consumer connect again, and nothing is lost."""
    by, to = producer(kafka, enable_idempotence=True), reader(kafka, topic)
    send(by, topic, [b"1"])
    assert take(to, 1) == [b"1"]
    kafka.cut_connections()
    assert send(by, topic, [b"2"]) == ["offset 1"]
    assert take(to, 1) == [b"2"]


def test_every_connection_names_the_client(kafka: Kafka, topic: str) -> None:
    """Name and version of the library come with ApiVersions on each connection, in a valid form."""
    seen: list[tuple[str, str]] = []

    def note(request: Any, response: Any) -> Any:
        seen.append((request.client_software_name, request.client_software_version))
        return response

    with kafka.fault("ApiVersions", client_id=topic, answer=note, always=True) as fault:
        by = producer(kafka, client_id=topic)
        send(by, topic, [b"x"])
    assert fault.hits >= 2
    assert {name for name, _ in seen} == {"confluent-kafka-python"}
    assert all(version for _, version in seen)


def test_an_old_broker_is_asked_in_an_older_way(kafka: Kafka, topic: str) -> None:
    """UNSUPPORTED_VERSION for ApiVersions: the client asks with version 0, and works."""
    rule: Any = {"client_id": topic, "versions": (3, 99), "always": True}
    with (
        kafka.fault("ApiVersions", error="UNSUPPORTED_VERSION", **rule) as fault,
        kafka.record() as log,
    ):
        assert send(producer(kafka, client_id=topic), topic, [b"x"]) == ["offset 0"]
    assert fault.hits
    assert 0 in {event.version for event in log.requests("ApiVersions", client_id=topic)}


def test_two_clusters_in_one_bootstrap_list_are_noticed(kafka: Kafka) -> None:
    """Brokers of two clusters in bootstrap.servers: the client warns of two cluster ids."""
    made, lines = logger("cluster ids")
    config = {"auto.create.topics.enable": False}
    with Kafka(config=config) as one, Kafka(config=config) as two:
        both = f"{one.bootstrap_servers},{two.bootstrap_servers}"
        two.broker().kill()
        given = one.client_config("confluent", "producer", logger=made)
        by = Producer(given | {"bootstrap.servers": both})
        by.list_topics(timeout=SECONDS)
        one.broker().kill()
        two.broker().start()
        by.list_topics(timeout=SECONDS)
        for _ in range(100):
            if any("reports different ClusterId" in line for line in lines.lines):
                return
            by.poll(0.02)
        raise AssertionError(lines.lines)


def test_a_rolling_restart_is_not_noticed(kafka: Kafka, topic: str) -> None:
    """Each broker stops and starts in turn: records before, during and after all arrive."""
    by = producer(kafka, enable_idempotence=True)
    settings = {"session.timeout.ms": 1_000, "heartbeat.interval.ms": 100}
    to = member(kafka, topic, topic, **settings)
    until_assigned(to, counts=[1])
    sent: list[bytes] = []
    for broker in kafka.brokers:
        broker.stop()
        sent.append(b"%d" % broker.node_id)
        assert send(by, topic, sent[-1:]) == [f"offset {len(sent) - 1}"]
        broker.start()
        sent.append(b"%d again" % broker.node_id)
        assert send(by, topic, sent[-1:]) == [f"offset {len(sent) - 1}"]
    found: list[bytes | None] = []
    while len(found) < len(sent):
        message = to.poll(SECONDS)
        assert message is not None
        if not message.error():
            found.append(message.value())
    assert found == sent


def test_a_broker_that_returns_is_used_again(kafka: Kafka, topic: str) -> None:
    """A broker goes and comes back: the client knows it again, without a new bootstrap."""
    by = admin(kafka)
    assert sorted(by.list_topics(timeout=SECONDS).brokers) == [1, 2, 3]
    kafka.broker(2).stop()
    kafka.broker(2).start()
    partition = kafka.partition(topic, 0)
    partition.move_to(2)
    assert send(producer(kafka), topic, [b"x"]) == ["offset 0"]
    assert sorted(by.list_topics(timeout=SECONDS).brokers) == [1, 2, 3]


def test_a_cluster_is_replaced_broker_by_broker() -> None:
    """New brokers join and the old ones leave: a client that knew only old ones goes on."""
    with Kafka(brokers=2, topics={"t": {"partitions": 1, "replication_factor": 2}}) as kafka:
        by = producer(kafka, topic_metadata_refresh_interval_ms=100)
        assert send(by, "t", [b"1"]) == ["offset 0"]
        for _ in range(2):
            kafka.cluster.add_broker()
        kafka.partition("t", 0).reassign([3, 4])
        kafka.partition("t", 0).move_to(3)
        assert send(by, "t", [b"2"]) == ["offset 1"]
        assert sorted(by.list_topics(timeout=SECONDS).brokers) == [1, 2, 3, 4]
        kafka.close_clients()


def test_brokers_that_exchange_their_addresses(kafka: Kafka, topic: str) -> None:
    """Two brokers change addresses: the client asks for metadata, and reaches the right ones."""
    by = producer(kafka, enable_idempotence=True)
    assert send(by, topic, [b"1"]) == ["offset 0"]
    leader = kafka.broker(kafka.partition(topic, 0).leader)
    other = kafka.broker(leader.node_id % 3 + 1)
    leader.swap_address(other)
    assert send(by, topic, [b"2"]) == ["offset 1"]
    leader.swap_address(other)


def test_a_client_starts_again_from_its_bootstrap_servers(kafka: Kafka, topic: str) -> None:
    """REBOOTSTRAP_REQUIRED: the client forgets its brokers, and begins with the bootstrap list."""
    made, lines = logger("bootstrap")
    made.setLevel(logging.DEBUG)
    settings = {"enable.idempotence": True, "debug": "generic"}
    by = producer(kafka, client_id=topic, logger=made, **settings)
    assert send(by, topic, [b"1"]) == ["offset 0"]
    with kafka.fault("Metadata", client_id=topic, error="REBOOTSTRAP_REQUIRED") as fault:
        try:
            by.list_topics(timeout=SECONDS)
        except KafkaException as raised:
            assert "rebootstrap" in raised.args[0].str()
        fault.wait()
    assert send(by, topic, [b"2"]) == ["offset 1"]
    by.poll(0)
    assert any("re-bootstrap" in line.lower() for line in lines.lines), lines.lines


def test_throttling_is_told(kafka: Kafka, topic: str) -> None:
    """A broker asks for a pause: the producer tells the application, and goes on."""
    told: list[Any] = []
    by = producer(kafka, throttle_cb=told.append)
    with kafka.fault("Produce", topic=topic, action="throttle", ms=20):
        send(by, topic, [b"x"])
    for _ in range(100):
        if told:
            break
        by.poll(0.02)
    assert told[0].throttle_time == pytest.approx(0.02)


def test_a_dead_cluster_is_told(kafka: Kafka) -> None:
    """A consumer of a cluster that is gone gets an error within its time-out, and can close."""
    with Kafka(topics={"t": 1}) as other:
        by = consumer(other)
        other.broker().kill()
        assert failure(by.list_topics, timeout=0.5).name() in ("_TRANSPORT", "_TIMED_OUT")
