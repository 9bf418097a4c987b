"""Formats with schemas: Avro, Protobuf and Confluent's header."""

from __future__ import annotations

import builtins
import json
from typing import Any

import pytest

from embedlog.errors import ConfigError
from embedlog.testing import Kafka, Undecodable, avro, confluent, json_like, protobuf, rec

USER = {
    "type": "record",
    "name": "User",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
}
PROTO = """
syntax = "proto3";
package shop;
message Order {
  enum State { OPEN = 0; PAID = 1; }
  message Item { string sku = 1; int64 count = 2; }
  int64 id = 1;
  repeated Item items = 2;
  map<string, int32> marks = 3;
  State state = 4;
  optional string note = 5;
}
"""


@pytest.fixture(scope="module")
def order() -> Any:
    from embedlog.testing.topics.formats.protobuf_messages import class_at, compiled_file

    return class_at(compiled_file(PROTO), [0])


def test_avro_values(kafka: Kafka) -> None:
    orders = kafka.topic("orders", value=avro(USER))
    orders.put({"id": 7, "name": "ann"})
    assert orders.only().value == b"\x0e\x02\x06ann"
    assert orders == [rec(value={"id": 7, "name": "ann"})]
    assert orders == [rec(value=json_like({"name": "ann"}))]
    assert orders.values(decode=avro(json.dumps(USER))) == [{"id": 7, "name": "ann"}]
    with pytest.raises(Undecodable, match="does not fit the Avro schema"):
        orders.put({"id": "seven"})
    orders.put(b"\x0e")
    orders.put(b"\x0e\x00\x00")
    for record in orders.records()[1:]:
        with pytest.raises(Undecodable, match="another Avro schema"):
            record.decoded_value
    with pytest.raises(ConfigError, match="no Avro schema"):
        avro({"type": "recrd"})


def test_protobuf_messages(kafka: Kafka, order: Any) -> None:
    orders = kafka.topic("orders", value=protobuf(order))
    orders.put(order(id=2**40, items=[{"sku": "a", "count": 2}], marks={"x": 1}, state=1))
    orders.put({"id": 2})
    assert orders.values()[0].items[0].sku == "a"
    assert orders == [
        rec(value=json_like({"id": 2**40, "items": [{"sku": "a"}], "state": "PAID"})),
        rec(value={"id": 2, "items": [], "marks": {}, "state": "OPEN"}),
    ]
    assert orders.records()[0] == rec(value=lambda message: message.marks["x"] == 1)
    orders.put(b"\xff")
    with pytest.raises(Undecodable, match=r"no protobuf\(shop.Order\)"):
        orders.last().decoded_value
    with pytest.raises(Undecodable, match=r"no protobuf\(shop.Order\)"):
        orders.put({"idd": 1})
    with pytest.raises(ConfigError, match="generated message class"):
        protobuf("Order")


def schemas(order: Any) -> dict[int, Any]:
    class Registered:
        schema_type, schema_str = "AVRO", json.dumps(USER)

    return {
        1: USER,
        2: json.dumps(USER),
        3: Registered(),
        4: {"schema": json.dumps(USER)},
        5: ("JSON", '{"type": "object"}'),
        6: {"schema": "{}", "schemaType": "JSON"},
        7: order,
        8: {"schema": PROTO, "schemaType": "PROTOBUF"},
        9: {"$schema": "https://json-schema.org/draft/2020-12/schema"},
    }


@pytest.mark.parametrize("number", range(1, 10))
def test_confluents_header_with_every_form_of_schema(kafka: Kafka, order: Any, number: int) -> None:
    known = schemas(order)
    value = {"id": 7, "name": "ann"} if number not in (7, 8) else {"id": 7, "note": "ann"}
    orders = kafka.topic("orders", value=confluent(known.__getitem__, schema_id=number))
    written = orders.put(value)
    assert (written.value or b"")[:5] == b"\0" + number.to_bytes(4, "big")
    assert orders == [rec(value=json_like(value))]


def test_a_nested_protobuf_message_is_found_by_its_indexes(kafka: Kafka, order: Any) -> None:
    orders = kafka.topic("orders", value=confluent({1: ("PROTOBUF", PROTO)}.__getitem__))
    item = [each.name for each in order.DESCRIPTOR.nested_types].index("Item")
    path = b"\x04\x00" + bytes([2 * item])  # two indexes, as zig-zag varints
    orders.put(b"\0\0\0\0\1" + path + b"\x0a\x01a")
    assert orders == [rec(value=json_like({"sku": "a", "count": 0}))]
    assert orders.values()[0].DESCRIPTOR.full_name == "shop.Order.Item"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\0\0\0", "no Confluent header"),
        (b"\1\0\0\0\1x", "no Confluent header"),
        (b"\0\0\0\0\x63x", "no schema 99"),
        (b"\0\0\0\0\x08\x80", "cut off"),
        (b"\0\0\0\0\x08\x02\x63x", r"no message \[-50\]"),
        (b"\0\0\0\0\x08\x01x", "-1 message indexes"),
    ],
)
def test_wrong_headers_are_named(kafka: Kafka, order: Any, data: bytes, text: str) -> None:
    orders = kafka.topic("orders", value=confluent(schemas(order).__getitem__))
    with pytest.raises(Undecodable, match=text):
        orders.put(data).decoded_value


def test_confluent_needs_schemas(kafka: Kafka) -> None:
    with pytest.raises(ConfigError, match="schema type 'AVR': did you mean 'AVRO'"):
        kafka.topic("orders", value=confluent(lambda _id: ("AVR", "{}"), schema_id=1)).put({})
    with pytest.raises(ConfigError, match="which schema"):
        kafka.topic("orders", value=confluent(lambda _id: USER)).put({})
    with pytest.raises(ConfigError, match="expected a function"):
        confluent({1: USER})  # type: ignore[arg-type]
    with pytest.raises(Undecodable, match="no schema 1"):
        kafka.topic("orders", value=confluent(lambda _id: None, schema_id=1)).put({})


def test_the_registry_of_the_cluster_is_asked_when_a_record_is_decoded(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Registry:
        def schema_by_id(self, schema_id: int) -> object:
            return {"schema": json.dumps(USER)} if schema_id == 1 else None

    monkeypatch.setattr(Kafka, "registry", Registry(), raising=False)
    kafka.topic("orders", value="confluent").put(b"\0\0\0\0\1\x0e\x02\x06ann")
    assert kafka.topic("orders").values() == [{"id": 7, "name": "ann"}]
    monkeypatch.setattr(Kafka, "registry", None)
    kafka.topic("out", value="confluent").put(b"\0\0\0\0\1\x0e\x02\x06ann")
    with pytest.raises(ConfigError, match=r"no kafka\.registry"):
        kafka.topic("out").values()


def test_a_missing_library_is_named_with_its_extra(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def fail(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] in ("fastavro", "grpc_tools", "google"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", fail)
    with pytest.raises(ConfigError, match=r"fastavro is missing.*embedlog\[testing\]"):
        avro(USER)
    orders = kafka.topic("orders", value=confluent(lambda _id: ("PROTOBUF", PROTO)))
    record = orders.put(b"\0\0\0\0\1\0")
    with pytest.raises(ConfigError, match=r"grpcio-tools.*embedlog\[testing\]"):
        record.decoded_value


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("text", "ä", b"\xc3\xa4"),
        ("json", [1, None], b"[1, null]"),
        ("int32", -2, b"\xff\xff\xff\xfe"),
        ("int64", 2**40, b"\0\0\1\0\0\0\0\0"),
        ("bytes", b"\xff", b"\xff"),
    ],
)
def test_plain_formats(kafka: Kafka, name: str, value: Any, data: bytes) -> None:
    orders = kafka.topic("orders", value=name)
    assert orders.put(value).value == data
    assert orders.values() == [value]
    assert orders == [rec(value=value)]


@pytest.mark.parametrize(
    ("name", "data"), [("text", b"\xff"), ("json", b"{"), ("int32", b"\0"), ("int64", b"\0" * 4)]
)
def test_bytes_of_another_format_are_refused(kafka: Kafka, name: str, data: bytes) -> None:
    orders = kafka.topic("orders", value=name)
    orders.put(data)
    with pytest.raises(Undecodable):
        orders.values()
