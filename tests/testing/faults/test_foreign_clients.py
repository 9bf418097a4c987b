"""Fault rules with clients of other projects over sockets: confluent, kafka-python, aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from embedlog.testing import Kafka
from tests.testing.faults.conftest import Values

pytestmark = pytest.mark.interop

SECONDS_MAX = 30
Send = Callable[..., None]

CONFIG = {
    "group.min.session.timeout.ms": 100,
    "group.consumer.min.session.timeout.ms": 100,
    "group.consumer.session.timeout.ms": 1_000,
    "group.consumer.min.heartbeat.interval.ms": 20,
    "group.consumer.heartbeat.interval.ms": 100,
}


@pytest.fixture(params=[1, 3], ids=["one broker", "three brokers"])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with Kafka(brokers=request.param, topics={"t": 2}, config=CONFIG) as made:
        yield made


def send_confluent(address: str, value: bytes, *, idempotent: bool) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": address,
            "enable.idempotence": idempotent,
            "retry.backoff.ms": 10,
            "reconnect.backoff.ms": 10,
            "client.id": "foreign",
        }
    )
    failed: list[Any] = []
    producer.produce("t", value, partition=0, on_delivery=lambda e, _: e and failed.append(e))
    assert producer.flush(SECONDS_MAX) == 0
    assert not failed, failed


def send_kafka_python(address: str, value: bytes, *, idempotent: bool) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=address,
        enable_idempotence=idempotent,
        retry_backoff_ms=10,
        reconnect_backoff_ms=10,
        client_id="foreign",
        **({} if idempotent else {"acks": "all", "retries": 5}),
    )
    producer.send("t", value, partition=0).get(SECONDS_MAX)
    producer.close()


def send_aiokafka(address: str, value: bytes, *, idempotent: bool) -> None:
    from aiokafka import AIOKafkaProducer

    async def main() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=address,
            enable_idempotence=idempotent,
            retry_backoff_ms=10,
            acks="all",
            client_id="foreign",
        )
        await producer.start()
        await asyncio.wait_for(producer.send_and_wait("t", value, partition=0), SECONDS_MAX)
        await producer.stop()

    asyncio.run(main())


SENDERS = {
    "confluent": send_confluent,
    "kafka-python": send_kafka_python,
    "aiokafka": send_aiokafka,
}


@pytest.fixture(params=SENDERS)
def send(request: pytest.FixtureRequest) -> Send:
    return SENDERS[request.param]


@pytest.mark.parametrize(
    "error",
    ["NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR"],
)
def test_producers_repeat_after_a_retriable_error(
    kafka: Kafka, values: Values, send: Send, error: str
) -> None:
    with kafka.fault("Produce", topic="t", client_id="foreign", error=error, times=2) as fault:
        send(kafka.bootstrap_servers, b"x", idempotent=True)
    assert fault.hits == 2
    assert values() == [b"x"]


@pytest.mark.parametrize("action", ["cut-after-apply", "truncate"])
def test_a_lost_answer_gives_one_record_with_idempotence_and_two_without(
    kafka: Kafka, values: Values, send: Send, action: Any
) -> None:
    with kafka.fault("Produce", topic="t", action=action) as fault:
        send(kafka.bootstrap_servers, b"once", idempotent=True)
    assert fault.hits == 1
    with kafka.fault("Produce", topic="t", action=action):
        send(kafka.bootstrap_servers, b"twice", idempotent=False)
    assert values() == [b"once", b"twice", b"twice"]


def test_a_cut_before_the_work_and_a_delay_give_one_record(
    kafka: Kafka, values: Values, send: Send
) -> None:
    with (
        kafka.fault("Produce", topic="t", action="cut", times=2),
        kafka.fault("Produce", topic="t", action="delay", seconds=0.1),
        kafka.fault("InitProducerId", error="COORDINATOR_LOAD_IN_PROGRESS"),
    ):
        send(kafka.bootstrap_servers, b"x", idempotent=True)
    assert values() == [b"x"]


# Groups


def confluent_consumer(address: str, client_id: str, protocol: str = "classic") -> Any:
    from confluent_kafka import Consumer

    settings: dict[str, Any] = {
        "bootstrap.servers": address,
        "group.id": "g",
        "client.id": client_id,
        "auto.offset.reset": "earliest",
        "retry.backoff.ms": 10,
        "reconnect.backoff.ms": 10,
        "group.protocol": protocol,
    }
    if protocol == "classic":
        settings |= {"session.timeout.ms": 1_000, "heartbeat.interval.ms": 100}
    return Consumer(settings)


def consume_confluent(address: str, count: int, protocol: str = "classic") -> list[bytes]:
    consumer = confluent_consumer(address, "foreign", protocol)
    consumer.subscribe(["t"])
    found: list[bytes] = []
    while len(found) < count:
        message = consumer.poll(SECONDS_MAX)
        assert message is not None
        if message.error() is None:
            found.append(message.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def consume_kafka_python(address: str, count: int) -> list[bytes]:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=address,
        group_id="g",
        auto_offset_reset="earliest",
        retry_backoff_ms=10,
        reconnect_backoff_ms=10,
        client_id="foreign",
        session_timeout_ms=3_000,
        heartbeat_interval_ms=100,
    )
    found: list[bytes] = []
    while len(found) < count:
        for records in consumer.poll(1_000).values():
            found += [record.value for record in records]
    consumer.commit()
    consumer.close()
    return found


def consume_aiokafka(address: str, count: int) -> list[bytes]:
    from aiokafka import AIOKafkaConsumer

    async def main() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            "t",
            bootstrap_servers=address,
            group_id="g",
            auto_offset_reset="earliest",
            retry_backoff_ms=10,
            client_id="foreign",
            session_timeout_ms=3_000,
            heartbeat_interval_ms=100,
        )
        await consumer.start()
        found = []
        while len(found) < count:
            record = await asyncio.wait_for(consumer.getone(), SECONDS_MAX)
            found.append(record.value)
        await consumer.commit()
        await consumer.stop()
        return found

    return asyncio.run(main())


CONSUMERS: dict[str, Callable[[str, int], list[bytes]]] = {
    "confluent": consume_confluent,
    "confluent-848": lambda address, count: consume_confluent(address, count, "consumer"),
    "kafka-python": consume_kafka_python,
    "aiokafka": consume_aiokafka,
}


@pytest.fixture(params=CONSUMERS)
def consume(request: pytest.FixtureRequest) -> Callable[[str, int], list[bytes]]:
    return CONSUMERS[request.param]


@pytest.mark.parametrize("name", ["no_coordinator", "coordinator_moves", "coordinator_loads"])
def test_members_find_their_coordinator_again(
    kafka: Kafka, consume: Callable[[str, int], list[bytes]], name: str
) -> None:
    kafka.producer().send("t", b"x", partition=0).result()
    with getattr(kafka.faults, name)(group="g", times=2) as fault:
        assert consume(kafka.bootstrap_servers, 1) == [b"x"]
    assert fault.hits == 2


def test_consumers_go_on_after_errors_of_fetches(
    kafka: Kafka, consume: Callable[[str, int], list[bytes]]
) -> None:
    kafka.producer().send("t", b"x", partition=0).result()
    with (
        kafka.faults.leader_moves(topic="t", partition=0, client_id="foreign", times=2) as moves,
        kafka.fault("Fetch", client_id="foreign", action="cut", may_miss=True),
        kafka.fault("ListOffsets", topic="t", error="LEADER_NOT_AVAILABLE", may_miss=True),
    ):
        assert consume(kafka.bootstrap_servers, 1) == [b"x"]
    assert moves.hits == 2


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_whose_requests_vanish_is_expelled_and_comes_back(
    kafka: Kafka, protocol: str
) -> None:
    address = kafka.bootstrap_servers
    members = [confluent_consumer(address, name, protocol) for name in ("w-1", "w-2")]
    first, second = members

    def until(condition: Callable[[], bool], *polled: Any) -> None:
        for _ in range(SECONDS_MAX * 10):
            if condition():
                return
            for each in polled:
                each.poll(0.05)
        raise AssertionError("the assignment did not come")

    for each in members:
        each.subscribe(["t"])
    until(lambda: len(first.assignment()) == len(second.assignment()) == 1, *members)
    with kafka.blackhole(client_id="w-2") as hole:
        hole.wait()
        until(lambda: len(first.assignment()) == 2, first)
    until(lambda: len(first.assignment()) == len(second.assignment()) == 1, *members)
    for each in members:
        each.close()


def test_metadata_that_is_stale_once_does_not_stop_a_producer(send: Send) -> None:
    topics = {"t": {"partitions": 1, "replication_factor": 3}}
    with Kafka(brokers=3, topics=topics) as kafka:
        stale = kafka.fault("Metadata", action="stale-metadata", client_id="foreign", times=2)
        place = kafka.partition("t", 0)
        place.move_to(1 + (place.leader or 0) % 3)
        send(kafka.bootstrap_servers, b"x", idempotent=True)
        assert stale.hits
        assert set(place.end_offsets.values()) == {1}


def test_a_transaction_outlasts_lost_answers_and_busy_coordinators(kafka: Kafka) -> None:
    from confluent_kafka import Producer

    settings = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "transactional.id": "tx",
        "retry.backoff.ms": 10,
        "reconnect.backoff.ms": 10,
    }
    faults = [
        kafka.fault("FindCoordinator", transactional_id="tx", error="COORDINATOR_NOT_AVAILABLE"),
        kafka.fault("InitProducerId", transactional_id="tx", error="NOT_COORDINATOR"),
        kafka.faults.transaction_ends_slowly(transactional_id="tx", nth=2),
        kafka.fault("Produce", transactional_id="tx", action="cut-after-apply"),
        kafka.fault("EndTxn", transactional_id="tx", action="cut-after-apply"),
    ]
    producer = Producer(settings)
    producer.init_transactions(SECONDS_MAX)
    for value in (b"first", b"second"):
        producer.begin_transaction()
        producer.produce("t", value, partition=0)
        producer.commit_transaction(SECONDS_MAX)
    assert [fault.hits for fault in faults] == [1, 1, 1, 1, 1]
    consumer = kafka.consumer(isolation_level="read_committed")
    consumer.assign([("t", 0)])
    consumer.seek_to_beginning(("t", 0))
    found: list[bytes] = []
    while len(found) < 2:
        found += [record.value for record in consumer.poll(1_000)]
    assert found == [b"first", b"second"]
