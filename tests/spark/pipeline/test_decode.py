"""Records to rows, without Spark: JSON, keys, Debezium, functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from embedlog.spark.pipeline.decode.rows import RowDecoder
from tests.spark.pipeline.support import project


def decoder(tmp_path: Path, functions: Any = (), **decode: Any) -> RowDecoder:
    given = {"format": "json", "schema": "order.json", **decode}
    return RowDecoder(project(tmp_path, decode=given).decode, functions)


def test_a_good_record_gives_its_columns(tmp_path: Path) -> None:
    row = decoder(tmp_path).decode(None, b'{"id": 1, "amount": 2.5}')
    assert row is not None
    assert row.columns == {"id": 1, "amount": 2.5}
    assert row.error is None


@pytest.mark.parametrize(
    ("value", "stage", "message"),
    [
        (b"{", "decode", "not JSON"),
        (b"\xff", "decode", "not JSON"),
        (b'{"id": NaN}', "decode", "NaN"),
        (b'{"id": 1, "id": 2}', "decode", "'id' comes twice"),
        (b"[" * 100_000, "decode", "not JSON"),
        (b"[]", "schema", "expected an object"),
        (b"{}", "schema", "id: missing"),
        (b'{"id": "1"}', "schema", "id: expected long, found '1'"),
        (b'{"id": 1, "amount": "many"}', "schema", "amount: expected double"),
    ],
)
def test_a_bad_record_says_why_and_has_no_columns(
    tmp_path: Path, value: bytes, stage: str, message: str
) -> None:
    row = decoder(tmp_path).decode(None, value)
    assert row is not None
    assert row.error is not None
    assert row.error["stage"] == stage
    assert message in str(row.error["message"])
    assert row.columns == {}


def test_a_new_column_is_kept_as_text_and_no_error(tmp_path: Path) -> None:
    row = decoder(tmp_path).decode(None, b'{"id": 1, "extra": {"a": 1}}')
    assert row is not None
    assert row.error is None
    assert row.unknown == '{"extra": {"a": 1}}'


def test_a_tombstone_has_the_columns_of_its_key(tmp_path: Path) -> None:
    made = decoder(tmp_path, key={"format": "long", "column": "id"})
    row = made.decode(b"7", None)
    assert row is not None
    assert (row.columns, row.is_deleted) == ({"id": 7}, True)
    bad = made.decode(b"seven", b'{"id": 1}')
    assert bad is not None
    assert bad.error is not None
    assert bad.error["stage"] == "key"


@pytest.mark.parametrize("number", [-(2**63), 2**63 - 1])
def test_a_key_may_be_any_long(tmp_path: Path, number: int) -> None:
    made = decoder(tmp_path, key={"format": "long", "column": "id"})
    row = made.decode(b"%d" % number, None)
    assert row is not None
    assert row.columns == {"id": number}
    beyond = made.decode(b"%d" % (number + (1 if number > 0 else -1)), None)
    assert beyond is not None
    assert beyond.error is not None


def test_a_json_key_gives_the_columns_that_the_schema_has(tmp_path: Path) -> None:
    made = decoder(tmp_path, key={"format": "json"})
    row = made.decode(b'{"payload": {"id": 7, "other": 1}}', None)
    assert row is not None
    assert row.columns == {"id": 7}


def test_debezium_gives_the_row_after_and_before_a_deletion(tmp_path: Path) -> None:
    made = decoder(tmp_path, envelope="debezium")
    after = {"before": None, "after": {"id": 1, "amount": 2.0}, "op": "c"}
    for value in (after, {"schema": {}, "payload": after}):
        row = made.decode(None, json.dumps(value).encode())
        assert row is not None
        assert (row.columns["id"], row.operation, row.is_deleted) == (1, "c", False)
    gone = made.decode(None, b'{"before": {"id": 1}, "after": null, "op": "d"}')
    assert gone is not None
    assert (gone.columns["id"], gone.operation, gone.is_deleted) == (1, "d", True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"id": 1}, "`op` is missing"),
        ({"op": "z", "after": {}}, "unknown op 'z'"),
        ({"op": "u", "after": None}, "without `after`"),
        ({"op": "d"}, "without `before`"),
        ({"op": "t"}, "truncates"),
    ],
)
def test_what_is_no_change_is_an_error(tmp_path: Path, value: Any, message: str) -> None:
    row = decoder(tmp_path, envelope="debezium").decode(None, json.dumps(value).encode())
    assert row is not None
    assert row.error is not None
    assert message in str(row.error["message"])


def test_functions_change_rows_leave_them_out_or_fail_one_by_one(tmp_path: Path) -> None:
    def clean(row: Any) -> Any:
        if row["id"] < 0:
            return None
        return {**row, "amount": 100 / row["id"]}

    made = decoder(tmp_path, [clean], maps=["json:loads"], mapped_schema="order.json")
    good = made.decode(None, b'{"id": 4}')
    assert good is not None
    assert good.columns == {"id": 4, "amount": 25.0}
    assert made.decode(None, b'{"id": -1}') is None
    bad = made.decode(None, b'{"id": 0}')
    assert bad is not None
    assert bad.error == {
        "stage": "map", "rule": None, "message": "clean: ZeroDivisionError: division by zero",
    }  # fmt: skip
