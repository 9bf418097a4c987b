"""Reading a topic: order, isolation, choice of records, formats, bad names."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from embedlog.errors import ClosedError, ConfigError, LeaderNotAvailable, UnknownTopicOrPartition
from embedlog.testing import Kafka, LogRecord, Undecodable, rec
from embedlog.testing.interception import TIMELINE, Call, Proceed, Stages
from wire.api_keys import ApiKey


def test_records_are_sorted_by_partition_and_offset_whatever_wrote_them(any_kafka: Kafka) -> None:
    users = any_kafka.topic("users")
    users.put(b"late", partition=2)
    with any_kafka.producer() as producer:
        producer.send("users", b"first", b"k", partition=0, timestamp_ms=5, headers=[("h", b"v")])
        producer.send("users", None, partition=0, timestamp_ms=6)
    assert users.records() == [
        LogRecord("users", 0, 0, 5, b"k", b"first", (("h", b"v"),)),
        LogRecord("users", 0, 1, 6, None, None),
        rec(partition=2, offset=0, value=b"late"),
    ]
    assert users.values() == [b"first", None, b"late"]
    assert users.keys() == [b"k", None, None]
    assert len(users) == 3
    assert [each.offset for each in users] == [0, 1, 0]


def test_a_record_is_there_as_soon_as_its_producer_knows(any_kafka: Kafka) -> None:
    for acks in (0, 1, "all"):
        with any_kafka.producer(acks=acks, enable_idempotence=False) as producer:
            producer.send("orders", b"x").result()
            producer.flush()
    assert len(any_kafka.topic("orders")) == 3


@pytest.mark.slow
def test_uncommitted_and_aborted_records_belong_to_one_isolation_only(any_kafka: Kafka) -> None:
    orders = any_kafka.topic("orders")
    orders.put_aborted([b"aborted"])
    transaction = orders.transaction()
    transaction.put(b"open")
    orders.put(b"behind the open transaction")
    assert orders.values() == []
    assert orders.values(isolation="read_uncommitted") == [
        b"aborted",
        b"open",
        b"behind the open transaction",
    ]
    transaction.commit()
    assert orders.values() == [b"open", b"behind the open transaction"]


def test_records_since_an_offset_a_time_or_the_ends_of_before(any_kafka: Kafka) -> None:
    users = any_kafka.topic("users")
    users.put_many([rec(value=b"%d" % n, partition=n % 2, timestamp=n * 1000) for n in range(6)])
    ends = users.ends()
    assert ends == {0: 3, 1: 3, 2: 0}
    users.put(b"new", partition=1)
    assert users.values(since=ends) == [b"new"]
    assert users.values(since=2, partition=0) == [b"4"]
    assert users.values(since={1: 2}, partition=1) == [b"5", b"new"]
    moment = datetime.fromtimestamp(4, UTC)
    assert users.values(since=moment) == [b"4", b"5", b"new"]
    assert users.values(matching=rec(timestamp=moment)) == [b"4"]


def test_only_and_last_say_which_records_there_are(kafka: Kafka) -> None:
    orders = kafka.topic("orders")
    with pytest.raises(AssertionError, match="orders: no records"):
        orders.only()
    with pytest.raises(AssertionError, match="orders: no records"):
        orders.last()
    orders.put(b"a")
    assert orders.only().value == b"a"
    orders.put(b"b", timestamp=0)
    assert orders.last().value == b"b"  # of one partition the last, however old it is
    with pytest.raises(AssertionError, match=r"(?s)one record.*2 records.*'a'.*'b'"):
        orders.only()
    assert orders.only(rec(value=b"b")).offset == 1
    with pytest.raises(AssertionError, match=r"(?s)no record is rec\(value=b'c'\).*b'a'"):
        orders.last(rec(value=b"c"))


def test_last_of_several_partitions_is_the_newest(kafka: Kafka) -> None:
    users = kafka.topic("users")
    for partition, timestamp in ((0, 3000), (1, 5000), (2, 4000)):
        users.put(b"x", partition=partition, timestamp=timestamp)
    assert users.last().partition == 1


def test_deleted_records_are_gone_and_gaps_are_passed_over(any_kafka: Kafka) -> None:
    orders = any_kafka.topic("orders")
    orders.put_many([b"0", b"1", b"2"])
    orders.skip(10)
    orders.put(b"13")
    assert orders.delete_records(before=2) == {0: 2}
    assert [each.offset for each in orders] == [2, 13]
    assert orders.delete_records(before={0: -1}) == {0: 14}
    assert len(orders) == 0


@pytest.mark.slow
def test_all_segments_of_a_log_are_read(kafka: Kafka) -> None:
    kafka.create_topic("small", 1, config={"segment.bytes": 1024 * 1024, "retention.ms": -1})
    small = kafka.topic("small")
    small.fill(30_000, value_size=120)
    assert len(small) == 30_000
    assert [each.offset for each in small.records(since=29_998)] == [29_998, 29_999]


def test_a_format_holds_for_later_calls_and_for_decode_only_once(kafka: Kafka) -> None:
    kafka.topic("orders", key="int64", value="json").put({"id": 1}, key=7)
    again = kafka.topic("orders")
    assert again.keys() == [7]
    assert again.only().decoded_value == {"id": 1}
    assert again.values(decode="text") == ['{"id": 1}']
    assert again.values(decode=len) == [9]
    assert again.only().value == b'{"id": 1}'
    again.put(b"poison")
    with pytest.raises(Undecodable, match=r"b'poison' is not JSON"):
        again.values()
    assert len(again) == 2


def test_misspelt_names_are_refused_with_the_nearest(kafka: Kafka) -> None:
    with pytest.raises(UnknownTopicOrPartition, match="'ordres'; did you mean 'orders'"):
        kafka.topic("ordres")
    with pytest.raises(UnknownTopicOrPartition, match="known are 'orders', 'out', 'users'"):
        kafka.topic("zzz")
    with pytest.raises(TypeError, match="a topic's name is a str"):
        kafka.topic(7)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="format 'jsn'; did you mean 'json'"):
        kafka.topic("orders", value="jsn")
    with pytest.raises(ConfigError, match="'avro' needs a schema"):
        kafka.topic("orders", value="avro")
    orders = kafka.topic("orders")
    with pytest.raises(ConfigError, match="'read_comitted'.*did you mean 'read_committed'"):
        orders.records(isolation="read_comitted")
    with pytest.raises(UnknownTopicOrPartition, match="no partition 3, only 0 to 0"):
        orders.records(partition=3)
    with pytest.raises(TypeError, match="expected an offset"):
        orders.records(since="now")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected a rec"):
        orders.records(b"x")  # type: ignore[arg-type]


def test_a_closed_cluster_says_so() -> None:
    kafka = Kafka(topics={"orders": 1})
    orders = kafka.topic("orders")
    kafka.close()
    with pytest.raises(ClosedError):
        orders.records()
    with pytest.raises(ClosedError):
        kafka.topic("orders")


def test_reading_seeding_and_waiting_make_no_request(kafka: Kafka) -> None:
    seen: list[int] = []

    def note(call: Call, proceed: Proceed) -> Any:
        seen.append(call.context.api_key)
        return proceed(call)

    Stages(kafka.cluster).put(TIMELINE, note)
    orders = kafka.topic("orders")
    with kafka.assert_produces("orders", count=3):
        orders.put(b"x")
        orders.skip(1)
        orders.fill(2)
    assert len(orders) == 3
    assert not seen
    kafka.commit("g", {("orders", 0): 1})
    assert ApiKey.OFFSET_COMMIT in seen


def test_the_leader_is_read_also_after_a_change_of_leaders() -> None:
    topics = {"orders": {"partitions": 1, "replication_factor": 3}}
    with Kafka(brokers=3, topics=topics) as kafka:
        orders = kafka.topic("orders")
        orders.put(b"before")
        leader = kafka.partition("orders", 0).leader
        assert leader is not None
        kafka.broker(leader).stop()
        assert orders.values() == [b"before"]
        orders.put(b"after")
        kafka.broker(leader).start()
        assert orders.values() == [b"before", b"after"]


@pytest.mark.slow
def test_a_partition_without_a_leader_is_named() -> None:
    topics = {"orders": {"partitions": 1, "replication_factor": 1}}
    with Kafka(brokers=2, topics=topics) as kafka:
        orders = kafka.topic("orders")
        orders.put(b"x")
        leader = kafka.partition("orders", 0).leader
        assert leader is not None
        kafka.broker(leader).stop()
        with pytest.raises(LeaderNotAvailable, match=r"partition 0 of 'orders' has no leader"):
            orders.records()
