"""`rec`, its matchers, and comparisons with lists of them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from embedlog.testing import Kafka, LogRecord, any_, json_like, rec
from embedlog.testing.topics.diff import explain

JSON = b'{"id": 1, "name": "ann", "ok": true, "items": [{"sku": "a", "n": 2}]}'


def record(value: bytes | None = b"v", **more: Any) -> LogRecord:
    fields: dict[str, Any] = {"partition": 0, "offset": 5, "timestamp": 1000, "key": b"k"}
    return LogRecord(topic="t", value=value, **{**fields, **more})


@pytest.mark.parametrize(
    "expected",
    [
        {"value": b"v"},
        {"value": bytearray(b"v")},
        {"value": "v", "key": "k"},
        {"value": any_},
        {"value": re.compile("^v$")},
        {"value": re.compile(b"v")},
        {"value": lambda value: value == b"v"},
        {"partition": 0, "offset": 5, "timestamp": 1000},
        {"offset": lambda offset: offset > 4},
        {"timestamp": datetime.fromtimestamp(1, UTC)},
        {"timestamp": any_},
        {"headers": []},
        {"headers": {}},
        {"headers": any_},
    ],
)
def test_a_field_matches(expected: dict[str, Any]) -> None:
    assert rec(**expected) == record()
    assert record() == rec(**expected)
    assert rec(**expected).problems(record()) == []


@pytest.mark.parametrize(
    ("expected", "problem"),
    [
        ({"value": b"w"}, "value: expected b'w', got b'v'"),
        ({"value": "w"}, "value: expected 'w', got 'v'"),
        ({"value": None}, "value: expected None, got b'v'"),
        ({"key": b"j"}, "key: expected b'j', got b'k'"),
        ({"value": re.compile("w")}, "in which it is not found"),
        ({"value": {"id": 1}}, "is not JSON"),
        ({"value": json_like({"id": 1})}, "is not JSON"),
        ({"offset": 6}, "offset: expected 6, got 5"),
        ({"timestamp": datetime.fromtimestamp(2, UTC)}, "timestamp: expected 2000, got 1000"),
        ({"headers": {"h": b"x"}}, "headers: no header 'h', got []"),
        ({"headers": [("h", b"x")]}, "headers: expected [('h', b'x')], got []"),
    ],
)
def test_a_field_that_differs_is_named(expected: dict[str, Any], problem: str) -> None:
    assert rec(**expected) != record()
    (found,) = rec(**expected).problems(record())
    assert problem in found


def test_a_tombstone_matches_none_only() -> None:
    tombstone = record(None)
    assert rec(value=None) == tombstone
    assert rec(value=any_) == tombstone
    assert rec(value=lambda value: value is None) == tombstone
    for other in (b"", "", json_like({}), {}, re.compile("")):
        assert rec(value=other) != tombstone


def test_headers_by_name_and_as_a_whole() -> None:
    found = record(headers=(("a", b"1"), ("b", None), ("a", b"2")))
    assert rec(headers={"a": "2"}) == found
    assert rec(headers={"a": b"1", "b": None}) == found
    assert rec(headers={"a": re.compile("^2$")}) == found
    assert rec(headers=[("a", b"1"), ("b", any_), ("a", "2")]) == found
    assert rec(headers={"a": b"3"}) != found
    assert rec(headers=[("a", b"1")]) != found
    assert found.header("a") == b"2"
    assert found.header("c") is None


@pytest.mark.parametrize(
    ("expected", "problem"),
    [
        ({"id": 1}, None),
        ({"name": re.compile("^a"), "ok": True}, None),
        ({"items": [{"sku": "a"}]}, None),
        ({"items": [any_]}, None),
        ({"id": lambda value: value > 0}, None),
        ({"id": 2}, ".id: expected 2, got 1"),
        ({"ok": 1}, ".ok: expected 1, got True"),
        ({"nmae": "ann"}, ".nmae: missing; there are id, name, ok, items"),
        ({"items": [{"sku": "b"}]}, ".items[0].sku: expected 'b', got 'a'"),
        ({"items": []}, "items: expected 0 items"),
        ({"id": {"x": 1}}, ".id: expected an object, got 1"),
        ([1], "value: expected 1 items"),
    ],
)
def test_json_like_matches_a_part_and_says_where_it_differs(
    expected: Any, problem: str | None
) -> None:
    found = rec(value=json_like(expected)).problems(record(JSON))
    if problem is None:
        assert found == []
    else:
        assert problem in found[0]


def test_a_whole_json_value_with_any_inside() -> None:
    assert rec(value={"id": 1, "at": any_}) == record(b'{"id": 1, "at": 99}')
    assert rec(value={"id": 1}) != record(b'{"id": 1, "at": 99}')


def test_a_rec_that_says_nothing_or_is_misspelt_is_refused() -> None:
    with pytest.raises(TypeError, match=r"rec\(\) expects nothing: give some of key, value"):
        rec()
    with pytest.raises(TypeError, match="no 'vlaue'; did you mean 'value'"):
        rec(vlaue=b"x")


def test_a_topic_is_compared_in_order_or_in_any_order(any_kafka: Kafka) -> None:
    users = any_kafka.topic("users")
    for partition in (1, 0):
        users.put(f'{{"id": {partition}}}', key=b"k", partition=partition)
    first, second = rec(value=json_like({"id": 0})), rec(value=json_like({"id": 1}), key=b"k")
    assert users == [first, second]
    assert users != [second, first]
    assert users != [first]
    assert users == (first, second)
    assert users == users.records()
    assert users.in_any_order() == [second, first]
    assert users.in_any_order() != [first, first]
    assert any_kafka.topic("out") == []


def test_any_order_finds_partners_that_a_first_choice_would_take_away(kafka: Kafka) -> None:
    orders = kafka.topic("orders")
    orders.put_many([b"ab", b"a", b"abc"])
    a, b, c = (rec(value=re.compile(each)) for each in ("a", "b", "c"))
    assert orders.in_any_order() == [a, b, c]
    assert orders.in_any_order() == [c, b, a]
    assert orders.in_any_order() != [c, c, a]


@pytest.mark.parametrize("other", [b"x", {"a": 1}, 5, None, "x", iter([])])
def test_a_comparison_with_no_list_is_refused(kafka: Kafka, other: object) -> None:
    with pytest.raises(TypeError, match="compared with a list"):
        assert kafka.topic("orders") == other
    with pytest.raises(TypeError, match="compared with a list"):
        assert kafka.topic("orders").in_any_order() == other


def test_a_list_of_bare_values_is_refused_with_the_right_form(kafka: Kafka) -> None:
    with pytest.raises(TypeError, match=r"item 0 is b'x'.*such as rec\(value=b'x'\)"):
        assert kafka.topic("orders") == [b"x"]


def test_the_difference_is_explained_line_by_line(kafka: Kafka) -> None:
    orders = kafka.topic("orders")
    orders.put_many([b"a", b"b", b"c"])
    expected = [rec(value=b"a"), rec(value=b"x"), rec(value=b"c"), rec(value=b"d", key=b"k")]
    assert orders != expected
    assert explain(orders, expected) == [
        "orders: 3 records, expected 4",
        "  = <orders[0]@0: key=None, value=b'a'>",
        "  ! <orders[0]@1: key=None, value=b'b'>",
        "      value: expected b'x', got b'b'",
        "  = <orders[0]@2: key=None, value=b'c'>",
        "  - missing: rec(key=b'k', value=b'd')",
    ]
    assert explain(expected, orders) == explain(orders, expected)
    assert orders != []
    assert explain(orders, []) == [
        "orders: 3 records, expected 0",
        *(f"  + not expected: {each!r}" for each in orders),
    ]
    assert explain([1], [2]) is None
    assert explain(orders, 5) is None


def test_the_difference_without_an_order_names_both_sides(kafka: Kafka) -> None:
    orders = kafka.topic("orders")
    orders.put_many([b"a", b"b"])
    compared = orders.in_any_order()
    assert compared != [rec(value=b"b"), rec(value=b"c")]
    assert explain(compared, [rec(value=b"b"), rec(value=b"c")]) == [
        "orders, in any order: 2 records, expected 2",
        "  + not expected: <orders[0]@0: key=None, value=b'a'>",
        "  = <orders[0]@1: key=None, value=b'b'>",
        "  - missing: rec(value=b'c')",
    ]


def test_the_explanation_is_of_the_records_that_were_compared(kafka: Kafka) -> None:
    orders = kafka.topic("orders")
    orders.put(b"a")
    assert orders != []
    orders.put(b"later")
    assert explain(orders, []) == [
        "orders: 1 record, expected 0",
        "  + not expected: <orders[0]@0: key=None, value=b'a'>",
    ]


def test_a_long_difference_shows_what_differs(kafka: Kafka) -> None:
    orders = kafka.topic("orders")
    orders.put_many([b"%d" % n for n in range(501)])
    expected = [rec(value=b"%d" % n) for n in range(501)]
    expected[300] = rec(value=b"x")
    assert orders != expected
    lines = explain(orders, expected)
    assert lines is not None
    assert lines[1] == "  (matching records are left out: 500)"
    assert lines[2:] == [
        "  ! <orders[0]@300: key=None, value=b'300'>",
        "      value: expected b'x', got b'300'",
    ]


def test_the_text_of_a_topic_lists_its_records(kafka: Kafka) -> None:
    orders = kafka.topic("orders")
    assert repr(orders) == "orders: no records"
    orders.put(b"x" * 1000, key=b"k")
    assert repr(orders).startswith("orders: 1 record\n  <orders[0]@0: key=b'k', value=b'xxx")
    assert "(1003 characters)" in repr(orders)
    orders.fill(100)
    assert "... 81 more ..." in repr(orders)
