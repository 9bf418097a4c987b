"""`assert_produces` and `assert_nothing_produced`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Thread

import pytest

from embedlog.errors import ConfigError, UnknownTopicOrPartition
from embedlog.testing import Kafka, json_like, rec


def in_thread(call: Callable[[], object]) -> None:
    Thread(target=call, daemon=True).start()


def test_a_block_waits_for_the_records_of_another_thread(any_kafka: Kafka) -> None:
    any_kafka.topic("orders").put(b"before")
    producer = any_kafka.producer()
    with any_kafka.assert_produces("orders", count=2, timeout=30) as new:
        in_thread(lambda: [producer.append("orders", b"%d" % n) for n in range(2)])
    assert [each.value for each in new] == [b"0", b"1"]
    assert new[0].offset == 1
    assert new.values() == [b"0", b"1"]
    assert new.keys() == [None, None]
    assert new == [rec(value=b"0"), rec(value=b"1")]
    any_kafka.topic("orders").put(b"after")
    assert len(new) == 2


def test_the_wait_ends_with_the_record_and_not_with_the_time(any_kafka: Kafka) -> None:
    clock = any_kafka.cluster.runtime.clock
    begin = clock.monotonic_ms()
    producer = any_kafka.producer()
    for _ in range(5):
        with any_kafka.assert_produces("users", timeout=100):
            in_thread(lambda: producer.append("users", b"x"))
    assert clock.monotonic_ms() - begin < 50_000


def test_too_few_records_fail_with_the_ones_that_came(kafka: Kafka) -> None:
    with (
        pytest.raises(AssertionError) as failure,
        kafka.assert_produces("orders", count=2, timeout=0.05),
    ):
        kafka.topic("orders").put(b"a", key=b"k")
    assert str(failure.value) == (
        "orders: expected 2 records, got 1 within 0.05 s\n  <orders[0]@0: key=b'k', value=b'a'>"
    )


def test_too_many_records_fail_at_once(kafka: Kafka) -> None:
    with (
        pytest.raises(AssertionError, match=r"expected 1 record, got 2\n.*b'a'.*\n.*b'b'"),
        kafka.assert_produces("orders", count=1, timeout=100),
    ):
        kafka.topic("orders").put_many([b"a", b"b"])


def test_a_quiet_time_finds_the_record_that_comes_too_much(kafka: Kafka) -> None:
    producer = kafka.producer()

    def later() -> None:
        with kafka.consumer(group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["orders"])
            while not consumer.poll(1000):
                pass
        producer.append("orders", b"again")

    with (
        pytest.raises(AssertionError, match="expected 1 record, got 2"),
        kafka.assert_produces("orders", count=1, timeout=100, quiet_ms=60_000),
    ):
        in_thread(later)
        producer.append("orders", b"x")


def test_a_range_and_at_least_one(kafka: Kafka) -> None:
    orders = kafka.topic("orders")
    for written in (2, 3):
        with kafka.assert_produces("orders", count=range(2, 4)):
            orders.put_many([b"x"] * written)
    with kafka.assert_produces("orders"):
        orders.put_many([b"x"] * 5)
    for written in (1, 4):
        with (
            pytest.raises(AssertionError, match=f"expected 2 to 3 records, got {written}"),
            kafka.assert_produces("orders", count=range(2, 4), timeout=0.01),
        ):
            orders.put_many([b"x"] * written)
    with (
        pytest.raises(AssertionError, match="expected at least 1 record, got 0"),
        kafka.assert_produces("orders", timeout=0.01),
    ):
        pass


def test_only_records_that_match_count(kafka: Kafka) -> None:
    orders = kafka.topic("orders", value="json")
    with kafka.assert_produces("orders", rec(value=json_like({"id": 1})), count=1) as new:
        orders.put_many([{"id": 2}, {"id": 1, "x": 0}, {"id": 3}])
    assert new.values() == [{"id": 1, "x": 0}]
    with (
        pytest.raises(AssertionError, match=r"(?s)got 0 within.*not rec.*\.id: expected 1, got 2"),
        kafka.assert_produces("orders", rec(value=json_like({"id": 1})), count=1, timeout=0.01),
    ):
        orders.put({"id": 2})


def test_transactional_records_count_once_they_are_committed(any_kafka: Kafka) -> None:
    orders = any_kafka.topic("orders")
    transaction = orders.transaction()
    transaction.put(b"x")
    with (
        pytest.raises(AssertionError, match="(?s)got 0.*not committed .open transaction"),
        any_kafka.assert_produces("orders", count=1, timeout=0.05),
    ):
        transaction.put(b"y")
    with any_kafka.assert_nothing_produced("orders", for_ms=20):
        transaction.put(b"z")
    with any_kafka.assert_produces("orders", count=3, timeout=30) as new:
        in_thread(transaction.commit)
    assert new.values() == [b"x", b"y", b"z"]
    with any_kafka.assert_nothing_produced("orders", for_ms=20):
        orders.put_aborted([b"aborted"])
    with any_kafka.assert_produces("orders", count=1, isolation="read_uncommitted"):
        orders.put_aborted([b"aborted"])


def test_an_error_in_the_block_is_raised_without_a_wait(kafka: Kafka) -> None:
    for block in (
        kafka.assert_produces("orders", timeout=1000),
        kafka.assert_nothing_produced("orders", for_ms=1_000_000),
    ):
        with pytest.raises(ZeroDivisionError), block:
            kafka.topic("orders").put(b"x")
            raise ZeroDivisionError


def test_nothing_produced_fails_at_the_first_record(any_kafka: Kafka) -> None:
    with any_kafka.assert_nothing_produced("orders", for_ms=5):
        any_kafka.topic("users").put(b"x")
    producer = any_kafka.producer()
    with (
        pytest.raises(AssertionError, match=r"orders: expected no record, got 1 record\n.*b'x'"),
        any_kafka.assert_nothing_produced("orders", for_ms=1_000_000),
    ):
        in_thread(lambda: producer.append("orders", b"x"))


def test_nothing_in_any_topic_includes_new_topics_but_no_internal_ones(any_kafka: Kafka) -> None:
    with any_kafka.assert_nothing_produced(for_ms=5):
        any_kafka.commit("g", {("orders", 0): 0})
    producer = any_kafka.producer()
    with (
        pytest.raises(AssertionError, match=r"any topic: expected no record.*\n.*made-anew"),
        any_kafka.assert_nothing_produced(for_ms=1_000_000),
    ):
        in_thread(lambda: producer.append("made-anew", b"x"))


def test_nothing_that_matches(kafka: Kafka) -> None:
    orders = kafka.topic("orders")
    with kafka.assert_nothing_produced("orders", rec(key=b"secret"), for_ms=0):
        orders.put(b"x", key=b"k")
    with (
        pytest.raises(AssertionError, match=r"no record that is rec\(key=b'secret'\)"),
        kafka.assert_nothing_produced("orders", rec(key=b"secret"), for_ms=0),
    ):
        orders.put(b"x", key=b"secret")


def test_an_input_that_led_to_no_output(kafka: Kafka) -> None:
    """`until` waits for the application, so that no time needs to pass."""
    kafka.topic("orders").put(b"poison")
    consumer = kafka.consumer(group_id="g", auto_offset_reset="earliest")
    consumer.subscribe(["orders"])

    def application() -> None:
        while not consumer.poll(1000):
            pass
        consumer.commit()

    calls = []
    with kafka.assert_nothing_produced("out", until=lambda: calls.append(application())):
        pass
    assert calls == [None]
    with (
        pytest.raises(AssertionError, match="out: expected no record"),
        kafka.assert_nothing_produced("out", until=lambda: kafka.topic("out").put(b"x")),
    ):
        pass


def test_a_topic_that_the_block_creates(any_kafka: Kafka) -> None:
    producer = any_kafka.producer()
    with any_kafka.assert_produces("made", count=1, timeout=30, missing_ok=True) as new:
        in_thread(lambda: producer.append("made", b"x"))
    assert new[0].topic == "made"
    with (
        pytest.raises(AssertionError, match="still no topic 'never'"),
        any_kafka.assert_produces("never", timeout=0.01, missing_ok=True),
    ):
        pass
    with any_kafka.assert_nothing_produced("never", for_ms=0, missing_ok=True):
        pass


def test_partitions_that_the_block_adds(kafka: Kafka) -> None:
    with kafka.assert_produces("orders", count=1) as new:
        with kafka.admin() as admin:
            admin.create_partitions({"orders": 3}).check()
        kafka.topic("orders").put(b"x", partition=2)
    assert new[0].partition == 2


def test_a_topic_that_was_made_anew_begins_at_its_first_record(kafka: Kafka) -> None:
    kafka.topic("orders").put_many([b"old"] * 3)
    with kafka.assert_produces("orders", count=1) as new:
        with kafka.admin() as admin:
            admin.delete_topics(["orders"]).check()
        kafka.create_topic("orders", 1)
        kafka.topic("orders").put(b"new")
    assert new.values() == [b"new"]


def test_the_wait_goes_on_at_the_next_leader() -> None:
    topics = {"orders": {"partitions": 1, "replication_factor": 3}}
    with Kafka(brokers=3, topics=topics) as kafka:
        producer = kafka.producer()
        leader = kafka.partition("orders", 0).leader
        assert leader is not None

        def application() -> None:
            producer.append("orders", b"first")
            kafka.broker(leader).stop()
            producer.append("orders", b"second")

        with kafka.assert_produces("orders", count=2, timeout=60) as new:
            in_thread(application)
        assert new.values() == [b"first", b"second"]


def test_a_block_in_an_event_loop_lets_the_loop_go_on(kafka: Kafka) -> None:
    async def main() -> list[bytes]:
        import embedlog.aio

        async with embedlog.aio.Producer(kafka.cluster) as producer:

            async def later() -> None:
                await asyncio.sleep(0)
                await producer.append("orders", b"x")

            async with kafka.assert_produces("orders", count=1, timeout=60) as new:
                task = asyncio.create_task(later())
            await task
            with pytest.raises(AssertionError, match="expected no record"):
                async with kafka.assert_nothing_produced("orders", for_ms=1_000_000):
                    task = asyncio.create_task(later())
            await task
        return [each.value or b"" for each in new]

    assert asyncio.run(main()) == [b"x"]


def test_wrong_arguments_are_refused_when_the_block_is_made(kafka: Kafka) -> None:
    with pytest.raises(UnknownTopicOrPartition, match="did you mean 'orders'"):
        kafka.assert_produces("ordrs")
    with pytest.raises(UnknownTopicOrPartition, match="did you mean 'orders'"):
        kafka.assert_nothing_produced("ordrs")
    for count in (0, -1, True, 1.5, range(0), range(1, 9, 2)):
        with pytest.raises(ConfigError, match="count="):
            kafka.assert_produces("orders", count=count)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="timeout="):
        kafka.assert_produces("orders", timeout=-1)
    with pytest.raises(ConfigError, match="for_ms="):
        kafka.assert_nothing_produced("orders", for_ms="x")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="until="):
        kafka.assert_nothing_produced("orders", until=5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="did you mean 'read_committed'"):
        kafka.assert_produces("orders", isolation="read_comitted")
    with pytest.raises(TypeError, match="expected a rec"):
        kafka.assert_produces("orders", b"x")  # type: ignore[arg-type]


def test_an_assertion_that_no_with_entered_warns(kafka: Kafka) -> None:
    with pytest.warns(RuntimeWarning, match="orders: nothing was asserted"):
        kafka.assert_nothing_produced("orders")


def test_no_watch_stays_behind(kafka: Kafka) -> None:
    with kafka.assert_nothing_produced(for_ms=1):
        pass
    manager = kafka.broker().core.replica_manager
    assert manager.when_hosted == []
    assert manager.fetch_purgatory.delayed == 0
