"""Tests that freeze time: time-outs end, and records are taken, from every client."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import freezegun
import pytest
import time_machine

import embedlog

PAST, FUTURE = "2020-01-01", "2040-01-01"
FROZEN: dict[str, Callable[[str], AbstractContextManager[Any]]] = {
    "freezegun": freezegun.freeze_time,
    "time-machine": lambda moment: time_machine.travel(moment, tick=False),
}


@pytest.fixture(params=FROZEN)
def freeze(request: pytest.FixtureRequest) -> Callable[[str], AbstractContextManager[Any]]:
    return FROZEN[request.param]


@contextlib.contextmanager
def lasting_at_least(seconds: float) -> Iterator[None]:
    """Measure with a clock that no library replaces."""
    began = time.clock_gettime(time.CLOCK_MONOTONIC)
    yield
    assert time.clock_gettime(time.CLOCK_MONOTONIC) - began >= seconds * 0.9


@pytest.mark.slow
@pytest.mark.parametrize("moment", [PAST, FUTURE])
@pytest.mark.parametrize("is_remote", [False, True])
def test_our_clients_go_on(freeze: Any, moment: str, is_remote: bool) -> None:
    with freeze(moment), embedlog.open() as cluster:
        cluster.create_topic("t")
        target = cluster.listen().address if is_remote else cluster
        with embedlog.Producer(target) as producer:
            producer.send("t", b"one").result(10)
            producer.send("t", b"two", timestamp_ms=1_600_000_000_000).result(10)
            producer.send_batch("t", [b"three"]).result(10)
        with embedlog.Consumer(target) as consumer:
            consumer.assign([("t", 0)])
            consumer.seek_to_beginning()
            found = consumer.poll(5_000)
            while len(found) < 3:
                found = [*found, *consumer.poll(5_000)]
            stamp = time.time_ns() // 1_000_000
            assert [record.timestamp for record in found] == [stamp, 1_600_000_000_000, stamp]
            with lasting_at_least(0.1):
                assert not consumer.poll(100)


@pytest.mark.slow
def test_time_that_is_frozen_after_the_clients_were_made(freeze: Any) -> None:
    with embedlog.open() as cluster, cluster.producer() as producer:
        producer.send("t", b"before").result()
        with freeze(PAST):
            stamp = time.time_ns() // 1_000_000
            assert producer.send("t", b"quick").result(5).timestamp == stamp
            slow = producer.send("t", b"slow", headers=[("a", b"")])
            assert slow.result(5).timestamp == stamp
            with cluster.consumer(group_id="g", auto_offset_reset="earliest") as consumer:
                consumer.subscribe(["t"])
                assert consumer.poll(5_000)


@pytest.mark.slow
def test_a_session_ends_in_frozen_time(freeze: Any) -> None:
    with freeze(PAST), embedlog.open(group_min_session_timeout_ms=1) as cluster:
        cluster.create_topic("t")
        address = cluster.listen().address
        settings = {"session_timeout_ms": 100, "heartbeat_interval_ms": 30}
        with embedlog.Consumer(address, group_id="g", **settings) as consumer:
            consumer.subscribe(["t"])
            while not consumer.assignment():
                consumer.poll(20)
            for _ in range(10):
                consumer.poll(20)
            assert consumer.assignment()


def test_the_asyncio_clients_go_on(freeze: Any) -> None:
    from embedlog.aio import Producer

    async def main(target: Any) -> None:
        async with Producer(target) as producer:
            assert (await producer.send("t", b"v")).offset == 0

    with freeze(PAST), embedlog.open() as cluster:
        cluster.create_topic("t")
        asyncio.run(main(cluster))
