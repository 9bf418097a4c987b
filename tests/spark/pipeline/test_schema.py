"""The gate: values that fit a frozen schema pass unchanged, others are errors."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedlog.spark.pipeline import schema
from embedlog.spark.pipeline.commands.inference import infer, widen
from embedlog.spark.pipeline.errors import DecodeError, ProjectError
from embedlog.spark.pipeline.schema import Field, Gate, Primitive, Struct


def gate(kind: str, nullable: bool = True) -> Gate:
    return Gate(Struct((Field("c", schema.primitive(kind, "c"), nullable),)))


UTC = datetime.UTC


@pytest.mark.parametrize(
    ("kind", "given", "found"),
    [
        ("long", 1, 1),
        ("long", -(1 << 63), -(1 << 63)),
        ("byte", 127, 127),
        ("double", 1, 1.0),
        ("boolean", False, False),
        ("string", "", ""),
        ("binary", "AAE=", b"\x00\x01"),
        ("date", "2026-02-28", datetime.date(2026, 2, 28)),
        ("timestamp", "2026-01-01T00:00:00Z", datetime.datetime(2026, 1, 1, tzinfo=UTC)),
        ("timestamp", "2026-01-01T00:00:00", datetime.datetime(2026, 1, 1, tzinfo=UTC)),
        ("timestamp", 1000, datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("decimal(5,2)", 123.45, Decimal("123.45")),
        ("decimal(5,2)", "999.99", Decimal("999.99")),
        ("decimal(38,0)", 10**37, Decimal(10**37)),
    ],
)
def test_a_value_of_the_type_goes_through(kind: str, given: Any, found: Any) -> None:
    assert gate(kind).conform({"c": given}) == {"c": found}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("long", "1"), ("long", 1.0), ("long", True), ("long", 1 << 63), ("byte", 128),
        ("double", "1.5"), ("double", True), ("double", 10**400), ("boolean", 0), ("string", 5),
        ("string", {}), ("binary", "?"), ("date", "2026-02-30"), ("timestamp", "yesterday"),
        ("timestamp", 10**30), ("decimal(5,2)", 1000), ("decimal(5,2)", "1.234"),
        ("decimal(5,2)", "x"), ("decimal(5,2)", "NaN"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_an_error_that_names_column_and_value(
    kind: str, value: Any
) -> None:
    with pytest.raises(DecodeError) as caught:
        gate(kind).conform({"c": value})
    assert str(caught.value).startswith("c: expected")


def test_a_missing_column_is_null_only_where_the_schema_says_so() -> None:
    assert gate("long").conform({}) == {"c": None}
    with pytest.raises(DecodeError, match="c: missing"):
        gate("long", nullable=False).conform({})
    with pytest.raises(DecodeError, match="c: null"):
        gate("long", nullable=False).conform({"c": None})


def test_columns_that_the_schema_lacks_are_kept_apart_with_their_paths() -> None:
    made = schema.from_json(
        {"type": "struct", "fields": [{"name": "a", "type": {"type": "struct", "fields": []}}]}
    )
    opened = Gate(made)
    assert opened.conform({"a": {"b": 1}, "c": [2]}) == {"a": {}}
    assert opened.unknown == {"a.b": 1, "c": [2]}
    opened.conform({"a": {}})
    assert opened.unknown == {}


_VALUES = st.recursive(
    st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.text(max_size=5)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=3), _VALUES, min_size=1, max_size=4))
def test_what_a_schema_was_inferred_from_fits_it_unchanged(row: dict[str, Any]) -> None:
    made = infer([row])
    opened = Gate(made)
    assert opened.conform(row) == row
    assert not opened.unknown
    assert schema.from_json(json.loads(json.dumps(schema.to_json(made)))) == made


def test_a_column_of_two_types_is_refused_with_both() -> None:
    with pytest.raises(ProjectError, match="amount: bigint and string"):
        infer([{"amount": 1}, {"amount": "1"}])


def test_integers_and_fractions_widen_and_new_columns_are_nullable() -> None:
    old = infer([{"a": 1, "b": "x"}])
    wide = widen(old, infer([{"a": 1.5, "c": [1]}]))
    assert isinstance(wide, Struct)
    assert [(f.name, schema.ddl(f.type), f.nullable) for f in wide.fields] == [
        ("a", "double", False), ("b", "string", True), ("c", "array<bigint>", True),
    ]  # fmt: skip


def test_a_type_that_spark_does_not_have_is_refused() -> None:
    for text in ("text", "decimal(39,0)", "decimal(3,4)", "decimal(a,b)"):
        with pytest.raises(ProjectError, match="unknown type"):
            schema.primitive(text, "c")
    with pytest.raises(ProjectError, match="a struct is needed"):
        schema.from_json("long")
    assert schema.ddl(Primitive("decimal", 5, 2)) == "decimal(5,2)"
