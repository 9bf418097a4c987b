"""The same calls on a `Kafka` and on a `RemoteKafka` of it have the same results and errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedlog.common import TopicPartition
from embedlog.errors import ConfigError, GroupIdNotFound, TimedOut, UnknownTopicOrPartition
from embedlog.testing import (
    Kafka,
    LogRecord,
    RemoteKafka,
    UnfiredFault,
    WaitTimedOut,
    any_,
    json_like,
    rec,
)


@pytest.fixture(params=["kafka", "remote"])
def either(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """A `Kafka`, and then a `RemoteKafka` of it: both are typed as `Kafka`."""
    with Kafka(topics={"t": 1, "two": 2}, clock="manual") as made:
        if request.param == "kafka":
            yield made
            return
        with RemoteKafka(made.control().url) as remote:
            yield remote


# Faults


def test_a_fault_acts_and_tells(either: Kafka) -> None:
    producer = either.producer()
    with either.fault("Produce", topic="t", error="NOT_ENOUGH_REPLICAS", times=2) as fault:
        producer.send("t", b"x").result()
        fault.wait(2)
        assert (fault.hits, fault.seen, fault.is_removed) == (2, 3, False)
        assert [each.api for each in fault.requests] == ["Produce"] * 3
        assert [each.hits for each in either.faults] == [2]
    assert fault.is_removed
    assert len(either.faults) == 0


def test_an_unfired_fault_fails(either: Kafka) -> None:
    with (
        pytest.raises(UnfiredFault, match="never acted; it saw 0 matching requests"),
        either.faults.not_enough_replicas(topic="t"),
    ):
        pass
    with either.fault("Produce", error="NOT_ENOUGH_REPLICAS", may_miss=True) as fault:
        with pytest.raises(TimedOut, match="for 1 hits"):
            fault.wait(timeout=0.01)
        with pytest.raises(TimedOut):
            asyncio.run(fault.wait_async(timeout=0.01))
    with pytest.raises(ZeroDivisionError), either.fault("Fetch", action="cut"):
        1 / 0
    either.faults.clear(may_miss=True)


def test_a_hold_is_released(either: Kafka) -> None:
    producer = either.producer()
    with either.hold("Produce", topic="t", times=2) as hold:
        first = producer.send("t", b"x")
        hold.wait()
        (held,) = hold.held
        assert (held.api, held.is_held, held.node_id) == ("Produce", True, 1)
        held.release()
        assert first.result().offset == 0
        assert not held.is_held
        second = producer.send("t", b"y")
        hold.wait(2)
        hold.held[0].cut()
        assert second.result().offset == 1
    with either.blackhole(client_id="nobody", may_miss=True):
        pass


def test_what_cannot_be_is_refused(either: Kafka) -> None:
    with pytest.raises(ConfigError, match="did you mean 'Produce'"):
        either.fault("Prodcue", error="NOT_ENOUGH_REPLICAS")
    with pytest.raises(ConfigError, match="did you mean 'NOT_ENOUGH_REPLICAS'"):
        either.fault("Produce", error="NOT_ENOUGH_REPLICA")
    with pytest.raises(ConfigError, match="needs to know whose"):
        either.blackhole()


def test_connections_suffer(either: Kafka) -> None:
    producer = either.producer()
    producer.send("t", b"x").result()
    if isinstance(either, RemoteKafka):
        assert [each.client_id for each in either.connections()]
    with either.toxic(latency=0.001, direction="to-broker", cut=True) as toxic:
        assert toxic.connections == 0
    either.cut_connections()
    assert either.name("word") == "word"
    producer.send("t", b"x").result()


# Topics


def test_a_topic_is_filled_and_read(either: Kafka, tmp_path: Path) -> None:
    topic = either.topic("t")
    written = topic.put(b"a", "k", timestamp=5, headers={"h": b"1"}, at_offset=3)
    expected = LogRecord("t", 0, 3, 5, b"k", b"a", (("h", b"1"),))
    assert written == expected
    assert topic.records() == [expected]
    assert topic == [rec(key=b"k", value=b"a", headers={"h": any_})]
    assert topic != [rec(value=b"b")]
    topic.tombstone("k")
    assert topic.values() == [b"a", None]
    assert topic.keys(since=4) == [b"k"]
    assert topic.last().value is None
    assert topic.only(rec(value=b"a")).offset == 3
    assert topic.ends() == {0: 5}
    assert topic.skip(2) == 7
    many = topic.put_many([b"x", rec(value=b'{"id": 1}', timestamp=9)])
    assert [each.offset for each in many] == [7, 8]
    assert [each.json() for each in topic.records(rec(value=json_like({"id": 1})))] == [{"id": 1}]
    assert topic.dump(tmp_path / "lines") == len(topic) == 4
    assert topic.delete_records({0: 8}) == {0: 8}
    assert len(either.topic("two").load(tmp_path / "lines")) == 4
    assert either.topic("two").fill(3, seed=1, partition=1) == 3
    with pytest.raises(AssertionError, match="expected one record"):
        either.topic("two").only()
    with pytest.raises(UnknownTopicOrPartition, match="did you mean 'two'"):
        either.topic("tow").records()
    assert either.topic("t", value="json").values() == [{"id": 1}]


def test_transactions_of_a_topic(either: Kafka) -> None:
    topic = either.topic("t")
    with topic.transaction("mine") as transaction:
        transaction.put(b"x")
        assert either.transaction("mine").state == "Ongoing"
        assert topic.values() == []
        assert len(topic.records(isolation="read_uncommitted")) == 1
    assert not transaction.is_open
    topic.put_aborted([b"never"])
    assert topic.values() == [b"x"]
    with pytest.raises(ZeroDivisionError), topic.transaction():
        1 / 0


def test_records_that_a_block_produces(either: Kafka) -> None:
    producer = either.producer()
    with either.assert_produces("t", rec(value=b"x"), count=1) as new:
        producer.send("t", b"x")
    assert new == [rec(value=b"x")]
    assert (new[0].offset, len(new), new.values()) == (0, 1, [b"x"])
    with either.assert_nothing_produced("two", for_ms=0):
        producer.send("t", b"y").result()
    with (
        pytest.raises(AssertionError, match="expected 1 to 2 records, got 3"),
        either.assert_produces("t", count=range(1, 3)),
    ):
        either.topic("t").fill(3)


# Groups, transactions, waits


def test_groups(either: Kafka) -> None:
    either.topic("t").fill(5)
    either.commit("g", {("t", 0): 3})
    group = either.group("g")
    place = TopicPartition("t", 0)
    assert (group.exists, group.state, group.members) == (True, "Empty", ())
    assert (group.committed, group.lags, group.lag) == ({place: 3}, {place: 2}, 2)
    assert [each.group_id for each in either.groups()] == ["g"]
    assert group.value == either.groups()[0]
    group.commit({("t", 0): 5})
    assert either.wait.lag("g", timeout=10) == {place: 0}
    assert either.wait.committed("g", {("t", 0): 4}) == {place: 5}
    assert either.wait.group("g", members=0).committed == {place: 5}
    assert asyncio.run(either.wait.aio.lag("g")) == {place: 0}
    group.configure(session_timeout_ms=50_000)
    group.assign({"a": [("t", 0)]})
    group.delete()
    with pytest.raises(GroupIdNotFound):
        group.rebalance()
    with pytest.raises(ConfigError, match="did you mean 'session_timeout_ms'"):
        group.configure(sesion_timeout_ms=1)


def test_waits(either: Kafka) -> None:
    either.topic("t").put(b"x")
    assert either.wait.records("t", 1) == 1
    assert either.wait.isr("t", 0, [1]) == {1}
    assert either.wait.leader("t", 0) == 1
    with pytest.raises(WaitTimedOut, match="waited 0.01 s for") as raised:
        either.wait.group("g", members=2, timeout=0.01)
    assert raised.value.seen
    with pytest.raises(WaitTimedOut, match="request"):
        either.wait.request("Fetch", timeout=0.01)
    with pytest.raises(ConfigError, match="did you mean"):
        either.wait.transaction("x", "Ongong")


def test_transactional_ids(either: Kafka) -> None:
    with either.topic("t").transaction("mine") as transaction:
        transaction.put(b"x")
        value = either.transaction("mine").value
        assert (value.state, value.partitions) == ("Ongoing", (TopicPartition("t", 0),))
        assert [each.transactional_id for each in either.transactions()] == ["mine"]
        with either.transactions.hold("mine", "PrepareCommit", partitions=[("t", 0)]) as held:
            transaction.commit()
            held.wait()
            assert held.is_holding
            assert either.wait.transaction("mine", "PrepareCommit").exists
    assert either.wait.transaction("mine", "CompleteCommit").exists
    either.transaction("mine").fence()
    with pytest.raises(Exception, match="has no open transaction"):
        either.transaction("mine").abort()


# Time, states, events


def test_the_clock(either: Kafka) -> None:
    clock = either.clock
    before, before_ms = clock.now(), clock.now_ms
    clock.jump(hours=3)
    assert (clock.now() - before).total_seconds() >= 10_800
    assert clock.now_ms - before_ms >= 10_800_000
    assert (clock.mode, clock.leap_count) == ("manual", 0)
    assert clock.timers()[0].in_seconds >= 0
    assert clock.expire_sessions() == 0
    either.topic("t").transaction("open").put(b"x")
    assert clock.expire_transactions() == ["open"]
    either.maintain()
    with pytest.raises(ConfigError, match="at least a millisecond"):
        clock.jump()


def test_states_come_back(either: Kafka, tmp_path: Path) -> None:
    either.topic("t").put(b"x")
    saved = either.snapshot()
    either.topic("t").put(b"y")
    either.restore(saved)
    assert either.topic("t").values() == [b"x"]
    assert saved.size > 0
    path = either.save(tmp_path / "state")
    with Kafka.load(path) as loaded:
        assert loaded.topic("t").values() == [b"x"]
    either.reset()
    assert either.topic("t").values() == []


def test_a_recording(either: Kafka, tmp_path: Path) -> None:
    with either.record(frames=True) as log:
        either.producer().send("t", b"x").result()
        log.note("log", "half-way", why="a test")
    assert log.count("Produce") == 1
    (event,) = log.requests("Produce", topic="t")
    assert (event.api, event.kind, event.fields["topics"]) == ("Produce", "request", ["t"])
    assert log.of_kind("log")[-1].why == "a test"
    assert str(event) in str(log) and event in list(log)
    log.write_json_lines(tmp_path / "lines")
    log.write_pcap(tmp_path / "pcap")
    assert (tmp_path / "lines").stat().st_size and (tmp_path / "pcap").stat().st_size


def test_leaks(either: Kafka) -> None:
    either.topic("t").transaction("open").put(b"x")
    (leak,) = either.leaks("transactions")
    assert (leak.kind, leak.what.partition(" ")[0]) == ("transactions", "'open'")
    with pytest.raises(ConfigError, match="did you mean 'threads'"):
        either.leaks("treads")


def test_partitions(either: Kafka) -> None:
    either.topic("t").put(b"x")
    partition = either.partition("t", 0)
    assert (partition.leader, partition.isr, partition.hw, partition.start) == (1, (1,), 1, 0)
    assert partition.end_offsets == {1: 1}
    assert partition.epochs[0].start_offset == 0
    assert len(partition.producers) <= 1


def test_functions_cannot_travel() -> None:
    with Kafka(topics={"t": 1}) as kafka, RemoteKafka(kafka.control().url) as remote:
        with pytest.raises(ConfigError, match="where: functions cannot travel"):
            remote.fault("Produce", error="NOT_ENOUGH_REPLICAS", where=lambda _request: True)
        with pytest.raises(ConfigError, match="matching: functions cannot travel"):
            remote.topic("t").records(rec(value=lambda value: value))
        with pytest.raises(AttributeError, match="only a test in the process of the cluster"):
            remote.wait.until(lambda: True)
        with pytest.raises(AttributeError, match="only a test in the process of the cluster"):
            remote.fork()
