"""A producer copies its arguments: the caller may change its lists afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import embedlog
import embedlog.aio


def clear(column: list[Any]) -> None:
    column.clear()


def shorten(column: list[Any]) -> None:
    del column[2:]


def replace(column: list[Any]) -> None:
    column[:] = [b"another"] * len(column)


def read(cluster: embedlog.Cluster) -> list[Any]:
    with cluster.consumer() as consumer:
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        return [(each.key, each.value, each.headers) for each in consumer.poll(5_000)]


SENT = [(b"k%d" % number, b"v%d" % number, (("n", b"%d" % number),)) for number in range(5)]


@pytest.mark.parametrize("change", [clear, shorten, replace])
@pytest.mark.parametrize("settings", [{}, {"compression_type": "gzip"}, {"linger_ms": 0}])
def test_lists_of_a_batch(
    connect: Callable[[], Any],
    cluster: embedlog.Cluster,
    change: Callable[[list[Any]], None],
    settings: dict[str, Any],
) -> None:
    cluster.create_topic("t", 1)
    keys, values, headers = map(list, zip(*SENT, strict=True))
    headers = [list(row) for row in headers]
    with embedlog.Producer(connect(), **settings) as producer:
        future = producer.send_batch("t", values, keys=keys, headers=headers)
        for column in (*headers, keys, values, headers):
            change(column)
        assert sum(part.record_count for part in future.result(10)) == 5
    assert read(cluster) == SENT


@pytest.mark.parametrize("is_known", [False, True])
def test_lists_and_buffers_given_to_the_asyncio_producer(
    connect: Callable[[], Any], cluster: embedlog.Cluster, is_known: bool
) -> None:
    """Also if the record first waits for metadata in a thread."""
    cluster.create_topic("t", 1)

    async def main() -> None:
        async with embedlog.aio.Producer(connect()) as producer:
            if is_known:
                await producer.partitions_for("t")
            values = [b"v%d" % number for number in range(5)]
            buffer = bytearray(b"buffer")
            futures = [producer.send_batch("t", values), producer.send("t", buffer)]
            values.clear()
            buffer[:] = b"CHANGE"
            await asyncio.gather(*futures)

    asyncio.run(main())
    assert [value for _, value, _ in read(cluster)] == [*[each[1] for each in SENT], b"buffer"]


def test_buffers_in_a_batch_are_copied(connect: Callable[[], Any], cluster: Any) -> None:
    cluster.create_topic("t", 1)
    with embedlog.Producer(connect()) as producer:
        buffers = [bytearray(b"v%d" % number) for number in range(3)]
        future = producer.send_batch("t", buffers)
        for buffer in buffers:
            buffer[:] = b"!!"
        future.result(10)
    assert [value for _, value, _ in read(cluster)] == [b"v0", b"v1", b"v2"]
