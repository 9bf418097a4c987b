"""No record ends a batch: whatever its bytes are, it gives a row or a dead letter.

Records go through the function of a task, next to a good record that must not suffer. Hypothesis
makes values of every type that a format allows, bytes that are almost of the format, and any bytes.
"""

from __future__ import annotations

import datetime
import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("fastavro")
pytest.importorskip("google.protobuf")
pytest.importorskip("grpc_tools")
pytest.importorskip("jsonschema")

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from embedlog.spark.pipeline.columns import key_columns
from embedlog.spark.pipeline.decode.formats import row_schema
from embedlog.spark.pipeline.decode.task import decode_function
from tests.spark.pipeline.support import project

AT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
PRIMITIVES = (
    "string", "long", "integer", "short", "byte", "double", "float", "boolean", "binary",
    "timestamp", "date", "decimal(5,2)", "decimal(38,10)",
)  # fmt: skip
Rows = list[dict[str, Any]]


def field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def of_all_types() -> dict[str, Any]:
    """A schema with a column of every type, and the same types in lists, maps and structs."""
    fields = [field(kind, kind) for kind in PRIMITIVES]
    for kind in PRIMITIVES:
        struct = {"type": "struct", "fields": [field("in", kind)]}
        listed = {"type": "array", "elementType": kind, "containsNull": True}
        mapped = {"type": "map", "keyType": "string", "valueType": kind, "valueContainsNull": True}
        fields += [
            field(f"struct {kind}", struct), field(f"list {kind}", listed),
            field(f"map {kind}", mapped),
        ]  # fmt: skip
    return {"type": "struct", "fields": fields}


def task(decode: Any, maps: Sequence[Callable[[Any], Any]] = ()) -> Callable[..., Rows]:
    """The function of a task: (key, value) pairs in, the rows of its batches out."""
    run = decode_function(decode, list(maps), key_columns(decode.key, row_schema(decode)))

    def rows(records: Iterable[tuple[bytes | None, bytes | None]]) -> Rows:
        keys, values = zip(*records, strict=True)
        count = len(keys)
        arrays = {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": pa.array(["t"] * count),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "timestamp": pa.array([AT] * count, pa.timestamp("us", tz="UTC")),
        }
        batch = pa.RecordBatch.from_pydict(arrays)
        return [row for made in run(iter([batch])) for row in made.to_pylist()]

    return rows


def outcome(rows: Callable[..., Rows], bad: bytes | None, good: bytes, key: Any = None) -> Any:
    """The row of `bad`, which had `good` before and behind it: these must come through."""
    found = rows([(b'"1"', good), (key, bad), (b'"1"', good)])
    assert [row["_offset"] for row in found] == [0, 1, 2]
    assert found[0]["_error"] is None
    assert {**found[0], "_offset": 0} == {**found[2], "_offset": 0}
    return found[1]


NASTY = [
    '"\\ud83d"', '"\\udc00\\ud800"', '"9999-12-31T23:59:59-05:00"', '"0001-01-01T00:00:00+01:00"',
    '"0001-01-01"', '"9999-12-31"', '"1e999999999"', '"0e999999999"', '"-0e-999999999"', '"sNaN"',
    '"NaN"', '"-Infinity"', '"\\u00e9"', '"1_0"', "1e400", "-1e400", "1e39",
    "3.4028235677973366e38",
    "5e-324", "1e-999", "253402300800000", "-62135596800001", "9223372036854775808",
    "-9223372036854775809", "2932897", "-719163", "1" + "0" * 400, "1234567.12345678901234567890",
    '"123456789012345678901234567.12345678901"', '"1234567890123456789012345678.1234567890"',
    '"999.995"', '"1.2000000000000000000000000000000000000000000"', "{}", "[]", "[[]]", "null",
    '{"\\ud83d":1}', '{"a":{"\\ud83d":"\\ud83d"}}', "[" * 50 + "]" * 50, '{"in":"\\ud83d"}',
]  # fmt: skip
JSON_VALUES = st.recursive(
    st.sampled_from(NASTY)
    | st.integers(-(10**40), 10**40).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.decimals(allow_nan=False, allow_infinity=False).map(str)
    | st.text(st.characters(), max_size=4).map(json.dumps)
    | st.datetimes(timezones=st.timezones()).map(lambda at: json.dumps(at.isoformat()))
    | st.decimals().map(lambda number: json.dumps(str(number))),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
        | st.dictionaries(
            st.text(st.characters(), max_size=2) | st.just("in"), inner, max_size=3
        ).map(lambda d: "{" + ",".join(f"{json.dumps(k)}:{v}" for k, v in d.items()) + "}")
    ),
    max_leaves=6,
)
QUICK = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def of_json(tmp_path: Path) -> Callable[..., Rows]:
    (tmp_path / "all.json").write_text(json.dumps(of_all_types()))
    return task(project(tmp_path, decode={"format": "json", "schema": "all.json"}).decode)


COLUMNS = [each["name"] for each in of_all_types()["fields"]]


@pytest.mark.slow
def test_json_that_no_column_can_hold_is_a_dead_letter(of_json: Callable[..., Rows]) -> None:
    shapes = {"": "%s", "struct ": '{"in": %s}', "list ": "[%s]", "map ": '{"k": %s}'}
    for text in NASTY:
        bad = [
            f'{{"{prefix}{column}": {shape % text}}}'.encode()
            for column in PRIMITIVES
            for prefix, shape in shapes.items()
        ]
        found = of_json([(None, b"{}"), *((None, each) for each in bad), (None, b"{}")])
        assert [row["_offset"] for row in found] == [*range(len(bad) + 2)]
        assert found[0]["_error"] is found[-1]["_error"] is None


@pytest.mark.slow
@QUICK
@given(name=st.sampled_from(COLUMNS), text=JSON_VALUES, extra=JSON_VALUES)
def test_any_json_gives_a_row_or_a_dead_letter(
    of_json: Callable[..., Rows], name: str, text: str, extra: str
) -> None:
    row = outcome(of_json, f'{{"{name}": {text}, "\\ud83d": {extra}}}'.encode(), b"{}")
    if row["_error"] is None:
        assert not _has_infinity(row[name])
    else:
        assert all(row[column] is None for column in COLUMNS)


@pytest.mark.slow
@QUICK
@given(key=st.binary(max_size=8) | JSON_VALUES.map(lambda text: f'{{"id":{text}}}'.encode()))
@pytest.mark.parametrize("how", ["string", "long", "json"])
def test_any_key_gives_a_row_or_a_dead_letter(tmp_path: Path, how: str, key: bytes) -> None:
    (tmp_path / "k.json").write_text(
        json.dumps({"type": "struct", "fields": [field("id", "string")]})
    )
    chosen = {"format": how, **({} if how == "json" else {"column": "k"})}
    decode = {"format": "json", "schema": "k.json", "key": chosen}
    rows = task(project(tmp_path, decode=decode).decode)
    for value in (None, b"{}"):
        found = rows([(key, value)])
        assert len(found) == 1


def test_a_number_that_a_double_cannot_hold_is_no_infinity(of_json: Callable[..., Rows]) -> None:
    row = outcome(of_json, b'{"double": 1e400}', b"{}")
    assert "greater than any double" in row["_error"]["message"]
    row = outcome(of_json, b'{"float": 1e39}', b"{}")
    assert "float: expected float, found 1e+39" in row["_error"]["message"]
    assert outcome(of_json, b'{"float": 3.4028235e38}', b"{}")["_error"] is None


def test_a_decimal_has_the_digits_of_its_text(of_json: Callable[..., Rows]) -> None:
    row = outcome(of_json, b'{"decimal(38,10)": 1234567890123456789012345678.1234567890}', b"{}")
    assert row["decimal(38,10)"] == Decimal("1234567890123456789012345678.1234567890")
    row = outcome(of_json, b'{"decimal(38,10)": 0.12345678901}', b"{}")
    assert "expected decimal(38,10)" in row["_error"]["message"]


def _has_infinity(value: Any) -> bool:
    if isinstance(value, float):
        return math.isinf(value)
    if isinstance(value, dict):
        return any(map(_has_infinity, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_infinity, value))


def test_a_function_that_returns_anything_gives_a_dead_letter(tmp_path: Path) -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    circle: dict[str, Any] = {}
    circle["x"] = circle
    odd = [
        {"x": Odd()}, circle, {"x": {1: 2, "a": 3}}, {"x": {b"k": 1}}, {"id": 10**5000}, Odd(),
        {"id": Odd()}, {"x": "\ud83d"}, {"amount": 10**5000}, 5, {"x": float("inf")},
    ]  # fmt: skip
    for value in odd:

        def change(row: Any, value: Any = value) -> Any:
            return row if row.get("id") == 1 else value

        rows = task(project(tmp_path).decode, [change])
        found = rows([(None, b'{"id": 1}'), (None, b'{"id": 2}')])
        assert [row["id"] for row in found] == [1, None]


AVRO_TYPES: dict[str, Any] = {
    "text": "string", "bytes": "bytes", "int": "int", "long": "long", "float": "float",
    "double": "double", "flag": "boolean",
    "word": {"type": "enum", "name": "Word", "symbols": ["A", "B"]},
    "fixed": {"type": "fixed", "name": "Four", "size": 4},
    "millis": {"type": "long", "logicalType": "timestamp-millis"},
    "micros": {"type": "long", "logicalType": "timestamp-micros"},
    "local": {"type": "long", "logicalType": "local-timestamp-millis"},
    "date": {"type": "int", "logicalType": "date"},
    "uuid": {"type": "string", "logicalType": "uuid"},
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
    "large": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10},
    "map": {"type": "map", "values": "string"},
    "list": {"type": "array", "items": "double"},
}  # fmt: skip


def _plain(kind: Any) -> Any:
    """The type as a writer sees it that knows no logical types: it may write any value."""
    return kind["type"] if isinstance(kind, dict) and "logicalType" in kind else kind


AVRO_VALUES = {
    "string": st.text(max_size=5), "bytes": st.binary(max_size=20),
    "int": st.integers(-(2**31), 2**31 - 1), "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32), "double": st.floats(), "boolean": st.booleans(),
}  # fmt: skip


def avro_value(kind: Any) -> st.SearchStrategy[Any]:
    plain = _plain(kind)
    if isinstance(plain, str):
        return AVRO_VALUES[plain]
    return {
        "enum": st.sampled_from(["A", "B"]), "fixed": st.binary(min_size=4, max_size=4),
        "map": st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
        "array": st.lists(st.floats(), max_size=3),
    }[plain["type"]]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", AVRO_TYPES)
def test_any_avro_gives_a_row_or_a_dead_letter(tmp_path: Path, name: str) -> None:
    import fastavro

    kind = AVRO_TYPES[name]

    def record(kind: Any) -> dict[str, Any]:
        fields = [{"name": "c", "type": ["null", kind], "default": None}]
        return {"type": "record", "name": "R", "fields": fields}

    (tmp_path / "r.avsc").write_text(json.dumps(record(kind)))
    decode = {"format": "avro", "schema": "r.avsc", "header": "none"}
    rows = task(project(tmp_path, decode=decode).decode)
    writer = fastavro.parse_schema(record(_plain(kind)))

    @QUICK
    @given(value=avro_value(kind), cut=st.integers(0, 3), junk=st.binary(max_size=12))
    def check(value: Any, cut: int, junk: bytes) -> None:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, writer, {"c": value})
        whole = out.getvalue()
        for text in (whole, whole[: len(whole) - cut], b"\x02" + junk, junk):
            outcome(rows, text, b"\x00")

    check()


PROTO = """
syntax = "%s";
import "google/protobuf/timestamp.proto";
message P {
  %s string text = 1; %s bytes bytes = 2; %s int64 long = 3; %s uint64 unsigned = 4;
  %s float float = 5; %s double double = 6; %s google.protobuf.Timestamp at = 7;
  enum Word { A = 0; B = 1; } %s Word word = 8; repeated string texts = 9;
  map<string, string> map = 10; %s P2 inner = 11;
}
message P2 { %s google.protobuf.Timestamp at = 1; }
"""


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = b""
    while True:
        number, low = number >> 7, number & 127
        out += bytes([low | (128 if number else 0)])
        if not number:
            return out


PROTO_FIELDS = st.lists(
    st.tuples(st.integers(1, 12), st.binary(max_size=12), st.integers(-(2**63), 2**63 - 1)),
    max_size=4,
)


@pytest.mark.slow
@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_any_protobuf_gives_a_row_or_a_dead_letter(tmp_path: Path, syntax: str) -> None:
    label = "optional" if syntax == "proto2" else ""
    (tmp_path / "p.proto").write_text(PROTO % (syntax, *[label] * 10))
    decode = {"format": "protobuf", "schema": "p.proto", "message": "P", "header": "none"}
    rows = task(project(tmp_path, decode=decode).decode)

    @QUICK
    @given(fields=PROTO_FIELDS, junk=st.binary(max_size=12))
    def check(fields: list[tuple[int, bytes, int]], junk: bytes) -> None:
        seconds = b"".join(
            varint(7 << 3 | 2) + varint(len(inner)) + inner
            for _, _, number in fields
            for inner in [b"\x08" + varint(number)]
        )
        texts = b"".join(varint(n << 3 | 2) + varint(len(t)) + t for n, t, _ in fields)
        numbers = b"".join(varint(n << 3) + varint(value) for n, _, value in fields)
        for value in (seconds, texts, numbers, junk):
            outcome(rows, value, b"")

    check()
    late = b"\x08" + varint(253402300800)
    row = outcome(rows, b"\x3a" + varint(len(late)) + late, b"")
    assert "at: 253402300800 s since 1970" in row["_error"]["message"]


JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"}, "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"}, "number": {"type": "number"},
        "whole": {"type": "integer", "multipleOf": 3}, "flag": {"type": "boolean"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "number"}, "uniqueItems": True},
    },
}  # fmt: skip


@pytest.mark.slow
@QUICK
@given(name=st.sampled_from([*JSON_SCHEMA["properties"]]), text=JSON_VALUES)
def test_any_json_with_a_schema_gives_a_row_or_a_dead_letter(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / "s.json").write_text(json.dumps(JSON_SCHEMA))
    decode = {"format": "json-schema", "schema": "s.json", "header": "none"}
    rows = task(project(tmp_path, decode=decode).decode)
    outcome(rows, f'{{"{name}": {text}}}'.encode(), b"{}")


@pytest.mark.slow
@QUICK
@given(value=st.binary(max_size=8))
@pytest.mark.parametrize("format", ["json", "json-schema", "avro", "protobuf"])
def test_any_bytes_give_a_row_or_a_dead_letter(tmp_path: Path, format: str, value: bytes) -> None:
    (tmp_path / "s.json").write_text(json.dumps(JSON_SCHEMA))
    (tmp_path / "r.avsc").write_text('{"type":"record","name":"R","fields":[]}')
    (tmp_path / "p.proto").write_text('syntax = "proto3"; message P { string text = 1; }')
    (tmp_path / "ids").mkdir(exist_ok=True)
    schemas = {"json-schema": "s.json", "avro": "r.avsc", "protobuf": "p.proto"}
    decode: dict[str, Any] = {"format": format, "schema": schemas.get(format, "order.json")}
    if format == "protobuf":
        decode["message"] = "P"
    if format == "json":
        decode["header"] = "none"
    else:
        decode["registry"] = {"directory": "ids"}
    assert len(task(project(tmp_path, decode=decode).decode)([(None, value)])) == 1
