"""Avro, Protobuf and JSON Schema with Confluent's header.

A value written with one id is read with another schema, or is an error of the record that gives the
reason.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("fastavro")
pytest.importorskip("google.protobuf")
pytest.importorskip("grpc_tools")
pytest.importorskip("jsonschema")

from embedlog.spark.pipeline.decode import confluent
from embedlog.spark.pipeline.decode.registry import RegistryUnavailable
from embedlog.spark.pipeline.decode.rows import Decoded, RowDecoder
from embedlog.spark.pipeline.errors import DecodeError, ProjectError
from embedlog.spark.pipeline.schema import columns_ddl
from tests.spark.pipeline.support import project

AVRO: dict[str, Any] = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9,
                                   "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "lines", "type": {"type": "array", "items": {
            "type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}}},
    ],
}  # fmt: skip
PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  enum State { OPEN = 0; PAID = 1; }
  int64 id = 1;
  optional string note = 2;
  State state = 3;
  google.protobuf.Timestamp at = 4;
  repeated Line lines = 5;
  map<string, int32> counts = 6;
  message Line { string sku = 1; }
}
"""
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "note": {"type": ["string", "null"]},
        "at": {"type": "string", "format": "date-time"},
        "address": {"$ref": "#/$defs/address"},
    },
    "required": ["id"],
    "$defs": {"address": {"type": "object", "properties": {"zip": {"type": "string"}}}},
}


def decoder(tmp_path: Path, **decode: Any) -> RowDecoder:
    return RowDecoder(project(tmp_path, decode=decode).decode, ())


def header(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big")


def decoded(made: RowDecoder, value: bytes) -> Decoded:
    found = made.decode(None, value)
    assert found is not None
    return found


def failure(made: RowDecoder, value: bytes) -> str:
    found = decoded(made, value)
    assert found.error is not None, found
    assert found.columns == {}
    return str(found.error["message"])


class TestAvro:
    @pytest.fixture
    def made(self, tmp_path: Path) -> RowDecoder:
        registry = tmp_path / "ids"
        registry.mkdir()
        older = {**AVRO, "fields": [f for f in AVRO["fields"] if f["name"] != "note"]}
        newer = {**AVRO, "fields": [*AVRO["fields"], {"name": "extra", "type": "int"}]}
        broken = {**AVRO, "fields": [{"name": "id", "type": "string"}, *AVRO["fields"][1:]]}
        for number, schema in enumerate((AVRO, older, newer, broken), 1):
            (registry / f"{number}.avsc").write_text(json.dumps(schema))
        (tmp_path / "order.avsc").write_text(json.dumps(AVRO))
        return decoder(tmp_path, format="avro", schema="order.avsc", registry={"directory": "ids"})

    @staticmethod
    def write(tmp_path: Path, number: int, **values: Any) -> bytes:
        import datetime
        import io
        from decimal import Decimal

        import fastavro

        row = {
            "id": 1, "price": Decimal("12.34"), "lines": [{"sku": "a"}], "note": "n",
            "at": datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), "extra": 5, **values,
        }  # fmt: skip
        out = io.BytesIO()
        schema = json.loads((tmp_path / f"ids/{number}.avsc").read_text())
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
        return header(number) + out.getvalue()

    def test_older_and_newer_writers_are_read_by_the_frozen_schema(
        self, tmp_path: Path, made: RowDecoder
    ) -> None:
        assert columns_ddl(made.schema) == (
            "`id` bigint, `price` decimal(9,2), `at` timestamp, `note` string, "
            "`lines` array<struct<`sku`:string>>"
        )
        for number, note in ((1, "n"), (2, None), (3, "n")):
            row = decoded(made, self.write(tmp_path, number))
            assert row.error is None
            assert (row.columns["id"], str(row.columns["price"])) == (1, "12.34")
            assert (row.columns["note"], row.columns["lines"]) == (note, [{"sku": "a"}])

    def test_what_cannot_be_resolved_is_an_error_and_never_null(
        self, tmp_path: Path, made: RowDecoder
    ) -> None:
        good = self.write(tmp_path, 1)
        assert "SchemaResolutionError" in failure(made, self.write(tmp_path, 4, id="1"))
        assert "avro: " in failure(made, good[:8])
        assert "1 bytes behind" in failure(made, good + b"\0")
        assert "schema id 9 is not known" in failure(made, header(9) + good[5:])
        assert "no Confluent header" in failure(made, b"{}")

    def test_types_that_rows_cannot_have_are_refused(self, tmp_path: Path) -> None:
        for kind in (["string", "long"], "Order", {"type": "int", "logicalType": "time-millis"}):
            schema = {"type": "record", "name": "Order", "fields": [{"name": "c", "type": kind}]}
            (tmp_path / "bad.avsc").write_text(json.dumps(schema))
            with pytest.raises(ProjectError, match="bad.avsc"):
                decoder(tmp_path, format="avro", schema="bad.avsc", header="none")


class TestProtobuf:
    @pytest.fixture
    def made(self, tmp_path: Path) -> RowDecoder:
        (tmp_path / "ids").mkdir()
        (tmp_path / "ids/1.proto").write_text(PROTO)
        (tmp_path / "ids/2.proto").write_text(PROTO.replace("int64 id = 1", "string id = 1"))
        (tmp_path / "ids/3.proto").write_text(PROTO.replace("int64 id", "int32 id"))
        (tmp_path / "order.proto").write_text(PROTO)
        return decoder(
            tmp_path, format="protobuf", schema="order.proto", message="shop.Order",
            registry={"directory": "ids"},
        )  # fmt: skip

    @pytest.mark.slow
    def test_a_message_gives_its_columns(self, made: RowDecoder) -> None:
        assert columns_ddl(made.schema) == (
            "`id` bigint, `note` string, `state` string, `at` timestamp, "
            "`lines` array<struct<`sku`:string>>, `counts` map<string,int>"
        )
        message = made.decoder.message_type(id=7, state=1, counts={"a": 2})
        message.lines.add(sku="x")
        message.at.FromSeconds(10)
        # The index of the first message is one byte; as a list of one index it is two bytes.
        for indexes in (b"\0", b"\x02\0"):
            row = decoded(made, header(1) + indexes + message.SerializeToString())
            assert row.error is None
            assert row.columns["at"].timestamp() == 10
            assert {**row.columns, "at": None} == {
                "id": 7, "note": None, "state": "PAID", "at": None, "lines": [{"sku": "x"}],
                "counts": [("a", 2)],
            }  # fmt: skip

    def test_a_field_of_another_type_is_an_error_and_never_null(self, made: RowDecoder) -> None:
        # Field 1 with length-delimited bytes: Protobuf itself would read id as 0.
        assert "id: its type changed" in failure(made, header(1) + b"\0\x0a\x017")
        assert "id (number 1): string where varint" in failure(made, header(2) + b"\0\x0a\x017")
        assert "state: 9 is no shop.Order.State" in failure(made, header(1) + b"\0\x18\x09")
        assert "protobuf: DecodeError" in failure(made, header(1) + b"\0\x0a\x7f")
        assert "cut off" in failure(made, header(1) + b"\x80")
        assert "message indexes" in failure(made, header(1) + b"\xfe\x01\0")
        assert decoded(made, header(3) + b"\0\x08\x05").columns["id"] == 5

    def test_fields_that_the_schema_lacks_are_kept(self, made: RowDecoder) -> None:
        row = decoded(made, header(1) + b"\0\x08\x05" + b"\x50\x09")
        assert (row.columns["id"], row.unknown) == (5, '{"#10": "9"}')

    def test_a_message_that_is_not_there_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "order.proto").write_text(PROTO)
        with pytest.raises(ProjectError, match="no message 'shop.Bill'"):
            decoder(
                tmp_path, format="protobuf", schema="order.proto", message="shop.Bill",
                header="none",
            )  # fmt: skip


class TestJsonSchema:
    @pytest.fixture
    def made(self, tmp_path: Path) -> RowDecoder:
        (tmp_path / "ids").mkdir()
        (tmp_path / "ids/1.json").write_text(json.dumps(SCHEMA))
        strict = {**SCHEMA, "additionalProperties": False}
        (tmp_path / "ids/2.json").write_text(json.dumps(strict))
        (tmp_path / "order.schema").write_text(json.dumps(SCHEMA))
        return decoder(
            tmp_path, format="json-schema", schema="order.schema", registry={"directory": "ids"}
        )

    def test_a_valid_object_gives_its_columns(self, made: RowDecoder) -> None:
        assert columns_ddl(made.schema) == (
            "`id` bigint, `note` string, `at` timestamp, `address` struct<`zip`:string>"
        )
        row = decoded(made, header(1) + b'{"id": 1, "address": {"zip": "8000"}, "x": 1}')
        assert (row.columns["address"], row.unknown) == ({"zip": "8000"}, '{"x": 1}')

    @pytest.mark.parametrize(
        ("number", "value", "message"),
        [
            (1, {"id": 0}, "id: 0 is less than the minimum of 1 (schema id 1)"),
            (1, {"id": "1"}, "id: '1' is not of type 'integer'"),
            (1, {}, "'id' is a required property"),
            (2, {"id": 1, "x": 1}, "Additional properties are not allowed"),
            (1, {"id": 1, "at": "soon"}, "soon"),
            (7, {"id": 1}, "schema id 7 is not known"),
        ],
    )
    def test_an_invalid_one_says_what_is_wrong(
        self, made: RowDecoder, number: int, value: Any, message: str
    ) -> None:
        assert message in failure(made, header(number) + json.dumps(value).encode())


class RegistryHandler(BaseHTTPRequestHandler):
    """A schema registry that knows one schema, and may be out of order."""

    asked: ClassVar[list[str]] = []
    status = 200

    def do_GET(self) -> None:
        self.asked.append(self.path)
        known = self.path == "/schemas/ids/1"
        self.send_response(self.status if known or self.status != 200 else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"schema": json.dumps(AVRO)}).encode())

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def registry() -> Iterator[tuple[str, type[RegistryHandler]]]:
    class Handler(RegistryHandler):
        asked: ClassVar[list[str]] = []

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", Handler
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.slow
def test_a_registry_is_asked_once_for_each_id(
    tmp_path: Path, registry: tuple[str, type[RegistryHandler]]
) -> None:
    url, handler = registry
    (tmp_path / "order.avsc").write_text(json.dumps(AVRO))
    made = decoder(tmp_path, format="avro", schema="order.avsc", registry={"url": url})
    (tmp_path / "ids").mkdir()
    (tmp_path / "ids/1.avsc").write_text(json.dumps(AVRO))
    value = TestAvro.write(tmp_path, 1)
    assert decoded(made, value).error is None
    assert decoded(made, value).error is None
    assert "schema id 2 is not known" in failure(made, header(2) + value[5:])
    assert handler.asked == ["/schemas/ids/1", "/schemas/ids/2"]


@pytest.mark.slow
def test_a_registry_that_is_down_fails_the_batch_and_no_record(
    tmp_path: Path, registry: tuple[str, type[RegistryHandler]]
) -> None:
    url, handler = registry
    handler.status = 503
    (tmp_path / "order.avsc").write_text(json.dumps(AVRO))
    made = decoder(tmp_path, format="avro", schema="order.avsc", registry={"url": url})
    for _ in range(2):
        with pytest.raises(RegistryUnavailable, match="status 503"):
            made.decode(None, header(1) + b"x")
    handler.status = 200
    assert "avro: " in failure(made, header(1) + b"x")


def test_the_indexes_of_a_nested_message() -> None:
    assert confluent.split_message_indexes(b"\x04\x02\x04rest") == ([1, 2], b"rest")
    with pytest.raises(DecodeError):
        confluent.split_message_indexes(b"\x01")
