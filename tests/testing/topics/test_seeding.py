"""Writing records as no producer would: times, gaps, tombstones, transactions, fillings."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Thread
from typing import Any

import pytest

from embedlog.errors import (
    ConfigError,
    IllegalState,
    InvalidRecord,
    MessageTooLarge,
    NotEnoughReplicas,
    OffsetOutOfRange,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from embedlog.testing import Kafka, Undecodable, rec

FAR = 4_000_000_000_000
"""The year 2096."""
NAIVE = datetime(2020, 1, 1)


def consumed(kafka: Kafka, topic: str, count: int) -> list[Any]:
    """Return the records that a consumer gets."""
    settings = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    found: list[Any] = []
    with kafka.consumer(group_id=f"readers of {topic}", **settings) as consumer:
        consumer.subscribe([topic])
        while len(found) < count:
            found += consumer.poll(5000)
    return found


def test_a_record_has_everything_that_was_given_and_consumers_get_it(any_kafka: Kafka) -> None:
    users = any_kafka.topic("users")
    written = users.put(
        "value", "key", timestamp=5, headers={"a": "1", "b": None, "c": b"\xff"}, partition=2
    )
    assert (written.partition, written.offset, written.timestamp) == (2, 0, 5)
    assert users.records() == [written]
    (found,) = consumed(any_kafka, "users", 1)
    assert (found.partition, found.offset, found.timestamp) == (2, 0, 5)
    assert (found.key, found.value) == (b"key", b"value")
    assert list(found.headers) == [("a", b"1"), ("b", None), ("c", b"\xff")]


def test_keys_choose_partitions_as_in_a_producer_and_others_take_turns(kafka: Kafka) -> None:
    users = kafka.topic("users")
    with kafka.producer() as producer:
        for number in range(20):
            sent = producer.append("users", b"x", b"key %d" % number)
            assert users.put(b"x", key=b"key %d" % number).partition == sent.partition
    assert [kafka.topic("users").put(b"x").partition for _ in range(4)] == [0, 1, 2, 0]
    many = users.put_many([b"a", rec(value=b"b", partition=0), b"c"])
    assert [each.partition for each in many] == [1, 0, 2]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"message.timestamp.before.max.ms": 1000, "message.timestamp.after.max.ms": 1000},
        {"message.timestamp.type": "LogAppendTime"},
    ],
    ids=["defaults", "limits", "append-time"],
)
def test_any_timestamp_is_written_also_several_in_one_call(
    kafka: Kafka, config: dict[str, object]
) -> None:
    kafka.create_topic("timed", 1, config={"retention.ms": -1, **config})
    timed = kafka.topic("timed")
    times = [0, FAR, 1, FAR + 5000, 86_400_000, 86_400_500]
    written = timed.put_many([rec(value=b"x", timestamp=each) for each in times])
    assert [each.timestamp for each in written] == times
    assert [each.timestamp for each in timed] == times
    assert [each.timestamp for each in consumed(kafka, "timed", 6)] == times
    moment = datetime(1999, 12, 31, tzinfo=UTC)
    assert timed.put(b"x", timestamp=moment).timestamp == 946_598_400_000


def test_an_ancient_record_stays_until_a_run_of_retention(kafka: Kafka) -> None:
    orders = kafka.topic("orders")
    orders.put(b"ancient", timestamp=0)
    assert orders.values() == [b"ancient"]
    kafka.cluster.maintain()
    assert orders.values() == []
    kafka.create_topic("kept", 1, config={"retention.ms": -1})
    kafka.topic("kept").put(b"ancient", timestamp=0)
    kafka.cluster.maintain()
    assert kafka.topic("kept").values() == [b"ancient"]


def test_gaps_of_offsets_are_passed_over_by_a_consumer(any_kafka: Kafka) -> None:
    orders = any_kafka.topic("orders")
    assert orders.skip(3) == 3
    assert orders.put(b"a").offset == 3
    assert orders.put(b"b", at_offset=4).offset == 4
    written = orders.put_many([rec(value=b"c", offset=100), b"d", rec(value=b"e", offset=9_999)])
    assert [each.offset for each in written] == [100, 101, 9_999]
    assert orders.skip(1) == 10_001
    assert [each.offset for each in consumed(any_kafka, "orders", 5)] == [3, 4, 100, 101, 9_999]
    with any_kafka.consumer(auto_offset_reset="earliest") as consumer:
        assert consumer.end_offsets([("orders", 0)]) == {("orders", 0): 10_001}
    with pytest.raises(IllegalState, match="ends at offset 10001: no record can get offset 5"):
        orders.put(b"x", at_offset=5)


def test_seeds_are_found_by_their_times(any_kafka: Kafka) -> None:
    orders = any_kafka.topic("orders")
    orders.put_many([rec(value=b"x", timestamp=1000 * n, offset=10 * n) for n in range(1, 5)])
    place = ("orders", 0)
    with any_kafka.consumer() as consumer:
        found = consumer.offsets_for_times({place: 2500})
        assert found[place].offset == 30
        assert found[place].timestamp == 3000


def test_a_gap_may_be_larger_than_a_batch(kafka: Kafka) -> None:
    orders = kafka.topic("orders")
    assert orders.put(b"x", at_offset=10_000_000_000).offset == 10_000_000_000
    assert [each.offset for each in consumed(kafka, "orders", 1)] == [10_000_000_000]


def test_a_gap_is_in_every_replica_and_survives_a_restart() -> None:
    topics = {"orders": {"partitions": 1, "replication_factor": 3}}
    with Kafka(brokers=3, topics=topics) as kafka:
        kafka.topic("orders").put_many([b"a", rec(value=b"b", offset=50)])
        assert set(kafka.partition("orders", 0).end_offsets.values()) == {51}
        for node in kafka.brokers:
            node.stop()
            node.start()
        assert [each.offset for each in kafka.topic("orders")] == [0, 50]
        kafka.topic("orders").put(b"c")
        assert kafka.topic("orders").values() == [b"a", b"b", b"c"]


def test_tombstones_and_compaction(kafka: Kafka) -> None:
    config = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.0, "segment.ms": 1}
    kafka.create_topic("state", 1, config=config)
    state = kafka.topic("state")
    state.put_many([rec(key=b"a", value=b"1", timestamp=1), rec(key=b"b", value=b"2", timestamp=2)])
    assert state.tombstone("a", timestamp=10).value is None
    state.put(b"3", key=b"b")
    kafka.cluster.maintain()
    assert rec(key=b"a", value=b"1") not in state.records()
    assert state.last().value == b"3"
    with pytest.raises(TypeError, match="a tombstone has a key"):
        state.tombstone(None)
    with pytest.raises(InvalidRecord):
        state.put(b"without a key")


def test_an_open_transaction_holds_readers_until_it_ends(any_kafka: Kafka) -> None:
    orders = any_kafka.topic("orders")
    with any_kafka.consumer(isolation_level="read_committed") as consumer:
        place = ("orders", 0)
        transaction = orders.transaction("tx")
        written = transaction.put("x", "k", headers={"h": "v"}, timestamp=5)
        assert (written.offset, written.timestamp, written.key) == (0, 5, b"k")
        other = transaction.put("y", topic="users", partition=1)
        assert (other.topic, other.partition) == ("users", 1)
        assert transaction.is_open
        assert consumer.end_offsets([place]) == {place: 0}
        assert repr(transaction) == "<transaction 'tx', open>"
        transaction.commit()
        assert consumer.end_offsets([place]) == {place: 2}
    assert orders.values() == [b"x"]
    assert any_kafka.topic("users").values() == [b"y"]
    for call in (transaction.commit, transaction.abort, lambda: transaction.put(b"z")):
        with pytest.raises(IllegalState, match="'tx' is committed"):
            call()


def test_a_transaction_as_a_block_commits_unless_an_error_leaves(kafka: Kafka) -> None:
    orders = kafka.topic("orders")
    with orders.transaction() as transaction:
        transaction.put_many([b"a", rec(value=b"b", key=b"k")])
    with pytest.raises(ZeroDivisionError), orders.transaction() as transaction:
        transaction.put(b"c")
        raise ZeroDivisionError
    with orders.transaction() as transaction:
        transaction.put(b"d")
        transaction.abort()
    assert orders.values() == [b"a", b"b"]
    assert not transaction.is_open


def test_two_transactions_may_be_open_side_by_side(kafka: Kafka) -> None:
    orders = kafka.topic("orders")
    first, second = orders.transaction(), orders.transaction()
    first.put(b"first")
    second.put(b"second")
    second.commit()
    assert orders.values() == []
    first.abort()
    assert orders.values() == [b"second"]


def test_an_open_transaction_at_the_end_warns_of_nothing(
    recwarn: pytest.WarningsRecorder, capfd: pytest.CaptureFixture[str]
) -> None:
    with Kafka(topics={"orders": 1}) as kafka:
        kafka.topic("orders").transaction().put(b"x")
    assert not recwarn.list
    assert capfd.readouterr() == ("", "")


def test_fill_depends_on_the_seed_alone(kafka: Kafka) -> None:
    kafka.create_topic("again", 3)
    for name in ("users", "again"):
        assert kafka.topic(name).fill(500, seed=1, key_count=7, start=0, interval_ms=10) == 500
    first, second = kafka.topic("users"), kafka.topic("again")
    facts = [[(each.partition, each.key, each.value, each.timestamp) for each in topic]
             for topic in (first, second)]  # fmt: skip
    assert facts[0] == facts[1]
    assert len({each.key for each in first}) == 7
    assert {len(each.value or b"") for each in first} == {100}
    assert max(each.timestamp for each in first) == 4990
    kafka.topic("orders").fill(500, seed=2, key_count=7)
    assert not set(kafka.topic("orders").values()) & set(first.values())


def test_fill_by_a_function(kafka: Kafka) -> None:
    users = kafka.topic("users", value="json")
    users.fill(3, make=lambda number: rec(key=f"k{number}", value={"id": number}), partition=1)
    assert users == [
        rec(key=f"k{number}", value={"id": number}, partition=1) for number in range(3)
    ]
    with pytest.raises(ConfigError, match="count=-1"):
        users.fill(-1)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches(kafka: Kafka, codec: str) -> None:
    orders = kafka.topic("orders")
    orders.put_many([b"x" * 100] * 10, compression=codec)
    assert orders.values() == [b"x" * 100] * 10
    assert len(consumed(kafka, "orders", 10)) == 10


def test_records_are_split_into_batches_that_the_topic_takes(kafka: Kafka) -> None:
    kafka.create_topic("narrow", 1, config={"max.message.bytes": 2000})
    narrow = kafka.topic("narrow")
    narrow.put_many([b"x" * 400] * 50)
    assert len(narrow) == 50
    with pytest.raises(MessageTooLarge):
        narrow.put(b"x" * 3000)
    assert len(kafka.topic("orders").put_many([])) == 0


def test_too_few_replicas_refuse_a_seed_as_a_producer() -> None:
    topics = {
        "orders": {
            "partitions": 1, "replication_factor": 2, "config": {"min.insync.replicas": 2},
        }
    }  # fmt: skip
    with Kafka(brokers=2, topics=topics) as kafka:
        kafka.broker(kafka.brokers[1].node_id).stop()
        with pytest.raises(NotEnoughReplicas):
            kafka.topic("orders").put(b"x")


def test_a_waiting_fetch_gets_a_seed_at_once(any_kafka: Kafka) -> None:
    with any_kafka.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([("orders", 0)])
        seeding = Thread(target=lambda: any_kafka.topic("orders").put(b"x"))
        seeding.start()
        found: list[Any] = []
        while not found:
            found = list(consumer.poll(100_000))
        seeding.join()
    assert found[0].value == b"x"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda t: t.put(5), TypeError, r"value 5 is int.*value=\"json\""),
        (lambda t: t.put(b"x", key=5), TypeError, r"key 5 is int"),
        (lambda t: t.put(b"x", timestamp="now"), TypeError, "timestamp 'now'"),
        (lambda t: t.put(b"x", timestamp=-5), ValueError, "timestamp -5"),
        (lambda t: t.put(b"x", timestamp=NAIVE), ValueError, "no time zone"),
        (lambda t: t.put(b"x", headers=[b"a"]), TypeError, "expected pairs"),
        (lambda t: t.put(b"x", headers={"a": 5}), TypeError, "header 'a': 5 is int"),
        (lambda t: t.put(b"x", partition=1), UnknownTopicOrPartition, "no partition 1"),
        (lambda t: t.put(b"x", partition="0"), UnknownTopicOrPartition, "no partition '0'"),
        (lambda t: t.put(b"x", compression="gzp"), ConfigError, "did you mean 'gzip'"),
        (lambda t: t.put_many(b"x"), TypeError, "expected a list"),
        (lambda t: t.put_many([rec(key=b"k")]), TypeError, "has no value to write"),
        (lambda t: t.skip(0), ConfigError, r"skip\(0\)"),
        (lambda t: t.delete_records("x"), ConfigError, "before='x'"),
    ],
)
def test_wrong_seeds_are_refused(
    kafka: Kafka, call: Callable[[Any], object], error: type[Exception], text: str
) -> None:
    orders = kafka.topic("orders")
    with pytest.raises(error, match=text):
        call(orders)
    assert len(orders) == 0


def test_a_gap_in_several_partitions_needs_a_choice(kafka: Kafka) -> None:
    with pytest.raises(ConfigError, match="which partition"):
        kafka.topic("users").skip(1)
    assert kafka.topic("users").skip(1, partition=2) == 1


def test_a_format_refuses_what_it_cannot_write(kafka: Kafka) -> None:
    orders = kafka.topic("orders", value="json", key="int32")
    orders.put(b"\xff raw bytes stay", key=b"raw")
    with pytest.raises(Undecodable, match="cannot be JSON"):
        orders.put({"a": object()})
    with pytest.raises(Undecodable, match="does not fit into int32"):
        orders.put({}, key=2**40)


def test_offsets_of_a_group(any_kafka: Kafka) -> None:
    any_kafka.topic("orders").fill(10)
    any_kafka.commit("g", {("orders", 0): 5})
    with any_kafka.consumer(group_id="g") as consumer:
        consumer.subscribe(["orders"])
        found: list[Any] = []
        while not found:
            found = list(consumer.poll(5000))
        assert found[0].offset == 5
        with pytest.raises(UnknownMemberId):
            any_kafka.commit("g", {("orders", 0): 1})


def test_offsets_that_cannot_be_are_refused(kafka: Kafka) -> None:
    with pytest.raises(OffsetOutOfRange, match="ends at offset 0, before 5; beyond_end=True"):
        kafka.commit("g", {("orders", 0): 5})
    kafka.commit("g", {("orders", 0): 5}, beyond_end=True)
    with pytest.raises(UnknownTopicOrPartition, match="did you mean 'orders'"):
        kafka.commit("g", {("ordrs", 0): 0})
    with pytest.raises(UnknownTopicOrPartition, match="no partition 7"):
        kafka.commit("g", {("orders", 7): 0})
    for offsets in ({}, [("orders", 0)], {"orders": 0}, {("orders", 0): -1}, {("orders", 0): "1"}):
        with pytest.raises(ConfigError, match="offset"):
            kafka.commit("g", offsets)  # type: ignore[arg-type]


def test_records_below_an_offset_are_deleted_in_each_partition(any_kafka: Kafka) -> None:
    users = any_kafka.topic("users")
    users.put_many([rec(value=b"x", partition=0)] * 3 + [rec(value=b"x", partition=1)])
    assert users.delete_records(before=2) == {0: 2, 1: 1, 2: 0}
    assert len(users) == 1
    with pytest.raises(OffsetOutOfRange):
        users.delete_records(before={0: 9})
