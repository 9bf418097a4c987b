"""Serializers and deserializers: one rule for keys and values, on both sides."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import embedlog
from embedlog.client.errors import RecordUnreadable, SerializationError
from embedlog.errors import ConfigError


class Tagged:
    """Writes the topic before the text, and takes it off."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def configure(self, settings: dict[str, Any], is_key: bool) -> None:
        self.calls.append(("configure", settings["client.id"], is_key))

    def serialize(self, topic: str, value: str) -> bytes:
        self.calls.append(("serialize", topic, value))
        return f"{topic}:{value}".encode()

    def deserialize(self, topic: str, data: bytes) -> str:
        self.calls.append(("deserialize", topic, data))
        return data.decode().removeprefix(f"{topic}:")

    def close(self) -> None:
        self.calls.append(("close",))


def _read(cluster: Any, topic: str, **settings: Any) -> list[tuple[Any, Any]]:
    with cluster.consumer(**settings) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        return [(record.key, record.value) for record in consumer.poll(1000)]


@pytest.fixture(params=["in process", "over TCP"])
def target(request: pytest.FixtureRequest) -> Any:
    with embedlog.open() as cluster:
        if request.param == "in process":
            yield cluster
        else:
            yield cluster.listen("127.0.0.1", 0).address


def test_none_is_never_given_to_a_serializer_or_deserializer(target: Any) -> None:
    asked: list[Any] = []

    def serialize(value: str) -> bytes:
        asked.append(value)
        return value.encode()

    def deserialize(data: bytes) -> str:
        asked.append(data)
        return data.decode()

    with embedlog.Producer(target, key_serializer=serialize, value_serializer=serialize) as p:
        p.send("t", None, None).result()
        p.send("t", "v", None).result()
        p.send("t", None, "k").result()
        p.send_batch("t", [None, "w"], keys=["l", None]).result()
    assert sorted(asked) == ["k", "l", "v", "w"]
    asked.clear()
    settings: Any = {"key_deserializer": deserialize, "value_deserializer": deserialize}
    with embedlog.Consumer(target, **settings) as consumer:
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        found: list[Any] = []
        while len(found) < 5:
            found += [(record.key, record.value) for record in consumer.poll(1000)]
    assert found == [(None, None), (None, "v"), ("k", None), ("l", None), (None, "w")]
    assert sorted(asked) == [b"k", b"l", b"v", b"w"]


def test_an_object_is_given_the_topic_configured_once_and_closed(target: Any) -> None:
    key, value = Tagged(), Tagged()
    settings: Any = {"key_serializer": key, "value_serializer": value, "client_id": "me"}
    with embedlog.Producer(target, **settings) as producer:
        producer.send("t", "v", "k").result()
        producer.send_batch("t", ["w"]).result()
    assert key.calls == [("configure", "me", True), ("serialize", "t", "k"), ("close",)]
    assert value.calls == [
        ("configure", "me", False),
        ("serialize", "t", "v"),
        ("serialize", "t", "w"),
        ("close",),
    ]
    both = Tagged()
    reading: Any = {"key_deserializer": both, "value_deserializer": both, "client_id": "me"}
    with embedlog.Consumer(target, **reading) as consumer:
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        found: list[Any] = []
        while len(found) < 2:
            found += [(record.key, record.value) for record in consumer.poll(1000)]
    assert found == [("k", "v"), (None, "w")]
    assert both.calls == [
        ("configure", "me", True),
        ("configure", "me", False),
        ("deserialize", "t", b"t:k"),
        ("deserialize", "t", b"t:v"),
        ("deserialize", "t", b"t:w"),
        ("close",),
    ]


def test_a_class_of_serializers_is_called_without_arguments() -> None:
    with embedlog.open() as cluster:
        with cluster.producer(value_serializer=Tagged) as producer:
            producer.send("t", "v").result()
        assert _read(cluster, "t", value_deserializer=Tagged) == [(None, "v")]


def test_what_close_raises_is_logged_and_the_client_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Sticky(Tagged):
        def close(self) -> None:
            raise ValueError("not yet")

    with embedlog.open() as cluster, caplog.at_level(logging.WARNING, "embedlog"):
        cluster.producer(value_serializer=Sticky()).close()
    assert "Sticky: close raised" in caplog.text


def test_a_serializer_that_fails_is_named_with_the_topic() -> None:
    def refuse(value: Any) -> bytes:
        raise ValueError("no")

    with embedlog.open() as cluster, cluster.producer(key_serializer=refuse) as producer:
        pattern = r"key\.serializer refused a int for topic 't': .*test_serializers.*refuse.* key"
        with pytest.raises(SerializationError, match=pattern):
            producer.send("t", b"v", 5)
        with pytest.raises(SerializationError, match=pattern):
            producer.send_batch("t", [b"v"], keys=[5])


def test_a_serializer_that_returns_no_bytes_is_named() -> None:
    with (
        embedlog.open() as cluster,
        cluster.producer(value_serializer=str) as producer,
        pytest.raises(TypeError, match=r"value\.serializer str returned str .* topic 't'"),
    ):
        producer.send("t", 5)


def test_a_deserializer_that_fails_is_named_with_the_records_place() -> None:
    def refuse(data: bytes) -> str:
        raise ValueError("no")

    with embedlog.open() as cluster:
        with cluster.producer() as producer:
            producer.send("t", b"v", b"k").result()
        for what in ("key", "value"):
            says = r"t-0 at offset 0: the deserializer says ValueError\('no'\)"
            pattern = rf"{says} \({what}\.deserializer .*test_serializers.*refuse\)"
            with pytest.raises(RecordUnreadable, match=pattern):
                _read(cluster, "t", **{f"{what}_deserializer": refuse})


@pytest.mark.parametrize("setting", ["key_serializer", "value_serializer"])
def test_what_is_no_serializer_is_refused(setting: str) -> None:
    with embedlog.open() as cluster:
        for wrong in (5, "json", object()):
            with pytest.raises(ConfigError, match=r"serialize\(topic, data\)"):
                cluster.producer(**{setting: wrong})
            with pytest.raises(ConfigError, match=r"deserialize\(topic, data\)"):
                cluster.consumer(**{setting.replace("serializer", "deserializer"): wrong})


@pytest.mark.parametrize("client", [embedlog.Producer, embedlog.Consumer])
def test_a_client_whose_serializer_cannot_be_configured_is_not_built(client: Any) -> None:
    class Broken(Tagged):
        def configure(self, settings: dict[str, Any], is_key: bool) -> None:
            raise ValueError("no registry")

    setting = "value_serializer" if client is embedlog.Producer else "value_deserializer"
    with embedlog.open() as cluster:
        for target in (cluster, cluster.listen("127.0.0.1", 0).address):
            with pytest.raises(ValueError, match="no registry"):
                client(target, **{setting: Broken()})
