"""Actions: each with clients in this process and over TCP, at one broker and at several."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import embedlog
from embedlog import errors
from embedlog.testing import Kafka
from tests.testing.faults.conftest import Values

MakeProducer = Callable[..., embedlog.Producer]


@pytest.fixture(params=["alone in process", "alone tcp", "several in process", "several tcp"])
def way(request: pytest.FixtureRequest) -> str:
    way: str = request.param
    return way


@pytest.fixture
def kafka(way: str) -> Iterator[Kafka]:
    brokers = 3 if way.startswith("several") else 1
    with Kafka(brokers=brokers, topics={"t": 1, "other": 1}) as made:
        yield made


@pytest.fixture
def producer(kafka: Kafka, way: str) -> Iterator[MakeProducer]:
    made: list[embedlog.Producer] = []

    def make(**settings: object) -> embedlog.Producer:
        target = kafka.bootstrap_servers if way.endswith("tcp") else kafka.cluster
        client = embedlog.Producer(target, **_quick(way), **settings)
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
def consumer(kafka: Kafka, way: str) -> Iterator[embedlog.Consumer]:
    target = kafka.bootstrap_servers if way.endswith("tcp") else kafka.cluster
    with embedlog.Consumer(target, auto_offset_reset="earliest", **_quick(way)) as made:
        made.assign([("t", 0)])
        yield made


def _quick(way: str) -> dict[str, int]:
    """Return settings for repetitions without pauses."""
    backoff = {"retry_backoff_ms": 1}
    return backoff | {"reconnect_backoff_ms": 1} if way.endswith("tcp") else backoff


def poll_one(consumer: embedlog.Consumer) -> bytes:
    for _ in range(100):
        for record in consumer.poll(1_000):
            return record.value
    raise AssertionError("no record")


def test_a_retriable_error_is_met_twice_and_then_the_record_is_there(
    kafka: Kafka, producer: MakeProducer, values: Values
) -> None:
    client = producer()
    with kafka.fault("Produce", topic="t", error="NOT_ENOUGH_REPLICAS", times=2) as fault:
        client.send("t", b"x").result()
    assert (fault.hits, fault.seen) == (2, 3)
    assert values() == [b"x"]


def test_a_fatal_error_reaches_the_program(kafka: Kafka, producer: MakeProducer) -> None:
    with (
        kafka.fault("Produce", topic="t", error=errors.TopicAuthorizationFailed("no, not you")),
        pytest.raises(errors.TopicAuthorizationFailed),
    ):
        producer().send("t", b"x").result()


def test_an_error_after_the_append_leaves_the_record_in_the_log(
    kafka: Kafka, producer: MakeProducer, values: Values
) -> None:
    client = producer(retries=0, enable_idempotence=False)
    with (
        kafka.fault("Produce", error="NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
        pytest.raises(errors.NotEnoughReplicasAfterAppend),
    ):
        client.send("t", b"by the table").result()
    with (
        kafka.fault("Produce", error="INVALID_RECORD", after_apply=True),
        pytest.raises(errors.InvalidRecord),
    ):
        client.send("t", b"on request").result()
    with (
        kafka.fault("Produce", error="REQUEST_TIMED_OUT", after_apply=False),
        pytest.raises(errors.RequestTimedOut),
    ):
        client.send("t", b"not at all").result()
    assert values() == [b"by the table", b"on request"]


@pytest.mark.parametrize("action", ["cut-after-apply", "truncate"])
def test_a_lost_answer_gives_one_record_with_idempotence_and_two_without(
    kafka: Kafka, producer: MakeProducer, values: Values, action: str
) -> None:
    client = producer(enable_idempotence=True)
    with kafka.fault("Produce", topic="t", action=action) as fault:
        client.send("t", b"once").result()
    assert (fault.hits, fault.seen) == (1, 2)
    client = producer(enable_idempotence=False, retries=5)
    with kafka.fault("Produce", topic="t", action=action) as fault:
        client.send("t", b"twice").result()
    assert values() == [b"once", b"twice", b"twice"]


def test_a_cut_before_the_work_is_repeated(
    kafka: Kafka, producer: MakeProducer, values: Values
) -> None:
    client = producer(enable_idempotence=False, retries=5)
    with kafka.fault("Produce", topic="t", action="cut", times=2) as fault:
        client.send("t", b"x").result()
    assert fault.hits == 2
    assert values() == [b"x"]


def test_a_request_without_answer_is_cut_before_and_after_the_work(
    kafka: Kafka, producer: MakeProducer, values: Values
) -> None:
    client = producer(acks=0, enable_idempotence=False, retries=0)
    with kafka.fault("Produce", action="cut-after-apply") as fault:
        client.send("t", b"done")
        fault.wait()
    client = producer(acks=0, enable_idempotence=False, retries=0)
    with kafka.fault("Produce", action="cut") as fault:
        client.send("t", b"lost")
        fault.wait()
    with kafka.fault("Produce", error="NOT_LEADER_OR_FOLLOWER") as fault:
        producer(acks=0, enable_idempotence=False, retries=0).send("t", b"refused")
        fault.wait()
    assert values() == [b"done"]


def test_a_delayed_request_waits_and_others_do_not(
    kafka: Kafka, producer: MakeProducer, values: Values
) -> None:
    client, other = producer(), producer()
    with kafka.fault("Produce", topic="t", action="delay", seconds=0.2) as fault:
        future = client.send("t", b"late")
        fault.wait()
        other.send("other", b"x").result()
        assert not values("t")
        future.result()
    assert values() == [b"late"]


def test_a_delayed_answer_comes_after_the_work(
    kafka: Kafka, producer: MakeProducer, values: Values
) -> None:
    client = producer()
    delay = kafka.fault("Produce", action="delay", seconds=0.2, after_apply=True)
    future = client.send("t", b"x")
    delay.wait()
    assert values() == [b"x"]
    future.result()


def test_a_hanging_request_breaks_at_the_end_of_its_rule(
    kafka: Kafka, producer: MakeProducer, values: Values
) -> None:
    client = producer()
    with kafka.fault("Produce", action="hang") as fault:
        future = client.send("t", b"x")
        fault.wait()
        assert not future.done()
    future.result()  # the client has repeated it
    assert values() == [b"x"]


def test_a_throttled_answer_tells_the_client(
    kafka: Kafka, producer: MakeProducer, values: Values
) -> None:
    with kafka.fault("Produce", action="throttle", ms=1):
        producer().send("t", b"x").result()
    assert values() == [b"x"]


def test_corrupt_records_are_noticed_by_consumers_and_refused_from_producers(
    kafka: Kafka, producer: MakeProducer, consumer: embedlog.Consumer
) -> None:
    with kafka.fault("Produce", topic="t", action="corrupt-crc") as fault:
        producer().send("t", b"x").result()
    assert fault.hits == 1
    with (
        kafka.fault("Fetch", topic="t", action="corrupt-crc") as fault,
        pytest.raises(errors.EmbedlogError, match="crc 0x"),
    ):
        poll_one(consumer)
    assert fault.hits == 1
    consumer.seek(("t", 0), 0)
    assert poll_one(consumer) == b"x"


def test_a_fetch_meets_an_error_at_its_partition_and_goes_on(
    kafka: Kafka, producer: MakeProducer, consumer: embedlog.Consumer
) -> None:
    producer().send("t", b"x").result()
    with kafka.fault("Fetch", topic="t", partition=0, error="NOT_LEADER_OR_FOLLOWER", times=3) as f:
        assert poll_one(consumer) == b"x"
    assert f.hits == 3


def test_an_answer_of_the_test_reaches_the_client(kafka: Kafka, producer: MakeProducer) -> None:
    def moved(request: object, response: object) -> object:
        from embedlog.testing.faults.messages import changed

        assert type(request).__name__ == "ProduceRequest"
        [topic] = response.responses  # type: ignore[attr-defined]
        [partition] = topic.partition_responses
        partition = changed(partition, base_offset=partition.base_offset + 100)
        return changed(response, responses=[changed(topic, partition_responses=[partition])])

    with kafka.fault("Produce", answer=moved):
        assert producer().send("t", b"x").result().offset == 100


def test_an_error_of_a_function_is_raised_by_its_rule(kafka: Kafka, producer: MakeProducer) -> None:
    client = producer()
    with (
        pytest.raises(ZeroDivisionError),
        kafka.fault("Produce", answer=lambda _request, _response: 1 / 0),
    ):
        client.send("t", b"x").result()
    with (
        pytest.raises(TypeError, match="expected a ProduceResponse"),
        kafka.fault("Produce", answer=lambda _request, _response: None),
    ):
        client.send("t", b"x").result()
    with (
        pytest.raises(ZeroDivisionError),
        kafka.fault("Produce", where=lambda _request: 1 / 0, error=1),
    ):
        client.send("t", b"x").result()


def test_rules_outlive_a_restart_of_the_broker(
    kafka: Kafka, producer: MakeProducer, way: str
) -> None:
    if way.startswith("alone"):
        pytest.skip("a lone broker does not restart")
    fault = kafka.fault("Produce", topic="t", error="NOT_ENOUGH_REPLICAS")
    for node in kafka.brokers:
        node.stop()
        node.start()
    producer().send("t", b"x").result()
    assert fault.hits == 1
