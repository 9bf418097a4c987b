"""`embedlog.aio.ShareConsumer`: awaited, shared by tasks, and cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from embedlog import AcknowledgeType, ClosedError, IllegalState, TopicPartition
from embedlog.aio import ShareConsumer
from embedlog.runtime import real_runtime
from tests.aio.conftest import Run
from tests.client.share.places import EXPLICIT
from tests.client.share.scripted_share_broker import ScriptedShareBroker
from wire.schemas.share_fetch import ShareFetchRequest

HERE = TopicPartition("jobs", 0)


def consumer_of(broker: ScriptedShareBroker, **settings: Any) -> ShareConsumer:
    return ShareConsumer(broker.transport(), {"group.id": "workers", **EXPLICIT}, **settings)


@pytest.fixture
def broker() -> ScriptedShareBroker:
    made = ScriptedShareBroker({"jobs": 1}, real_runtime())
    made.write("jobs", b"a", b"b")
    return made


def test_records_are_polled_and_acknowledged(broker: ScriptedShareBroker, run: Run) -> None:
    told: list[Any] = []

    async def main() -> None:
        async with consumer_of(broker) as consumer:
            await consumer.set_acknowledgement_commit_callback(lambda *each: told.append(each))
            await consumer.subscribe(["jobs"])
            first, second = await consumer.poll(0)
            await consumer.acknowledge(first)
            await consumer.acknowledge_offset(HERE, second.offset, AcknowledgeType.REJECT)
            assert await consumer.commit_sync() == {HERE: None}
            assert await consumer.acquisition_lock_timeout_ms() == 30_000
            assert (await consumer.metrics())["acknowledgements-send-total"] == 2

    run(main())
    assert broker.done["jobs", 0] == {0: 1, 1: 3}
    assert told == [({HERE: {0, 1}}, None)]


def test_a_cancelled_poll_gives_its_records_to_the_next(
    broker: ScriptedShareBroker, run: Run
) -> None:
    async def main() -> None:
        async with consumer_of(broker) as consumer:
            await consumer.subscribe(["jobs"])
            poll = asyncio.ensure_future(consumer.poll(0))

            def cancel(request: Any) -> Any:
                if isinstance(request, ShareFetchRequest):
                    broker.faults.clear()
                    asyncio.run_coroutine_threadsafe(cancelled(poll), loop).result()
                return broker.answer(request)

            async def cancelled(task: asyncio.Future[Any]) -> None:
                task.cancel()

            loop = asyncio.get_running_loop()
            broker.faults.append(cancel)
            with pytest.raises(asyncio.CancelledError):
                await poll
            records = list(await consumer.poll(0))
            assert [record.delivery_count for record in records] == [1, 1]
            for record in records:
                await consumer.acknowledge(record)
            assert await consumer.commit_sync() == {HERE: None}

    run(main())
    assert broker.done["jobs", 0] == {0: 1, 1: 1}


def test_a_closed_consumer_refuses_calls(broker: ScriptedShareBroker, run: Run) -> None:
    async def main() -> None:
        consumer = consumer_of(broker)
        await consumer.subscribe(["jobs"])
        assert await consumer.subscription() == {"jobs"}
        await consumer.unsubscribe()
        with pytest.raises(IllegalState):
            await consumer.poll(0)
        await consumer.close()
        await consumer.close()
        with pytest.raises(ClosedError):
            await consumer.poll(0)

    run(main())


def test_a_coroutine_is_no_callback(broker: ScriptedShareBroker, run: Run) -> None:
    async def callback(*_outcome: Any) -> None: ...

    async def main() -> None:
        async with consumer_of(broker) as consumer:
            with pytest.raises(TypeError, match="coroutine"):
                await consumer.set_acknowledgement_commit_callback(callback)

    run(main())
