"""Clients that are dropped without `close` hold nobody up, and a ResourceWarning names them."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import embedlog
import embedlog.aio

PROTOCOLS = ["classic", "consumer"]
TRANSPORTS = ["in process", "tcp"]


@pytest.fixture(scope="module", autouse=True)
def _older_objects_are_not_searched() -> None:
    """Keep the objects of earlier tests out of the garbage collections here. Each collection took
    a tenth of a second after thousands of tests.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as cluster:
        cluster.create_topic("t", 2)
        with cluster.producer() as producer:
            for partition in range(2):
                producer.append("t", b"v", partition=partition)
        yield cluster


@pytest.fixture(params=TRANSPORTS)
def target(request: pytest.FixtureRequest, cluster: embedlog.Cluster) -> Any:
    return cluster if request.param == "in process" else cluster.listen().address


def settings(protocol: str) -> dict[str, Any]:
    return {
        "group_id": "g",
        "group_protocol": protocol,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }


def read(target: Any, protocol: str) -> None:
    """Read both records as the only member of the group, and drop the consumer."""
    consumer = embedlog.Consumer(target, **settings(protocol))
    consumer.subscribe(["t"])
    count = 0
    while count < 2:
        count += len(consumer.poll(100))


async def read_by_tasks(target: Any, protocol: str) -> None:
    consumer = embedlog.aio.Consumer(target, **settings(protocol))
    await consumer.subscribe(["t"])
    count = 0
    while count < 2:
        count += len(await consumer.poll(100))


@pytest.mark.slow
@pytest.mark.timeout(30)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_dropped_consumer_leaves_its_group(target: Any, protocol: str) -> None:
    for _ in range(3):
        with pytest.warns(ResourceWarning, match="of group 'g'.*was not closed") as warned:
            read(target, protocol)
            gc.collect()
        assert warned[0].filename == __file__


@pytest.mark.slow
@pytest.mark.timeout(30)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_dropped_consumer_of_asyncio_leaves_its_group(target: Any, protocol: str) -> None:
    async def main() -> None:
        for _ in range(3):
            await read_by_tasks(target, protocol)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.run(main())
        gc.collect()
        threads = [each for each in threading.enumerate() if "aio" in each.name]
        for thread in threads:
            thread.join(10)
        assert not any(each.is_alive() for each in threads)


@pytest.mark.timeout(30)
def test_the_thread_of_a_dropped_admin_of_asyncio_ends(target: Any) -> None:
    before = set(threading.enumerate())

    async def main() -> None:
        admin = embedlog.aio.Admin(target)
        assert list(await admin.list_topics()) == ["t"]

    asyncio.run(main())
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), thread


def test_a_closed_consumer_is_dropped_without_a_word(target: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with embedlog.Consumer(target, **settings("classic")) as consumer:
            consumer.subscribe(["t"])
            consumer.poll(100)
        del consumer
        gc.collect()


def test_a_dropped_consumer_of_a_closed_cluster_is_no_news() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cluster = embedlog.open()
        cluster.create_topic("t")
        consumer = cluster.consumer(group_id="g")
        consumer.subscribe(["t"])
        consumer.poll(10)
        cluster.close()
        del consumer
        gc.collect()


@pytest.mark.timeout(30)
def test_the_transaction_of_a_dropped_producer_is_aborted(
    target: Any, cluster: embedlog.Cluster
) -> None:
    def begin() -> None:
        producer = embedlog.Producer(target, transactional_id="x")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"never", partition=0).result()

    with pytest.warns(ResourceWarning, match="transactional.id='x' was not closed"):
        begin()
        gc.collect()
    with cluster.consumer(
        isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([("t", 0)])
        # The transaction's time-out is a minute.
        while consumer.end_offsets([("t", 0)])[("t", 0)] < 3:
            consumer.poll(10)
        consumer.seek_to_beginning()
        assert [record.value for record in consumer.poll(1000)] == [b"v"]


@pytest.mark.timeout(30)
def test_the_thread_of_a_dropped_producer_ends(cluster: embedlog.Cluster) -> None:
    address = cluster.listen().address
    before = set(threading.enumerate())
    threads: set[threading.Thread] = set()

    def send() -> None:
        embedlog.Producer(address).send("t", b"v").result()
        threads.update(set(threading.enumerate()) - before)

    send()
    gc.collect()
    (thread,) = threads
    thread.join(10)
    assert not thread.is_alive()
