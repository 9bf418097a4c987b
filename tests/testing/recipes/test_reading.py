"""Reading: positions, retention, compaction and transactions."""

from __future__ import annotations

import pytest

from embedlog.testing import rec

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.kafka(topics={"orders": 1})
def test_an_offset_out_of_range(kafka, service):
    """The position is out of range

    The records at the committed position are gone. The client goes where `auto.offset.reset` says.
    """
    kafka.topic("orders").put_many([b"%d" % number for number in range(10)])
    kafka.commit("billing", {("orders", 0): 3})
    kafka.topic("orders").delete_records(before=8)
    assert service.read("orders", 2) == [b"8", b"9"]


@pytest.mark.kafka(
    clock="manual", topics={"orders": {"partitions": 1, "config": {"retention.ms": 3_600_000}}}
)
def test_retention(kafka, service):
    """Retention passes the position

    Records of this morning are gone in the afternoon. The jump does the work of retention.
    """
    kafka.topic("orders").put_many([b"old 1", b"old 2"])
    kafka.commit("billing", {("orders", 0): 1})
    kafka.clock.jump(hours=6)
    kafka.topic("orders").put(b"new", timestamp=kafka.clock.now())
    assert service.read("orders", 1) == [b"new"]
    assert kafka.partition("orders", 0).start == 2


@pytest.mark.kafka(
    clock="manual",
    topics={
        "customers": {
            "partitions": 1,
            "config": {
                "cleanup.policy": "compact",
                "min.cleanable.dirty.ratio": 0.01,
                "delete.retention.ms": 60_000,
                "segment.ms": 60_000,
            },
        }
    },
)
def test_compaction(kafka, service):
    """Compaction and tombstones

    Only the last value of a key remains. A tombstone removes the key, and goes itself later.
    """
    customers = kafka.topic("customers")
    customers.put_many([rec(key="ann", value="1"), rec(key="bob", value="1")])
    customers.put_many([rec(key="ann", value="2"), rec(key="bob", value=None)])
    for _ in range(2):
        kafka.clock.jump(minutes=5)
        customers.put("last", "zoe", timestamp=kafka.clock.now())  # begins a new segment
        kafka.maintain()
    assert customers.values(matching=rec(key="ann")) == [b"2"]
    assert customers.values(matching=rec(key="bob")) == []
    assert service.read("customers", 2) == [b"2", b"last"]


@pytest.mark.kafka(topics={"orders": 1})
def test_gaps(kafka, service):
    """Gaps between offsets

    Offsets are not numbered without gaps: compaction and transactions leave some.
    """
    orders = kafka.topic("orders")
    orders.put(b"first")
    orders.skip(1_000)
    assert orders.put(b"second").offset == 1_001
    assert service.read("orders", 2) == [b"first", b"second"]


@pytest.mark.kafka(topics={"orders": 1})
def test_an_aborted_transaction(kafka, service):
    """A transaction is aborted

    At read_committed its records are invisible.
    """
    kafka.topic("orders").put_aborted([b"never", b"valid"])
    kafka.topic("orders").put(b"valid")
    assert service.read("orders", 1) == [b"valid"]
    assert len(kafka.topic("orders").records(isolation="read_uncommitted")) == 3


@pytest.mark.kafka(topics={"orders": 1})
def test_an_open_transaction(kafka, service):
    """An open transaction stops readers

    Readers at read_committed wait before the first record of an open transaction, although later
    records are valid.
    """
    transaction = kafka.topic("orders").transaction()
    transaction.put(b"1")
    kafka.topic("orders").put(b"2")
    assert kafka.partition("orders", 0).lso == 0
    transaction.commit()
    assert service.read("orders", 2) == [b"1", b"2"]


@pytest.mark.kafka(topics={"orders": 1})
def test_a_damaged_batch(kafka, consumer):
    """A batch is damaged on the way

    Its checksum is wrong once. The consumer must not deliver it, and fetches it again.
    """
    kafka.topic("orders").put(b"1")
    reader = consumer(check_crcs=True)
    reader.subscribe(["orders"])
    with kafka.fault("Fetch", topic="orders", action="corrupt-crc") as fault:
        message = reader.poll(30)
        while message.error():
            message = reader.poll(30)
    assert fault.hits == 1
    assert message.value() == b"1"
