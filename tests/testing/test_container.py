"""`KafkaContainer`: the methods, variables and life of testcontainers' class."""

from __future__ import annotations

import warnings

import pytest

from embedlog.errors import ConfigError, IllegalState
from embedlog.testing import KafkaContainer
from embedlog.testing.container import settings_of


def test_it_has_every_method_of_testcontainers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        real = pytest.importorskip("testcontainers.community.kafka").KafkaContainer
    container = KafkaContainer()
    names = {name for name in dir(real) if not name.startswith("_") and not name.isupper()}
    assert {"with_kraft", "get_bootstrap_server", "with_network"} <= names
    assert not [name for name in names if not hasattr(type(container), name)
                and not callable(getattr(container, name, None))]  # fmt: skip


def test_a_chain_of_settings_starts_a_cluster_that_a_client_reaches() -> None:
    import embedlog

    container = (
        KafkaContainer("apache/kafka:4.0.0", port=9092)
        .with_kraft()
        .with_env("KAFKA_NUM_PARTITIONS", "4")
        .with_envs(KAFKA_AUTO_CREATE_TOPICS_ENABLE="true", KAFKA_HEAP_OPTS="-Xmx1g")
        .with_cluster_id("AAAAAAAAAAAAAAAAAAAAAQ")
        .with_exposed_ports(9092, 9093)
        .with_network(object())
        .with_name("kafka")
        .waiting_for(object())
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        container.start()
    try:
        address = container.get_bootstrap_server()
        host, port = container.get_container_host_ip(), container.get_exposed_port(9092)
        assert address == f"{host}:{port}"
        with embedlog.Producer(address) as producer:
            producer.send("orders", b"x").result()
        assert container.kafka.admin().describe_topics(["orders"])["orders"].partitions[3:]
        assert container.kafka.cluster.cluster_id == "AAAAAAAAAAAAAAAAAAAAAQ"
        assert container.status == "running"
    finally:
        container.stop()
        container.stop()
    assert container.status == "exited"


def test_a_subclass_configures_itself_and_starts_again() -> None:
    class Mine(KafkaContainer):
        def configure(self) -> None:
            self.with_env("KAFKA_NUM_PARTITIONS", "5")

    container = Mine()
    for _ in range(2):
        with container as started:
            assert started is container
            assert started.kafka.create_topic("orders").partition_count == 5


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("KAFKA_LOG_RETENTION_MS", "log.retention.ms"),
        ("KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS", "group.initial.rebalance.delay.ms"),
        ("KAFKA_NODE_ID", "node.id"),
        ("KAFKA_BROKER_ID", "broker.id"),
    ],
)
def test_variables_are_settings(name: str, setting: str) -> None:
    assert settings_of({name: "7"}) == {setting: "7"}


def test_a_broker_id_that_lets_kafka_choose_is_left_out() -> None:
    assert settings_of({"KAFKA_BROKER_ID": "-1"}) == {}


@pytest.mark.parametrize(
    "name",
    [
        "KAFKA_LISTENERS",
        "KAFKA_ADVERTISED_LISTENERS",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
        "KAFKA_ZOOKEEPER_CONNECT",
        "KAFKA_PROCESS_ROLES",
        "KAFKA_CONTROLLER_QUORUM_VOTERS",
        "KAFKA_LOG_DIRS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_JMX_PORT",
        "CLUSTER_ID",
        "PATH",
    ],
)
def test_variables_without_a_meaning_are_left_out(name: str) -> None:
    assert settings_of({name: "7"}) == {}


def test_a_wrong_value_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        KafkaContainer().with_env("KAFKA_NUM_PARTITIONS", "many").start()


def test_calls_that_need_a_container_say_so() -> None:
    container = KafkaContainer()
    with pytest.raises(IllegalState, match="was not started"):
        container.get_bootstrap_server()
    with container, pytest.raises(ConfigError, match=r"kafka\.create_topic"):
        container.exec(["kafka-topics", "--list"])
    with pytest.raises(AttributeError, match="get_bootstrap_servers"):
        container.get_bootstrap_servers()


@pytest.mark.interop
@pytest.mark.parametrize("client", ["confluent", "kafka-python", "aiokafka"])
def test_each_client_reaches_it(client: str) -> None:
    with KafkaContainer() as container:
        address = container.get_bootstrap_server()
        assert _send_and_receive(client, address) == b"x"


def _send_and_receive(client: str, address: str) -> bytes | None:
    """Use a client as its documentation shows, without the settings of `client_config`."""
    if client == "confluent":
        from confluent_kafka import Consumer, Producer

        producer = Producer({"bootstrap.servers": address})
        producer.produce("orders", b"x")
        producer.flush(10)
        consumer = Consumer(
            {"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["orders"])
        found = consumer.poll(20)
        consumer.close()
        return found and found.value()
    if client == "kafka-python":
        from kafka import KafkaConsumer, KafkaProducer

        with KafkaProducer(bootstrap_servers=address) as sender:
            sender.send("orders", b"x").get(10)
        reader = KafkaConsumer(
            "orders", bootstrap_servers=address, group_id="g", auto_offset_reset="earliest"
        )
        value: bytes | None = next(reader).value
        reader.close()
        return value
    import asyncio

    return asyncio.run(_with_aiokafka(address))


async def _with_aiokafka(address: str) -> bytes | None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async with AIOKafkaProducer(bootstrap_servers=address) as producer:
        await producer.send_and_wait("orders", b"x")
    async with AIOKafkaConsumer(
        "orders", bootstrap_servers=address, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        value: bytes | None = (await consumer.getone()).value
        return value


@pytest.mark.parametrize("pattern", [r"\[KafkaServer id=\d+\] started", "Kafka Server started"])
def test_a_program_that_waits_for_the_log_goes_on(pattern: str) -> None:
    waiting = pytest.importorskip("testcontainers.core.waiting_utils")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with KafkaContainer() as container:
            assert waiting.wait_for_logs(container, pattern, timeout=0, interval=0) < 30
        with pytest.raises(TimeoutError):
            waiting.wait_for_logs(container, pattern, timeout=0, interval=0)


def test_it_has_no_zookeeper() -> None:
    assert KafkaContainer().with_kraft().kraft_enabled
