"""Named faults: clients in this process meet each of them and go on, or report it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog import errors
from embedlog.testing import Kafka
from tests.testing.faults.conftest import Values


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka(topics={"t": 1}) as made:
        yield made


def consume(kafka: Kafka, count: int, protocol: str = "classic") -> list[bytes]:
    """Return values that a member of the group "g" reads and commits."""
    settings = {"group_protocol": protocol, "auto_offset_reset": "earliest", "retry_backoff_ms": 1}
    if protocol == "classic":
        settings["heartbeat_interval_ms"] = 10
    found: list[bytes] = []
    with kafka.consumer(group_id="g", **settings) as consumer:
        consumer.subscribe(["t"])
        while len(found) < count:
            found += [record.value for record in consumer.poll(100)]
        consumer.commit()
    return found


@pytest.mark.parametrize(
    "name", ["not_enough_replicas", "lost_acknowledgement", "append_timed_out", "disk_fails"]
)
def test_a_producer_repeats(kafka: Kafka, values: Values, name: str) -> None:
    producer = kafka.producer(enable_idempotence=True, retry_backoff_ms=1)
    with getattr(kafka.faults, name)(topic="t", times=2) as fault:
        producer.send("t", b"x").result()
    assert fault.hits == 2
    assert values() == [b"x"]


def test_a_leader_moves_and_a_topic_is_unknown_for_a_while(kafka: Kafka) -> None:
    producer = kafka.producer(retry_backoff_ms=1)
    with kafka.faults.topic_unknown(topic="t"), kafka.faults.leader_moves(topic="t", partition=0):
        producer.send("t", b"x").result()
    with kafka.faults.leader_moves(topic="t"):
        assert consume(kafka, 1) == [b"x"]
    with (
        kafka.faults.not_authorized(topic="t"),
        pytest.raises(errors.TopicAuthorizationFailed),
    ):
        producer.send("t", b"x").result()
    with kafka.faults.producer_forgotten(topic="t"), pytest.raises(errors.KafkaError):
        kafka.producer(enable_idempotence=False, retries=0).send("t", b"x").result()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(
    "name", ["coordinator_moves", "coordinator_loads", "no_coordinator", "offsets_unstable"]
)
def test_a_member_of_a_group_goes_on(kafka: Kafka, name: str, protocol: str) -> None:
    kafka.producer().send("t", b"x").result()
    with getattr(kafka.faults, name)(group="g") as fault:
        assert consume(kafka, 1, protocol) == [b"x"]
    assert fault.hits == 1


def test_a_member_joins_again_and_commits_too_late(kafka: Kafka) -> None:
    kafka.producer().send("t", b"x").result()
    settings = {"heartbeat_interval_ms": 5, "retry_backoff_ms": 1, "auto_offset_reset": "earliest"}
    with kafka.consumer(group_id="g", **settings) as consumer:
        consumer.subscribe(["t"])
        while not consumer.poll(100):
            pass
        with kafka.faults.rebalance_begins(group="g") as fault:
            while not fault.hits:
                consumer.poll(10)
        kafka.producer().send("t", b"y").result()
        while not consumer.poll(100):
            pass
        with kafka.faults.commit_too_late(group="g"), pytest.raises(errors.EmbedlogError):
            consumer.commit()


def test_transactions_are_slow_or_fenced(kafka: Kafka) -> None:
    producer = kafka.producer(transactional_id="tx", retry_backoff_ms=1)
    with kafka.faults.transaction_ends_slowly(transactional_id="tx", times=2) as fault:
        producer.init_transactions()
        with producer.transaction():
            producer.send("t", b"x")
        assert fault.hits == 2
    with (
        kafka.faults.producer_fenced(transactional_id="tx"),
        pytest.raises((errors.ProducerFenced, errors.InvalidProducerEpoch)),
        producer.transaction(),
    ):
        producer.send("t", b"y")


def test_presets_refuse_misspelt_arguments(kafka: Kafka) -> None:
    with pytest.raises(errors.ConfigError, match="did you mean 'group'"):
        kafka.faults.coordinator_moves(grup="g")  # type: ignore[call-arg]
