"""Producing: retries, duplicates, limits and refusals."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from embedlog.testing import rec

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.kafka(topics={"orders": 1})
def test_a_retriable_error(kafka, service):
    """A write is refused for a while

    The broker answers twice with a retriable error. The service has to send again. A rule that
    never acts fails the test, and `hits` says how often it has acted.
    """
    with kafka.fault("Produce", topic="orders", error="NOT_ENOUGH_REPLICAS", times=2) as fault:
        service.send("orders", b"order 1")
    assert fault.hits == 2
    assert kafka.topic("orders").values() == [b"order 1"]


@pytest.mark.kafka(topics={"orders": 1})
def test_the_answer_is_lost(kafka, service):
    """The answer is lost after the append

    The broker writes the record, and the connection breaks before the answer. An idempotent
    producer sends it again, and the broker knows it already.
    """
    with kafka.faults.lost_acknowledgement(topic="orders") as fault:
        service.send("orders", b"order 1")
    assert fault.hits == 1
    assert kafka.topic("orders").values() == [b"order 1"]


@pytest.mark.kafka(topics={"orders": 1})
def test_a_duplicate(kafka, service):
    """The answer is lost, without idempotence

    Without idempotence the record is there twice. Does your consumer cope with that?
    """
    with kafka.fault("Produce", topic="orders", action="cut-after-apply"):
        service.send("orders", b"order 1", idempotent=False)
    assert kafka.topic("orders").values() == [b"order 1", b"order 1"]


@pytest.mark.kafka(topics={"orders": 1})
def test_a_slow_broker(kafka):
    """A slow broker and a time-out

    The broker needs longer than `message.timeout.ms`. The producer reports an error, although the
    record is in the log: a failed send may have succeeded.
    """
    settings = kafka.client_config("confluent", "producer", message_timeout_ms=300)
    producer, failed = kafka.closing(Producer(settings)), []
    with kafka.fault("Produce", topic="orders", action="delay", seconds=60, after_apply=True):
        producer.produce("orders", b"order 1", on_delivery=lambda error, _: failed.append(error))
        producer.flush(30)
    assert failed[0].name() == "_MSG_TIMED_OUT"
    assert kafka.topic("orders").values() == [b"order 1"]


@pytest.mark.kafka(topics={"orders": 1})
def test_a_hanging_connection(kafka):
    """A connection that hangs

    The broker never answers one request. After `socket.timeout.ms` the producer connects again.
    """
    settings = kafka.client_config(
        "confluent", "producer", socket_timeout_ms=300, enable_idempotence=True
    )
    producer = kafka.closing(Producer(settings))
    with kafka.fault("Produce", topic="orders", action="hang") as fault:
        producer.produce("orders", b"order 1")
        assert producer.flush(30) == 0
    assert fault.hits == 1
    assert kafka.topic("orders").values() == [b"order 1"]


@pytest.mark.kafka(topics={"orders": 1})
def test_throttling(kafka):
    """The broker throttles a client

    The answer carries a throttle time, as it does when a quota is exceeded.
    """
    told = []
    settings = kafka.client_config("confluent", "producer", throttle_cb=told.append)
    producer = kafka.closing(Producer(settings))
    with kafka.fault("Produce", topic="orders", action="throttle", ms=150):
        producer.produce("orders", b"order 1")
        producer.flush(30)
        producer.poll(0)
    assert [round(each.throttle_time, 2) for each in told] == [0.15]


@pytest.mark.kafka(topics={"orders": 1})
def test_backpressure(kafka):
    """Backpressure

    Requests are held at the broker, so the producer's queue fills. The service has to slow down,
    and nothing is lost when the broker goes on.
    """
    settings = kafka.client_config("confluent", "producer", queue_buffering_max_messages=10)
    producer = kafka.closing(Producer(settings))
    with kafka.hold("Produce", topic="orders") as hold:
        for number in range(10):
            producer.produce("orders", b"%d" % number)
        with pytest.raises(BufferError):
            producer.produce("orders", b"one too many")
        hold.wait()
    assert producer.flush(30) == 0
    assert kafka.topic("orders").values() == [b"%d" % number for number in range(10)]


@pytest.mark.kafka(config={"auto.create.topics.enable": False})
def test_a_missing_topic(kafka):
    """A topic is missing

    Without `auto.create.topics.enable` the broker creates nothing, and the producer gives up.
    """
    settings = kafka.client_config("confluent", "producer", topic_metadata_propagation_max_ms=100)
    producer, failed = kafka.closing(Producer(settings)), []
    producer.produce("ordres", b"order 1", on_delivery=lambda error, _: failed.append(error))
    producer.flush(30)
    assert failed[0].name() in ("_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART")


@pytest.mark.kafka(config={"auto.create.topics.enable": False})
def test_a_late_topic(kafka, consumer, producer):
    """A topic is created late

    Producer and consumer start before the topic exists, and find it when it is there.
    """
    reader = consumer(topic_metadata_refresh_interval_ms=100)
    reader.subscribe(["orders"])
    producer.produce("orders", b"order 1")
    kafka.wait.request("Metadata")
    kafka.create_topic("orders", 1)
    assert producer.flush(30) == 0
    message = reader.poll(30)
    while message.error():  # an earlier look-up found no topic
        message = reader.poll(30)
    assert message.value() == b"order 1"


@pytest.mark.kafka(topics={"orders": 3})
def test_order_by_key(kafka, service):
    """The order of one key

    Records of a key are in one partition, in the order of sending.
    """
    for customer in (b"ann", b"bob"):
        service.send("orders", b"0", b"1", b"2", key=customer)
    for customer in (b"ann", b"bob"):
        records = kafka.topic("orders").records(rec(key=customer))
        assert [each.value for each in records] == [b"0", b"1", b"2"]
        assert len({each.partition for each in records}) == 1


@pytest.mark.kafka(topics={"orders": 1})
def test_headers(kafka, producer):
    """Headers

    A pattern, a function or `any_` may stand for a value.
    """
    with kafka.assert_produces("orders", count=1) as new:
        producer.produce("orders", b"order 1", headers={"trace": b"7f", "source": b"shop"})
        producer.flush(30)
    assert new[0].header("trace") == b"7f"
    assert kafka.topic("orders") == [rec(value=b"order 1", headers={"source": "shop"})]


@pytest.mark.kafka(topics={"orders": 1})
def test_seek_by_time(kafka):
    """Timestamps, and a search by time

    `put` writes any timestamp. The consumer looks for the first record from a time on.
    """
    now = kafka.clock.now_ms
    for age in (3_000, 2_000, 1_000):
        kafka.topic("orders").put(f"{age} old", timestamp=now - age)
    consumer = kafka.closing(Consumer(kafka.client_config("confluent", group_id="billing")))
    (found,) = consumer.offsets_for_times([TopicPartition("orders", 0, now - 2_500)], timeout=30)
    assert found.offset == 1


@pytest.mark.kafka(topics={"orders": {"partitions": 1, "config": {"max.message.bytes": 1000}}})
def test_a_large_record(kafka, service):
    """A record is too large

    The topic refuses it, and retries do not help.
    """
    with pytest.raises(Exception, match=r"(?i)large"):
        service.send("orders", b"x" * 2_000)
    assert len(kafka.topic("orders")) == 0


@pytest.mark.kafka(topics={"orders": 1})
def test_no_permission(kafka, producer):
    """The service may not write

    The fake has no permissions, but it gives the answer.
    """
    failed = []
    with kafka.faults.not_authorized(topic="orders", always=True):
        producer.produce("orders", b"order 1", on_delivery=lambda error, _: failed.append(error))
        producer.flush(30)
    assert failed[0].name() == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.kafka(topics={"orders": 1})
def test_a_refused_schema(kafka):
    """A schema is refused

    The new schema has a field without a default, which old readers' data lacks.
    """
    from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    first = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
    kafka.registry.register("orders-value", first)
    wider = str({**first, "fields": [*first["fields"], {"name": "sum", "type": "int"}]})
    registry = SchemaRegistryClient(kafka.registry.client_config("confluent"))
    serializer = AvroSerializer(registry, wider.replace("'", '"'))
    with pytest.raises(SchemaRegistryError) as refused:
        serializer({"id": 1, "sum": 2}, SerializationContext("orders", MessageField.VALUE))
    assert refused.value.http_status_code == 409


def test_the_registry_is_down(kafka):
    """The schema registry is down

    It answers twice that it is not available, and the client asks again.
    """
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

    settings = {"max.retries": 3, "retries.wait.ms": 1, "retries.max.wait.ms": 1}
    registry = SchemaRegistryClient({**kafka.registry.client_config("confluent"), **settings})
    with kafka.registry.fault("register", status=503, times=2) as fault:
        registry.register_schema("orders-value", Schema('{"type": "string"}', "AVRO"))
    assert fault.hits == 2
    assert kafka.registry.subjects() == ["orders-value"]
