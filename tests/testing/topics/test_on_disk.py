"""Seeds in files: what other programs and later openings find."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedlog.runtime import real_runtime
from embedlog.storage.verification.directory import DirectoryCheck
from embedlog.testing import Kafka, rec
from embedlog.testing.topics.diff import explain


def test_seeds_survive_a_reopening_and_pass_every_check(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    config = {"embedlog.durability": "fsync", "log.retention.ms": -1}
    topics = {"orders": 1, "state": {"partitions": 1, "config": {"cleanup.policy": "compact"}}}
    with Kafka(path=path, topics=topics, config=config) as kafka:
        orders = kafka.topic("orders")
        orders.skip(2)
        orders.put_many([rec(value=b"a", timestamp=0), rec(value=b"b", offset=5_000_000_000)])
        orders.put_aborted([b"aborted"])
        orders.put(b"c", compression="zstd")
        orders.skip(4)
        state = kafka.topic("state")
        state.put_many([rec(key=b"k", value=b"%d" % n, offset=n * 10) for n in range(5)])
        kafka.cluster.maintain()
        written = orders.records()
    check = DirectoryCheck(real_runtime().files, path, lambda _size: None, lambda _place: True)
    assert list(check.findings()) == []
    assert check.batch_count > 10
    with Kafka(path=path, config=config) as kafka:
        orders = kafka.topic("orders")
        assert orders == written, explain(orders, written)
        assert [each.offset for each in orders] == [2, 5_000_000_000, 5_000_000_003]
        assert orders.ends() == {0: 5_000_000_008}
        assert kafka.topic("state").last().value == b"4"
        assert kafka.cluster.health() == []


@pytest.mark.slow
def test_records_that_replicas_cannot_get_are_waited_for_once() -> None:
    topics = {"orders": {"partitions": 1, "replication_factor": 2}}
    config = {"replica.lag.time.max.ms": 600_000}
    with Kafka(brokers=2, topics=topics, config=config) as kafka:
        leader = kafka.partition("orders", 0).leader
        (other,) = [each.node_id for each in kafka.brokers if each.node_id != leader]
        clock, orders = kafka.cluster.runtime.clock, kafka.topic("orders")
        kafka.broker(other).pause()
        with kafka.producer(acks=1, enable_idempotence=False) as producer:
            producer.append("orders", b"x")
        assert orders.values() == []
        begin = clock.monotonic_ms()
        for _ in range(20):
            assert orders.values() == []
        assert clock.monotonic_ms() - begin < 5000
        kafka.broker(other).resume()
        with kafka.assert_produces("orders", missing_ok=True) as new:
            orders.put(b"y")
        assert orders.values() == [b"x", b"y"]
        assert new.values()[-1] == b"y"


def test_acknowledged_records_are_there_after_the_death_of_the_leader() -> None:
    topics = {"orders": {"partitions": 1, "replication_factor": 3}}
    with Kafka(brokers=3, topics=topics) as kafka:
        orders = kafka.topic("orders")
        orders.put_many([b"a", b"b"])
        leader = kafka.partition("orders", 0).leader
        assert leader is not None
        with kafka.assert_nothing_produced("orders", for_ms=0):
            kafka.broker(leader).kill()
        assert orders.values() == [b"a", b"b"]
