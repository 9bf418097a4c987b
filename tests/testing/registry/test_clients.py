"""Clients of Confluent's registry, unmodified, over real sockets."""

from __future__ import annotations

import asyncio
import io
import json
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from embedlog.testing import Kafka
from embedlog.testing.registry.schemas.protobuf_parser import parse
from tests.support.tools import need_kafkajs_registry
from tests.testing.registry.calls import BROKEN, RECORD, WIDER

pytestmark = pytest.mark.interop

PROTO = """syntax = "proto3"; package clients.test; import "google/protobuf/timestamp.proto";
message First { int32 x = 1; }
message M { string a = 1; google.protobuf.Timestamp t = 2; map<string, N> ns = 3; oneof o {
int32 one = 4; string other = 5; } message N { optional int32 z = 1; } }"""
JSON = '{"title":"R","type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}'


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka(topics={"t": 1}) as made:
        yield made


def _client(kafka: Kafka, **settings: Any) -> Any:
    from confluent_kafka.schema_registry import SchemaRegistryClient

    return SchemaRegistryClient({**kafka.registry.client_config("confluent"), **settings})


def _avro(client: Any) -> tuple[Any, Any, Any]:
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

    return AvroSerializer(client, RECORD), AvroDeserializer(client), {"a": 3}


def _json(client: Any) -> tuple[Any, Any, Any]:
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer

    reader = JSONDeserializer(None, schema_registry_client=client)
    return JSONSerializer(JSON, client), reader, {"a": 3}


def _protobuf(client: Any) -> tuple[Any, Any, Any]:
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
    from google.protobuf import descriptor_pool, message_factory, timestamp_pb2

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(parse(PROTO, "clients_test.proto"))
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("clients.test.M"))
    settings = {"use.deprecated.format": False}
    value = kind(a="x", other="y")
    value.ns["k"].z = 5
    return (
        ProtobufSerializer(kind, client, settings),
        ProtobufDeserializer(kind, settings, client),
        value,
    )


@pytest.mark.parametrize("kind", [_avro, _json, _protobuf])
def test_confluents_serializers_write_and_read(
    kafka: Kafka, kind: Callable[[Any], tuple[Any, Any, Any]]
) -> None:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.serialization import MessageField, SerializationContext

    context = SerializationContext("t", MessageField.VALUE)
    writer, _, value = kind(_client(kafka))
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("t", writer(value, context))
    producer.flush(30)
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["t"])
    record = consumer.poll(30)
    consumer.close()
    _, reader, _ = kind(_client(kafka))  # a client with an empty cache
    assert str(reader(record.value(), context)) == str(value)
    assert kafka.registry.subjects() == ["t-value"]
    assert record.value()[:5] == b"\0\0\0\0\1"


def test_a_reader_of_a_later_version_gets_the_default(kafka: Kafka) -> None:
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    context = SerializationContext("t", MessageField.VALUE)
    data = AvroSerializer(_client(kafka), RECORD)({"a": 1}, context)
    kafka.registry.register("t-value", WIDER)
    latest = {"auto.register.schemas": False, "use.latest.version": True}
    assert AvroDeserializer(_client(kafka), WIDER)(data, context) == {"a": 1, "b": 0}
    later = AvroSerializer(_client(kafka), None, conf=latest)({"a": 1, "b": 2}, context)
    assert later[:5] == b"\0\0\0\0\2"


def test_a_refused_schema_is_confluents_error(kafka: Kafka) -> None:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryError

    client = _client(kafka)
    client.register_schema("s", Schema(RECORD, "AVRO"))
    assert not client.test_compatibility("s", Schema(BROKEN, "AVRO"))
    with pytest.raises(SchemaRegistryError) as caught:
        client.register_schema("s", Schema(BROKEN, "AVRO"))
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 409)
    with pytest.raises(SchemaRegistryError) as caught:
        client.get_latest_version("none")
    assert caught.value.error_code == 40401


def test_each_call_of_confluents_client_has_an_answer(kafka: Kafka) -> None:
    from confluent_kafka.schema_registry import (
        ConfigCompatibilityLevel,
        Schema,
        SchemaReference,
        ServerConfig,
    )

    client = _client(kafka)
    number = client.register_schema("s", Schema(RECORD, "AVRO"))
    registered = client.lookup_schema("s", Schema(RECORD, "AVRO"))
    assert (registered.schema_id, registered.version) == (number, 1)
    assert client.get_schema(number).schema_str == RECORD
    assert client.get_schema_by_guid(registered.guid).schema_str == RECORD
    uses = [SchemaReference("R", "s", 1)]
    client.register_schema("u", Schema('{"type":"array","items":"R"}', "AVRO", uses))
    assert client.get_referenced_by("s", 1) == [2]
    assert client.get_subjects() == ["s", "u"]
    assert client.get_versions("s") == [1]
    assert client.get_version("s", 1).schema.schema_str == RECORD
    assert [each.subject for each in client.get_schema_versions(number)] == ["s"]
    client.set_config("s", ServerConfig(compatibility=ConfigCompatibilityLevel.FULL))
    assert client.get_config("s").compatibility_level == ConfigCompatibilityLevel.FULL
    client.delete_config("s")
    client.set_compatibility(level="NONE")
    assert client.get_compatibility() == "NONE"
    client.update_mode("s", "READONLY")
    assert client.get_mode("s") == "READONLY"
    client.delete_mode("s")
    assert client.get_contexts() == ["."]
    assert client.delete_version("u", 1) == 1
    assert client.delete_subject("u", permanent=True) == [1]


def test_confluents_client_tries_again_after_a_fault(kafka: Kafka) -> None:
    from confluent_kafka.schema_registry import Schema

    settings = {"retries.wait.ms": 1, "retries.max.wait.ms": 2}
    with kafka.registry.fault("register", status=503, times=2) as fault:
        assert _client(kafka, **settings).register_schema("s", Schema(RECORD, "AVRO")) == 1
    assert fault.hits == 2


def test_confluents_client_gives_its_credentials(kafka: Kafka) -> None:
    from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError

    kafka.registry.require_user("me", "secret")
    assert _client(kafka).get_subjects() == []
    with pytest.raises(SchemaRegistryError) as caught:
        SchemaRegistryClient({"url": kafka.registry.url}).get_subjects()
    assert caught.value.http_status_code == 401


def test_aiokafka_with_fastavro(kafka: Kafka) -> None:
    import fastavro
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    number = kafka.registry.register("t-value", RECORD)

    async def both() -> bytes:
        address = kafka.bootstrap_servers
        async with AIOKafkaProducer(bootstrap_servers=address) as producer:
            body = io.BytesIO()
            fastavro.schemaless_writer(body, fastavro.parse_schema(json.loads(RECORD)), {"a": 7})
            await producer.send_and_wait("t", struct.pack(">bI", 0, number) + body.getvalue())
        consumer = AIOKafkaConsumer("t", bootstrap_servers=address, auto_offset_reset="earliest")
        async with consumer:
            return (await consumer.getone()).value  # type: ignore[no-any-return]

    data = asyncio.run(both())
    (found,) = struct.unpack(">I", data[1:5])
    with urlopen(f"{kafka.registry.url}/schemas/ids/{found}", timeout=30) as answer:
        schema = fastavro.parse_schema(json.loads(json.load(answer)["schema"]))
    assert fastavro.schemaless_reader(io.BytesIO(data[5:]), schema, None) == {"a": 7}


@pytest.mark.parametrize("with_user", [False, True])
def test_kafkajs_client_writes_and_reads(kafka: Kafka, with_user: bool) -> None:
    if with_user:
        kafka.registry.require_user("me", "secret")
    kafka.create_topic("js", 1)
    settings = kafka.registry.client_config("kafkajs")
    given = {
        "address": kafka.bootstrap_servers,
        "registry": settings["host"],
        "auth": settings.get("auth"),
    }
    script = str(Path(__file__).with_name("kafkajs_registry.js"))
    done = subprocess.run(
        ["node", script, json.dumps(given)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env=need_kafkajs_registry(),
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    assert answers["ids"] == {"AVRO": 1, "JSON": 2, "PROTOBUF": 3}
    assert answers["values"] == ["AVRO", "JSON", "PROTOBUF"]
    assert (answers["latest"], answers["found"]) == (1, 1)
    assert "incompatible" in answers["refused"]
