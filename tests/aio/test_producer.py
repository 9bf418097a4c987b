"""`embedlog.aio.Producer`: the tests of the synchronous producer, awaited."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.aio import Admin, Producer
from embedlog.client.errors import SerializationError
from embedlog.client.interceptors import InterceptorChain
from tests.aio.conftest import Run
from tests.support import left_over

Connect = Callable[[], Any]


def values_of(cluster: embedlog.Cluster, topic: str, partition: int = 0) -> list[Any]:
    """Return all records of a partition."""
    found: list[Any] = []
    with cluster.consumer(auto_offset_reset="earliest", max_poll_records=100_000) as consumer:
        consumer.assign([(topic, partition)])
        while records := consumer.poll(0):
            found += [record.value for record in records]
    return found


def test_a_record_is_written_when_send_returns(connect: Connect, run: Run) -> None:
    async def main() -> None:
        async with Admin(connect()) as admin:
            (await admin.create_topics({"events": 2})).check()
        async with Producer(connect()) as producer:
            written = await producer.send(
                "events", b"value", b"key", partition=1, timestamp_ms=7, headers=[("a", None)]
            )
            assert written == ("events", 1, 0, 7, 3, 5)
            assert (await producer.send("events", None, partition=1)).offset == 1
            (found,) = await producer.send_batch("events", [b"a", b"b"], partition=1)
            assert (found.offset, found.record_count) == (2, 2)
            assert await producer.send_batch("events", []) == []
            assert len(await producer.partitions_for("events")) == 2
            assert producer.metrics()["record-send-total"] == 4

    run(main())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "batches_max"),
    # Without linger a thread sends the present records as soon as the system lets it run.
    [({}, 100), ({"linger.ms": 0}, 500), ({"linger.ms": 5}, 100)],
    ids=str,
)
def test_many_tasks_send_at_once(
    connect: Connect, cluster: embedlog.Cluster, run: Run, settings: Any, batches_max: int
) -> None:
    async def main() -> None:
        async with Producer(connect(), settings) as producer:

            async def one(number: int) -> int:
                written = await producer.send("many", b"%d" % number)
                return int(written.offset)

            offsets = await asyncio.gather(*[one(number) for number in range(1000)])
            assert offsets == list(range(1000)), "tasks and records keep their order"
            batches = producer.metrics()["request-total"]
            assert batches < batches_max, "records of one turn of the loop are sent together"

    run(main())
    assert values_of(cluster, "many") == [b"%d" % number for number in range(1000)]


@pytest.mark.slow
def test_records_of_unawaited_futures_keep_their_order(
    connect: Connect, cluster: embedlog.Cluster, run: Run
) -> None:
    async def main() -> None:
        async with Producer(connect(), batch_size=2000) as producer:
            futures = [producer.send("ordered", b"%d" % number) for number in range(3000)]
            more = producer.send_batch("ordered", [b"%d" % number for number in range(3000, 3500)])
            await producer.flush(20)
            assert [future.result().offset for future in futures] == list(range(3000))
            assert more.result()[0].offset == 3000

    run(main())
    assert values_of(cluster, "ordered") == [b"%d" % number for number in range(3500)]


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_little_memory_makes_records_wait_not_fail(
    connect: Connect, cluster: embedlog.Cluster, run: Run, compression: str
) -> None:
    settings = {"buffer.memory": 6000, "batch.size": 2000, "compression.type": compression}

    async def main() -> None:
        async with Producer(connect(), settings) as producer:
            futures = [producer.send("full", b"%04d" % number * 50) for number in range(300)]
            more = producer.send_batch("full", [b"%04d" % number for number in range(300, 400)])
            await producer.flush(20)
            assert [future.result().offset for future in futures] == list(range(300))
            assert sum(found.record_count for found in more.result()) == 100

    run(main())
    assert [int(value[:4]) for value in values_of(cluster, "full")] == list(range(400))


def test_durable_records_are_synced_before_their_future_is_done(tmp_path: Path, run: Run) -> None:
    with embedlog.open(tmp_path / "data", durability="fsync") as cluster:

        async def main() -> None:
            async with Producer(cluster) as producer:
                written = [await producer.send("safe", b"%d" % number) for number in range(5)]
                assert [each.offset for each in written] == list(range(5))
                many = await asyncio.gather(*[producer.send("safe", b"x") for _ in range(100)])
                assert many[-1].offset == 104

        run(main())


def test_in_process_no_thread_is_started(cluster: embedlog.Cluster, run: Run) -> None:
    async def main() -> None:
        before = left_over.threads()
        async with Producer(cluster) as producer:
            await asyncio.gather(*[producer.send("quiet", b"v") for _ in range(100)])
            await producer.send_batch("quiet", [b"v"] * 100)
            await producer.flush()
            assert left_over.threads() <= before

    run(main())


def test_wrong_records_are_refused_at_once(connect: Connect, run: Run) -> None:
    def refuse(value: Any) -> bytes:
        raise RuntimeError(f"no {value}")

    async def main() -> None:
        async with Producer(connect()) as producer:
            await producer.send("strict", b"known")
            with pytest.raises(TypeError, match="not bytes"):
                await producer.send("strict", "text")
            with pytest.raises(ValueError, match="timestamp"):
                await producer.send("strict", b"", timestamp_ms=-1)
            with pytest.raises(ValueError, match="partition"):
                await producer.send("strict", b"", partition=-1)
            with pytest.raises(embedlog.errors.MessageTooLarge):
                await producer.send("strict", b"x" * 2_000_000)
            with pytest.raises(embedlog.errors.InvalidTopic):
                await producer.send("no such name!", b"")
        async with Producer(connect(), value_serializer=refuse) as producer:
            with pytest.raises(SerializationError, match="no 7"):
                await producer.send("strict", 7)
            with pytest.raises(SerializationError, match="no 8"):
                await producer.send("strict", 8)

    run(main())


def test_what_a_broker_refuses_fails_the_future(
    connect: Connect, cluster: embedlog.Cluster, run: Run
) -> None:
    cluster.create_topic("small", 1, config={"max.message.bytes": 200})

    async def main() -> None:
        async with Producer(connect()) as producer:
            with pytest.raises(embedlog.errors.MessageTooLarge):
                await producer.send("small", b"x" * 1000)
            assert (await producer.send("small", b"x")).offset == 0
            parts = await producer.send_batch("small", [b"x" * 100] * 5)
            assert sum(part.record_count for part in parts) == 5, "too large for one batch, so cut"

    run(main())


@pytest.mark.slow
def test_waiting_for_one_topic_holds_no_other_back(connect: Connect, run: Run) -> None:
    async def main() -> None:
        async with Producer("127.0.0.1:1", max_block_ms=300) as unreachable:
            lost = [unreachable.send("nowhere", b"%d" % number) for number in range(20)]
            async with Producer(connect()) as producer:
                assert (await producer.send("somewhere", b"")).offset == 0
            for future in lost:
                with pytest.raises(embedlog.TimedOut, match="nowhere"):
                    await future
            with pytest.raises(embedlog.TimedOut):
                await unreachable.partitions_for("nowhere")

    run(main())


def test_cancelling_an_await_does_not_take_the_record_back(
    connect: Connect, cluster: embedlog.Cluster, run: Run
) -> None:
    async def main() -> None:
        async with Producer(connect(), linger_ms=50) as producer:
            await producer.partitions_for("kept")
            waiting = asyncio.create_task(_awaited(producer.send("kept", b"still sent")))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await producer.flush()

    run(main())
    assert values_of(cluster, "kept") == [b"still sent"]


async def _awaited(future: asyncio.Future[Any]) -> Any:
    return await future


def test_close_settles_everything(connect: Connect, cluster: embedlog.Cluster, run: Run) -> None:
    async def main() -> None:
        producer = Producer(connect(), linger_ms=10_000, delivery_timeout_ms=100_000)
        futures = [producer.send("last", b"%d" % number) for number in range(10)]
        await asyncio.gather(producer.close(), producer.close())
        await producer.close()
        assert [future.result().offset for future in futures] == list(range(10))
        with pytest.raises(embedlog.ClosedError):
            producer.send("last", b"")
        with pytest.raises(embedlog.ClosedError):
            await producer.flush()

    run(main())


def test_close_gives_up_what_takes_too_long(run: Run) -> None:
    """A peer that accepts connections and says nothing."""

    async def main(address: str) -> None:
        producer = Producer(address)
        futures = [producer.send("silence", b"%d" % number) for number in range(10)]
        with pytest.raises(embedlog.TimedOut, match="10 calls had no outcome"):
            await producer.flush(0.05)
        await producer.close(0.05)
        for future in futures:
            with pytest.raises(embedlog.ClosedError):
                future.result()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        run(main(f"127.0.0.1:{silent.getsockname()[1]}"))


def test_a_cancelled_close_gives_up_what_is_on_its_way(run: Run) -> None:
    async def main(address: str) -> None:
        producer = Producer(address)
        future = producer.send("silence", b"")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await producer.close()
        with pytest.raises(embedlog.ClosedError):
            future.result()
        await producer.close()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        run(main(f"127.0.0.1:{silent.getsockname()[1]}"))


def test_interceptors_see_records_and_their_outcomes(connect: Connect, run: Run) -> None:
    seen: list[Any] = []

    class Stamp:
        def on_send(self, record: Any) -> Any:
            return record.replace(value=b"1:" + record.value)

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            seen.append((metadata.offset, error))

    assert len(InterceptorChain([Stamp], {})) == 1

    async def main() -> None:
        async with Producer(connect(), interceptor_classes=[Stamp]) as producer:
            written = await producer.send("seen", b"v")
            assert written.serialized_value_size == 3
            await producer.send_batch("seen", [b"a", b"b"])
        assert seen == [(0, None), (1, None), (2, None)]

    run(main())


def test_one_batch_settles_every_future_that_was_not_cancelled(connect: Connect, run: Run) -> None:
    async def main() -> list[Any]:
        async with Producer(connect(), linger_ms=50) as producer:
            await producer.send("events", b"first")  # the topic is known now
            futures: list[Any] = [producer.send("events", b"%d" % number) for number in range(5)]
            futures.append(producer.send_batch("events", [b"a", b"b"]))
            futures.append(producer.send("events", None, b"key"))
            futures[2].cancel()
            await producer.flush()
            assert all(future.done() for future in futures)
            assert futures.pop(2).cancelled()
            (batch,) = futures.pop(4).result()
            assert (batch.offset, batch.record_count) == (6, 2)
            return [future.result() for future in futures]

    written = run(main())
    assert [each.offset for each in written] == [1, 2, 4, 5, 8]
    assert [each.serialized_value_size for each in written] == [1, 1, 1, 1, -1]


@pytest.mark.slow
def test_one_batch_fails_every_future_with_its_error(connect: Connect, run: Run) -> None:
    async def main() -> list[Any]:
        async with Admin(connect()) as admin:
            settings = {"max.message.bytes": "200"}
            (await admin.create_topics([embedlog.NewTopic("small", 1, configs=settings)])).check()
        async with Producer(connect(), linger_ms=50) as producer:
            await producer.send("small", b"fits")
            sizes = (10, 900, 900, 20)
            futures = [producer.send("small", bytes(size)) for size in sizes]
            return await asyncio.gather(*futures, return_exceptions=True)

    fits, large, too_large, fits_too = run(main())
    assert isinstance(large, embedlog.errors.MessageTooLarge)
    assert isinstance(too_large, embedlog.errors.MessageTooLarge)
    assert (fits.offset, fits_too.offset) == (1, 2)
