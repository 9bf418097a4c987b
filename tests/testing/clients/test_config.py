"""Settings of foreign clients: names, roles, values, misspelt names."""

from __future__ import annotations

import pytest

from embedlog.errors import ConfigError
from embedlog.testing import Kafka
from embedlog.testing.clients.config import client_config

ADDRESSES = "a:1,b:2"


def test_names_and_addresses_are_those_of_the_library() -> None:
    assert client_config("confluent", ADDRESSES)["bootstrap.servers"] == ADDRESSES
    assert client_config("librdkafka", ADDRESSES) == client_config("confluent", ADDRESSES)
    assert client_config("kafka-python", ADDRESSES)["bootstrap_servers"] == ["a:1", "b:2"]
    assert client_config("kafkajs", ADDRESSES)["brokers"] == ["a:1", "b:2"]
    assert client_config("franz-go", ADDRESSES)["SeedBrokers"] == ["a:1", "b:2"]


def test_a_group_makes_a_consumer() -> None:
    made = client_config("confluent", ADDRESSES, group_id="g")
    assert made["group.id"] == "g"
    assert made["auto.offset.reset"] == "earliest"
    assert "group.id" not in client_config("confluent", ADDRESSES, "consumer")
    # A parent object has the addresses.
    made = client_config("kafkajs", ADDRESSES, group_id="g")
    assert made["groupId"] == "g"
    assert "brokers" not in made


def test_given_settings_win_and_underscores_are_dots() -> None:
    made = client_config("confluent", ADDRESSES, "producer", linger_ms=7, **{"client.id": "x"})
    assert (made["linger.ms"], made["client.id"]) == (7, "x")
    made = client_config("java", ADDRESSES, "producer", enable_idempotence=False, linger_ms=7)
    assert (made["linger.ms"], made["enable.idempotence"]) == ("7", "false")
    assert client_config("aiokafka", ADDRESSES, "producer", linger_ms=7)["linger_ms"] == 7


def test_callbacks_of_confluent_kafka_keep_their_names() -> None:
    made = client_config("confluent", ADDRESSES, group_id="g", on_commit=print, error_cb=print)
    assert made["on_commit"] is made["error_cb"] is print


def test_a_member_of_the_new_protocol_has_no_heartbeat_interval() -> None:
    assert "heartbeat.interval.ms" in client_config("confluent", ADDRESSES, group_id="g")
    new = client_config("confluent", ADDRESSES, group_id="g", group_protocol="consumer")
    assert "heartbeat.interval.ms" not in new


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("kafkajz",), "did you mean 'kafkajs'"),
        (("zzz",), "known are 'aiokafka'"),
        (("confluent", "comsumer"), "did you mean 'consumer'"),
    ],
)
def test_misspelt_names_are_refused(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        client_config(arguments[0], ADDRESSES, *arguments[1:])


def test_a_group_is_refused_for_another_role() -> None:
    with pytest.raises(ConfigError, match="group_id='g' is for a consumer"):
        client_config("confluent", ADDRESSES, "producer", group_id="g")


def test_our_own_clients_take_their_settings() -> None:
    import embedlog

    with Kafka(topics={"orders": 1}) as kafka:
        for transport in (kafka.bootstrap_servers, kafka.cluster):
            settings = kafka.client_config("embedlog", "producer")
            if transport is kafka.cluster:
                settings = {"linger_ms": settings["linger_ms"]}
            else:
                assert settings.pop("bootstrap_servers") == transport
            with embedlog.Producer(transport, **settings) as producer:
                producer.send("orders", b"x").result()
        with embedlog.Consumer(**kafka.client_config("embedlog", group_id="g")) as consumer:
            consumer.subscribe(["orders"])
            found: list[bytes | None] = []
            while len(found) < 2:
                found.extend(each.value for each in consumer.poll(1_000))
        with embedlog.Admin(**kafka.client_config("embedlog", "admin")) as admin:
            assert "orders" in admin.list_topics()


class Client:
    def __init__(self, told: list[str]) -> None:
        self.told = told

    def stop(self) -> None:
        self.told.append("stopped")


def test_a_foreign_client_ends_before_the_cluster() -> None:
    told: list[str] = []
    kafka = Kafka()
    client = kafka.closing(Client(told))
    assert isinstance(client, Client)
    kafka.close()
    assert told == ["stopped"]


def test_a_client_that_cannot_be_closed_here_is_refused() -> None:
    class Asynchronous:
        async def stop(self) -> None: ...

    with Kafka() as kafka:
        with pytest.raises(ConfigError, match="its own event loop"):
            kafka.closing(Asynchronous())
        with pytest.raises(ConfigError, match="no method close, stop, flush"):
            kafka.closing(object())


def test_callbacks_of_confluent_keep_their_names() -> None:
    made = client_config("confluent", ADDRESSES, "producer", throttle_cb=print, on_delivery=print)
    assert made["throttle_cb"] is made["on_delivery"] is print
