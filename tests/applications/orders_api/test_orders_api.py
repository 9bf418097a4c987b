"""Two hundred cases of the application, each with a fresh broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.applications.helpers import PATIENCE_S, part_of, put, read_all

from .app import create_app
from .settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.interop]

ITEM = {"sku": "a", "quantity": 1, "cents": 100}


class Shop:
    """The application over the cluster of a test."""

    def __init__(self, kafka: Any, topic: str, http: TestClient) -> None:
        self.kafka = kafka
        self.topic = topic
        self.http = http

    def place(self, order: dict[str, Any], status: int = 202) -> dict[str, Any]:
        answer = self.http.post("/orders", json=order)
        assert answer.status_code == status, answer.text
        return answer.json()

    def order(self, order_id: str, after: Any = None) -> dict[str, Any] | None:
        """Return an order as the view has it, after the event at a position."""
        at = {} if after is None else {name: after[name] for name in ("partition", "offset")}
        answer = self.http.get(f"/orders/{quoted(order_id)}", params=at)
        if answer.status_code == 404:
            return None
        assert answer.status_code == 200, answer.text
        return answer.json()

    def put(self, value: bytes | None, key: bytes | None) -> dict[str, int]:
        """Write an event beside the application."""
        sent = put(self.kafka, self.topic, value, key)
        return {"partition": sent.partition, "offset": sent.offset}

    def totals(self) -> dict[str, int]:
        return self.http.get("/totals").json()


def quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


@contextmanager
def running(kafka: Any, topic: str, **producer: Any) -> Iterator[Shop]:
    settings = Settings(
        topic,
        producer=kafka.client_config("aiokafka", "producer", **producer),
        consumer=kafka.client_config("aiokafka", "consumer"),
        patience_s=PATIENCE_S,
    )
    with TestClient(create_app(settings)) as http:
        yield Shop(kafka, topic, http)


@pytest.fixture
def topic(kafka: Any) -> str:
    name = kafka.name("orders")
    kafka.create_topic(name, 3)
    return name


@pytest.fixture
def shop(kafka: Any, topic: str) -> Iterator[Shop]:
    with running(kafka, topic) as shop:
        yield shop


def event(order_id: str, cents: int = 100, **more: Any) -> bytes:
    items = [{"sku": "a", "quantity": 1, "cents": cents}]
    return json.dumps({"type": "placed", "id": order_id, "items": items, **more}).encode()


# Orders that are taken

IDS = [
    "1",
    "a-b",
    "ä€",
    "日本",
    "🦆",
    "x" * 500,
    "a b",
    "a.b",
    "100%",
    "a&b=c",
    "'",
    '"',
    "\\",
    "\x01",
    "null",
    "/",
    "a/b",
    "?",
]
NOTES = [
    None,
    "",
    "two\nlines",
    "ß" * 3_000,
    "{}",
    "[1]",
    "null",
    "\u2028",
    "a\x00b",
    "x" * 200_000,
]
ITEMS = [
    [ITEM],
    [{**ITEM, "cents": 0}],
    [{**ITEM, "cents": 10**12}],
    [{**ITEM, "quantity": 1_000_000}],
    [{**ITEM, "quantity": 1_000_000, "cents": 10**12}],
    [ITEM] * 2,
    [{**ITEM, "sku": str(number)} for number in range(1_000)],
    [{"sku": "🦆", "quantity": 3, "cents": 7}],
    [{"sku": "x" * 100, "quantity": 2, "cents": 1}, ITEM],
    [{**ITEM, "cents": number} for number in range(50)],
]
TAKEN = (
    [{"id": each, "items": [ITEM]} for each in IDS]
    + [{"id": "n", "note": each, "items": [ITEM]} for each in NOTES]
    + [{"id": "i", "items": each} for each in ITEMS]
    + [{"id": f"c{number}", "customer": "c" * number, "items": [ITEM]} for number in range(6)]
)


@pytest.mark.parametrize("order", part_of(TAKEN, 5), ids=lambda each: ascii(each["id"])[:20])
def test_an_order_becomes_an_event_and_a_row_of_the_view(shop: Shop, order: Any) -> None:
    where = shop.place(order)
    row = shop.order(order["id"], where)
    assert row == {
        "id": order["id"],
        "customer": order.get("customer", ""),
        "note": order.get("note"),
        "count": sum(each["quantity"] for each in order["items"]),
        "cents": sum(each["quantity"] * each["cents"] for each in order["items"]),
        "state": "placed",
    }
    [record] = read_all(shop.kafka, shop.topic)
    assert (record.partition, record.offset) == (where["partition"], where["offset"])
    assert record.key == order["id"].encode()
    assert record.headers == {"type": b"placed"}
    assert json.loads(record.value or b"")["items"] == order["items"]


# Orders that are refused

REFUSED: list[Any] = [
    {},
    [],
    None,
    "order",
    {"id": "1"},
    {"items": [ITEM]},
    {"id": "", "items": [ITEM]},
    {"id": "x" * 501, "items": [ITEM]},
    {"id": 1, "items": [ITEM]},
    {"id": None, "items": [ITEM]},
    {"id": "1", "items": []},
    {"id": "1", "items": None},
    {"id": "1", "items": "a"},
    {"id": "1", "items": [{}]},
    {"id": "1", "customer": 5, "items": [ITEM]},
    {"id": "1", "note": ["x"], "items": [ITEM]},
    *({"id": "1", "items": [{**ITEM, "sku": each}]} for each in ("", "x" * 101, None, 1)),
    *({"id": "1", "items": [{**ITEM, "quantity": each}]} for each in (0, -1, 1_000_001, 1.5)),
    *({"id": "1", "items": [{**ITEM, "cents": each}]} for each in (-1, 10**12 + 1, "x", None)),
    *({"id": "1", "items": [{**ITEM, name: []}]} for name in ITEM),
]


@pytest.mark.parametrize("order", part_of(REFUSED, 2), ids=lambda each: repr(each)[:30])
def test_a_wrong_order_leaves_no_event(shop: Shop, order: Any) -> None:
    assert shop.http.post("/orders", json=order).status_code == 422
    assert read_all(shop.kafka, shop.topic) == []
    assert shop.totals() == {"orders": 0, "cents": 0, "skipped": 0}


# Life of an order

LIVES = [
    (tuple(steps), cents)
    for cents in (0, 1, 250)
    for steps in (
        ["place", "cancel"],
        ["place", "cancel", "cancel"],
        ["place", "place"],
        ["place", "cancel", "place"],
        ["place", "erase"],
        ["place", "erase", "place"],
        ["place", "cancel", "erase"],
        ["erase", "place"],
    )
]


@pytest.mark.parametrize(("steps", "cents"), part_of(LIVES, 3))
def test_the_view_follows_the_life_of_an_order(shop: Shop, steps: Any, cents: int) -> None:
    state = None
    for step in steps:
        if step == "place":
            where = shop.place({"id": "1", "items": [{**ITEM, "cents": cents}]})
            state = state or "placed"
        elif step == "cancel":
            answer = shop.http.post("/orders/1/cancel")
            assert answer.status_code == 202
            where, state = answer.json(), "cancelled"
        else:
            where, state = shop.put(None, b"1"), None
        row = shop.order("1", where)
        assert (row and row["state"]) == state
    assert shop.totals()["cents"] == (cents if state == "placed" else 0)


# Events that come more than once, or late

COPIES = [(copies, orders) for copies in (2, 3, 10) for orders in (1, 2, 5, 20)]


@pytest.mark.parametrize(("copies", "orders"), part_of(COPIES, 2))
def test_copies_of_an_event_count_once(shop: Shop, copies: int, orders: int) -> None:
    ids = [f"o{number}" for number in range(orders)]
    sent = [shop.put(event(each, 7), each.encode()) for _ in range(copies) for each in ids]
    for where in sent:
        shop.order(ids[0], where)
    assert shop.totals() == {"orders": orders, "cents": 7 * orders, "skipped": 0}


@pytest.mark.parametrize("before", part_of([0, 1, 2, 3, 5, 10, 50, 200], 2))
def test_a_restart_reads_all_events_again(kafka: Any, topic: str, before: int) -> None:
    with running(kafka, topic) as shop:
        for number in range(min(before, 3)):
            shop.place({"id": f"h{number}", "items": [ITEM]})
    for number in range(3, before):
        kafka.producer().send(topic, event(f"h{number}"), f"h{number}".encode())
    kafka.producer().flush(PATIENCE_S)
    last = [put(kafka, topic, None, b"nobody", partition=each) for each in range(3)]
    with running(kafka, topic) as shop:
        for where in last:
            shop.order("", {"partition": where.partition, "offset": where.offset})
        assert shop.totals() == {"orders": before, "cents": 100 * before, "skipped": 0}


# Events that nobody can read

POISON: list[tuple[bytes | None, bytes | None]] = [
    (b"1", each)
    for each in (
        b"",
        b"\x00",
        b"\xff\xfe",
        b"{",
        b"[]",
        b"1",
        b"null",
        b'"x"',
        b"{}",
        b'{"id": "1"}',
        b'{"id": 1, "type": "placed", "items": []}',
        b'{"id": "1", "type": "moved"}',
        b'{"id": "1", "type": null}',
        b'{"id": "1", "type": "cancelled"}',
        b'{"id": "1", "type": "placed"}',
        b'{"id": "1", "type": "placed", "items": [{}]}',
        b'{"id": "1", "type": "placed", "items": [1]}',
        b'{"id": "1", "type": "placed", "items": [{"quantity": 1, "cents": "x"}]}',
        b'{"id": "1", "type": "placed", "items": [{"quantity": 0.5, "cents": 1}]}',
        b'{"id": "1", "type": "placed", "items": [{"quantity": null, "cents": 1}]}',
        b"[" * 100_000,
        b"x" * 500_000,
    )
] + [(None, event("1")), (b"2", event("1")), (b"\xff", event("1")), (b"", event("1"))]


@pytest.mark.parametrize(("key", "value"), part_of(POISON, 3), ids=lambda each: repr(each)[:30])
def test_a_poison_pill_is_skipped(shop: Shop, key: bytes | None, value: bytes) -> None:
    for partition in range(3):
        put(shop.kafka, shop.topic, value, key, partition=partition)
    good = [put(shop.kafka, shop.topic, event("g"), b"g", partition=each) for each in range(3)]
    for each in good:
        row = shop.order("g", {"partition": each.partition, "offset": each.offset})
        assert row is not None
        assert row["cents"] == 100
    assert shop.totals() == {"orders": 1, "cents": 100, "skipped": 3}


# Faults

PASSING = [
    (error, times)
    for error in (
        "NOT_LEADER_OR_FOLLOWER",
        "LEADER_NOT_AVAILABLE",
        "NOT_ENOUGH_REPLICAS",
        "REQUEST_TIMED_OUT",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "KAFKA_STORAGE_ERROR",
    )
    for times in (1, 2, 3)
]


@pytest.mark.parametrize(("error", "times"), part_of(PASSING, 3))
def test_an_order_survives_passing_errors(shop: Shop, error: str, times: int) -> None:
    with shop.kafka.fault("Produce", topic=shop.topic, error=error, times=times) as fault:
        where = shop.place({"id": "1", "items": [ITEM]})
    assert fault.hits == times
    assert shop.order("1", where) is not None
    assert len(read_all(shop.kafka, shop.topic)) == 1


LASTING = [
    (error, status)
    for error, status in (
        ("MESSAGE_TOO_LARGE", 503),
        ("TOPIC_AUTHORIZATION_FAILED", 503),
        ("INVALID_RECORD", 503),
        ("RECORD_LIST_TOO_LARGE", 503),
        ("POLICY_VIOLATION", 503),
        ("INVALID_TIMESTAMP", 503),
    )
]


@pytest.mark.parametrize(("error", "status"), part_of(LASTING, 2))
def test_an_order_that_kafka_refuses_is_told(shop: Shop, error: str, status: int) -> None:
    with (
        shop.kafka.fault("Produce", topic=shop.topic, error=error),
        shop.kafka.assert_nothing_produced(shop.topic, for_ms=0),
    ):
        answer = shop.place({"id": "1", "items": [ITEM]}, status)
    assert "not taken" in answer["detail"]
    assert shop.order("1") is None


CUTS = [
    (action, orders, nth)
    for action in ("cut", "cut-after-apply")
    for orders in (1, 2, 3)
    for nth in (1, 2, 3)
    if nth <= orders
]


@pytest.mark.parametrize(("action", "orders", "nth"), part_of(CUTS, 2))
def test_a_lost_connection_neither_loses_nor_doubles_orders(
    shop: Shop, action: Any, orders: int, nth: int
) -> None:
    with shop.kafka.fault("Produce", topic=shop.topic, action=action, nth=nth):
        for number in range(orders):
            where = shop.place({"id": f"o{number}", "items": [ITEM]})
            assert shop.order(f"o{number}", where) is not None
    assert shop.totals() == {"orders": orders, "cents": 100 * orders, "skipped": 0}
    assert len(shop.kafka.topic(shop.topic).records()) == orders


FETCHES: list[dict[str, Any]] = [
    {"error": "NOT_LEADER_OR_FOLLOWER"},
    {"error": "UNKNOWN_TOPIC_OR_PARTITION"},
    {"error": "KAFKA_STORAGE_ERROR"},
    {"error": "FENCED_LEADER_EPOCH"},
    {"error": "UNKNOWN_LEADER_EPOCH"},
    {"action": "cut"},
    {"action": "delay", "seconds": 0.05},
    {"action": "throttle", "ms": 50},
]


@pytest.mark.parametrize(
    "fault", part_of(FETCHES, 2), ids=lambda each: "-".join(map(str, each.values()))
)
@pytest.mark.parametrize("times", [1, 2])
def test_the_view_survives_errors_of_fetches(shop: Shop, fault: Any, times: int) -> None:
    with shop.kafka.fault("Fetch", topic=shop.topic, times=times, **fault):
        for number in range(times + 1):
            where = shop.place({"id": f"o{number}", "items": [ITEM]})
            assert shop.order(f"o{number}", where) is not None
    assert shop.totals()["orders"] == times + 1
