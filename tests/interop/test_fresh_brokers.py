"""A fresh broker for every test, whose topic a foreign client creates by producing to it."""

from __future__ import annotations

import time
from statistics import mean, median

import confluent_kafka
import pytest

import embedlog

COUNT = 200

pytestmark = pytest.mark.interop


def _one_test(number: int) -> float:
    """Return the milliseconds of one test: open, listen, produce, read, close."""
    began = time.perf_counter()
    with embedlog.open() as cluster:
        listener = cluster.listen()
        producer = confluent_kafka.Producer({"bootstrap.servers": listener.address})
        producer.produce("orders", b"order %d" % number)
        assert producer.flush(10) == 0
        del producer
        with cluster.consumer() as consumer:
            consumer.assign([("orders", 0)])
            consumer.seek_to_beginning()
            assert [record.value for record in consumer.poll(1000)] == [b"order %d" % number]
    return (time.perf_counter() - began) * 1000


def test_two_hundred_brokers_are_opened_used_and_closed() -> None:
    times_ms = [_one_test(number) for number in range(COUNT)]
    print(f"{COUNT} tests: mean {mean(times_ms):.1f} ms, median {median(times_ms):.1f} ms")
