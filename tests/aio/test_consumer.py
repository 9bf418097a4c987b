"""`embedlog.aio.Consumer`: the tests of the synchronous consumer, awaited, shared and cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import embedlog
from embedlog.aio import Consumer, Producer
from embedlog.client.consumer.rebalance_listener import ConsumerRebalanceListener
from embedlog.client.errors import IllegalState
from tests.aio.conftest import Run

Connect = Callable[[], Any]
EARLIEST = {"auto.offset.reset": "earliest"}
GROUP = {"group.id": "readers", "auto.offset.reset": "earliest", "enable.auto.commit": False}


def fill(cluster: embedlog.Cluster, topic: str, count: int, start: int = 0) -> None:
    """Write records b"0", b"1", ... to partition 0."""
    with cluster.producer() as producer:
        values = [b"%d" % number for number in range(start, start + count)]
        producer.send_batch(topic, values, partition=0).result()


async def read(consumer: Consumer, count: int) -> list[int]:
    """Poll until `count` records have come; return their numbers."""
    found: list[int] = []
    while len(found) < count:
        records = await consumer.poll(10_000)
        assert len(records), f"{len(found)} of {count} records"
        found += [int(record.value) for record in records]
    return found


def test_records_are_polled_in_three_ways(
    connect: Connect, cluster: embedlog.Cluster, run: Run
) -> None:
    fill(cluster, "ways", 1200)

    async def main() -> None:
        async with Consumer(connect(), EARLIEST) as consumer:
            await consumer.assign([("ways", 0)])
            assert await read(consumer, 1200) == list(range(1200))
            await consumer.seek_to_beginning()
            tuples: list[Any] = []
            while len(tuples) < 1200:
                for batch in await consumer.poll_batches(10_000):
                    tuples += batch.records
            await consumer.seek(("ways", 0), 0)
            columns: list[Any] = []
            while len(columns) < 1200:
                for part in await consumer.poll_columns(10_000):
                    columns += part.values()
            assert [int(each[3]) for each in tuples] == [int(each) for each in columns]
            assert len(await consumer.poll(0)) == 0
            assert len(await consumer.poll(1)) == 0

    run(main())


def test_iteration_goes_on_where_it_was_left(
    connect: Connect, cluster: embedlog.Cluster, run: Run
) -> None:
    fill(cluster, "on", 1500)

    async def main() -> None:
        async with Consumer(connect(), EARLIEST) as consumer:
            await consumer.assign([("on", 0)])
            found = []
            for end in (1, 2, 700, 1500):
                async for record in consumer:
                    found.append(int(record.value))
                    if len(found) == end:
                        break
            assert found == list(range(1500))

    run(main())


@pytest.mark.slow
def test_what_was_not_handed_out_counts_as_unread(
    connect: Connect, cluster: embedlog.Cluster, run: Run
) -> None:
    fill(cluster, "unread", 100)
    here = ("unread", 0)

    async def main() -> None:
        async with Consumer(connect(), GROUP) as consumer:
            await consumer.assign([here])
            async for record in consumer:
                if record.offset == 9:
                    await consumer.commit()
                    stored = (await consumer.committed([here]))[embedlog.TopicPartition(*here)]
                    assert stored is not None and stored.offset == 10
                if record.offset == 19:
                    break
            assert await consumer.position(here) == 20
            assert (await read(consumer, 1))[0] == 20
            await consumer.seek(here, 50)
            assert (await anext(consumer)).offset == 50
            await consumer.pause(here)
            assert len(await consumer.poll(1)) == 0
            await consumer.resume(here)
            assert (await anext(consumer)).offset == 51
        async with Consumer(connect(), GROUP, enable_auto_commit=True) as consumer:
            await consumer.assign([here])
            assert (await anext(consumer)).offset == 10
        async with Consumer(connect(), GROUP) as consumer:
            await consumer.assign([here])
            assert (await anext(consumer)).offset == 11, "the closed consumer has committed"

    run(main())


@pytest.mark.slow
def test_many_tasks_iterate_over_one_consumer(
    connect: Connect, cluster: embedlog.Cluster, run: Run
) -> None:
    fill(cluster, "shared", 5000)

    async def main() -> None:
        found: list[int] = []
        consumer = Consumer(connect(), EARLIEST, max_poll_records=100)

        async def worker() -> None:
            async for record in consumer:
                found.append(int(record.value))
                if len(found) % 7 == 0:
                    await asyncio.sleep(0)
                if len(found) == 5000:
                    await consumer.close()

        async with consumer:
            await consumer.assign([("shared", 0)])
            await asyncio.gather(*[worker() for _ in range(10)])
        assert sorted(found) == list(range(5000)), "each record once"

    run(main())


@pytest.mark.slow
def test_a_cancelled_poll_takes_nothing(connect: Connect, run: Run) -> None:
    """At any time: before it begins, while it waits, when it has just found records."""

    async def main() -> None:
        async with Producer(connect()) as producer, Consumer(connect(), GROUP) as consumer:
            await consumer.assign([("cut", 0)])
            sent = 0
            found: list[int] = []
            for turns in range(60):
                polling = asyncio.create_task(consumer.poll(10_000))
                written = producer.send("cut", b"%d" % sent)
                sent += 1
                for _ in range(turns % 20):
                    await asyncio.sleep(0)
                if turns % 3 == 0:
                    await written
                polling.cancel()
                try:
                    found += [int(record.value) for record in await polling]
                except asyncio.CancelledError:
                    assert await consumer.position(("cut", 0)) <= len(found)
                await written
            found += await read(consumer, sent - len(found)) if len(found) < sent else []
            assert found == list(range(sent))

    run(main())


def test_a_cancelled_poll_ends_at_once_and_the_consumer_goes_on(
    connect: Connect, cluster: embedlog.Cluster, run: Run
) -> None:
    fill(cluster, "later", 1)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with Consumer(connect(), EARLIEST) as consumer:
            await consumer.assign([("later", 0)])
            assert await read(consumer, 1) == [0]
            began = loop.time()
            for _ in range(5):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await consumer.poll(3_600_000)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(consumer), 0.01)
            assert loop.time() - began < 20
            fill(cluster, "later", 1, start=1)
            assert await read(consumer, 1) == [1]

    run(main())


@pytest.mark.slow
def test_a_call_goes_before_a_poll_that_waits(
    connect: Connect, cluster: embedlog.Cluster, run: Run
) -> None:
    fill(cluster, "busy", 1)

    async def main() -> None:
        async with Consumer(connect(), GROUP) as consumer:
            await consumer.assign([("busy", 0)])
            assert await read(consumer, 1) == [0]
            polling = asyncio.create_task(read(consumer, 1))
            await asyncio.sleep(0.01)
            await consumer.commit()
            assert await consumer.end_offsets([("busy", 0)]) == {("busy", 0): 1}
            assert await consumer.assignment() == {("busy", 0)}
            assert await consumer.current_lag(("busy", 0)) == 0
            assert not polling.done()
            fill(cluster, "busy", 1, start=1)
            assert await polling == [1]

    run(main())


def test_close_ends_what_waits(connect: Connect, cluster: embedlog.Cluster, run: Run) -> None:
    fill(cluster, "end", 1)

    async def main() -> None:
        consumer = Consumer(connect(), GROUP, enable_auto_commit=True)
        await consumer.subscribe(["end"])
        assert await read(consumer, 1) == [0]

        async def iterate() -> str:
            async for _ in consumer:
                raise AssertionError("there is nothing")
            return "ended"

        polls = [asyncio.create_task(consumer.poll(3_600_000)) for _ in range(3)]
        loop_over = asyncio.create_task(iterate())
        await asyncio.sleep(0.01)
        await asyncio.gather(consumer.close(), consumer.close())
        for polling in polls:
            with pytest.raises(embedlog.ClosedError):
                await polling
        assert await loop_over == "ended"
        with pytest.raises(embedlog.ClosedError):
            await consumer.poll()
        await consumer.close()
        async with Consumer(connect(), GROUP) as second:
            stored = await second.committed([("end", 0)])
            assert next(iter(stored.values())) == (1, "", 0)

    run(main())


def test_a_cancelled_close_is_made_to_the_end(
    connect: Connect, cluster: embedlog.Cluster, run: Run
) -> None:
    async def main() -> None:
        for turns in range(4):
            consumer = Consumer(connect(), GROUP)
            await consumer.subscribe(["left"])
            polling = asyncio.create_task(consumer.poll(3_600_000))
            await asyncio.sleep(0.01)
            closing = asyncio.create_task(consumer.close())
            for _ in range(turns):
                await asyncio.sleep(0)
            closing.cancel()
            await asyncio.wait([closing])
            if turns:
                assert closing.cancelled()
            await consumer.close()
            with pytest.raises(embedlog.ClosedError):
                await polling
            with pytest.raises(embedlog.ClosedError):
                await consumer.assignment()

    run(main())


def test_a_group_shares_partitions_and_listeners_hear_of_it(
    connect: Connect, cluster: embedlog.Cluster, run: Run
) -> None:
    cluster.create_topic("split", 2)
    with cluster.producer() as producer:
        for number in range(100):
            producer.send("split", b"%d" % number, partition=number % 2)
    calls: list[tuple[str, str, int]] = []

    class Report(ConsumerRebalanceListener):
        def __init__(self, name: str, consumer: Consumer) -> None:
            self.name = name
            self.consumer = consumer

        def on_partitions_assigned(self, partitions: list[Any]) -> None:
            calls.append((self.name, "assigned", len(partitions)))
            assert threading.current_thread().name == "embedlog-aio-consumer"
            self.consumer.blocking.position(("split", 0)) if len(partitions) == 2 else None

        def on_partitions_revoked(self, partitions: list[Any]) -> None:
            calls.append((self.name, "revoked", len(partitions)))
            self.consumer.blocking.commit()

    async def main() -> None:
        found: list[int] = []

        async def member(name: str) -> None:
            config = {**GROUP, "heartbeat.interval.ms": 20}
            async with Consumer(connect(), config) as consumer:
                await consumer.subscribe(["split"], listener=Report(name, consumer))
                while len(set(found)) < 100 or {"a", "b"} - {call[0] for call in calls}:
                    found.extend([int(record.value) for record in await consumer.poll(50)])
                    await consumer.commit()

        await asyncio.gather(member("a"), member("b"))
        assert set(found) == set(range(100))

    run(main())


def test_errors_are_the_same(connect: Connect, run: Run) -> None:
    class Awaited(ConsumerRebalanceListener):
        async def on_partitions_assigned(  # type: ignore[override]
            self, partitions: list[Any]
        ) -> None:
            return

    async def main() -> None:
        async with Consumer(connect()) as consumer:
            with pytest.raises(IllegalState, match="nothing to read"):
                await consumer.poll(1)
            with pytest.raises(embedlog.errors.InvalidGroupId):
                await consumer.subscribe(["t"])
            with pytest.raises(embedlog.errors.InvalidGroupId):
                await consumer.commit()
            with pytest.raises(TypeError, match="coroutine"):
                await consumer.subscribe(["t"], listener=Awaited())
            with pytest.raises(IllegalState, match="not assigned"):
                await consumer.seek(("t", 0), 1)
        async with Consumer("127.0.0.1:1") as unreachable:
            with pytest.raises(embedlog.TimedOut):
                await unreachable.list_topics(timeout_ms=20)

    run(main())


def test_in_process_a_poll_that_finds_records_needs_no_thread(
    cluster: embedlog.Cluster, run: Run
) -> None:
    fill(cluster, "quiet", 2000)

    async def main() -> None:
        before = threading.active_count()
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        async with Consumer(cluster, EARLIEST) as consumer:
            await consumer.seek_to_beginning()
            await consumer.assign([("quiet", 0)])
            async for record in consumer:
                if record.offset == 1999:
                    break
            assert turns >= 4, "other tasks run between two polls"
        counting.cancel()
        await asyncio.wait([counting])
        assert threading.active_count() <= before + 1

    run(main())


@pytest.mark.slow
def test_a_hundred_consumers_wait_at_once(cluster: embedlog.Cluster, run: Run) -> None:
    cluster.create_topic("wide", 50)

    async def main() -> None:
        async def one(number: int) -> int:
            async with Consumer(cluster, EARLIEST) as consumer:
                await consumer.assign([("wide", number)])
                return int((await anext(consumer)).value)

        waiting = [asyncio.create_task(one(number)) for number in range(50)]
        await asyncio.sleep(0.05)
        async with Producer(cluster) as producer:
            for number in range(50):
                await producer.send("wide", b"%d" % number, partition=number)
        assert await asyncio.gather(*waiting) == list(range(50))

    run(main())
