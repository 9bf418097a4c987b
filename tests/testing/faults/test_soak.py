"""Faults by chance, all at once: no record is lost, and none is there twice."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import embedlog
from embedlog.testing import Kafka

COUNT = 60
PRODUCE: list[dict[str, Any]] = [
    {"action": "cut"},
    {"action": "cut-after-apply"},
    {"action": "truncate"},
    {"error": "NOT_ENOUGH_REPLICAS"},
    {"error": "REQUEST_TIMED_OUT"},
    {"action": "delay", "seconds": 0.01},
    {"action": "delay", "seconds": 0.01, "after_apply": True},
    {"action": "corrupt-crc"},
]
FETCH: list[dict[str, Any]] = [
    {"action": "cut"},
    {"error": "NOT_LEADER_OR_FOLLOWER"},
    {"action": "truncate"},
    {"action": "delay", "seconds": 0.02},
]


@pytest.mark.slow
@pytest.mark.parametrize("brokers", [1, 3])
def test_idempotent_producers_and_a_consumer_outlast_every_fault(brokers: int) -> None:
    with Kafka(brokers=brokers, topics={"t": 3}) as kafka:
        for seed, action in enumerate(PRODUCE):
            kafka.fault("Produce", topic="t", chance=0.05, seed=seed, may_miss=True, **action)
        for seed, action in enumerate(FETCH):
            kafka.fault("Fetch", topic="t", chance=0.05, seed=seed, may_miss=True, **action)
        address = kafka.bootstrap_servers

        def produce(name: int) -> None:
            target = address if name % 2 else kafka.cluster
            with embedlog.Producer(target, enable_idempotence=True, retry_backoff_ms=1) as producer:
                for number in range(COUNT):
                    value = b"%d-%d" % (name, number)
                    producer.send("t", value, partition=number % 3).result()

        threads = [threading.Thread(target=produce, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        found: list[bytes] = []
        with embedlog.Consumer(
            address, auto_offset_reset="earliest", retry_backoff_ms=1
        ) as consumer:
            consumer.assign([("t", partition) for partition in range(3)])
            while len(found) < 4 * COUNT:
                found += [record.value for record in consumer.poll(500)]
        for thread in threads:
            thread.join()
        wanted = [b"%d-%d" % (name, number) for name in range(4) for number in range(COUNT)]
        assert sorted(found) == sorted(wanted)
        assert sum(rule.hits for rule in kafka.faults) > COUNT // 2
