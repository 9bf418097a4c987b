"""The share consumer for asyncio, on each broker."""

from __future__ import annotations

import asyncio

from embedlog import TopicPartition
from embedlog.aio import ShareConsumer
from tests.client.share.places import WAIT_MS, Place, numbered


def test_tasks_share_one_consumer(place: Place) -> None:
    place.fill(*numbered(4), one_batch=False)

    async def main() -> None:
        async with ShareConsumer(place.connect(), group_id=place.group) as consumer:
            await consumer.subscribe([place.topic])
            waiting = asyncio.ensure_future(consumer.poll(WAIT_MS))
            while not waiting.done():
                assert await consumer.subscription() == {place.topic}
                await asyncio.sleep(0.02)
            found = list(await waiting)
            while len(found) < 4:
                found += await consumer.poll(WAIT_MS)
            assert [record.value for record in found] == numbered(4)
            assert set((await consumer.commit_sync()).values()) <= {None}
        async with ShareConsumer(place.connect(), group_id=place.group) as consumer:
            await consumer.subscribe([place.topic])
            place.fill(b"next")
            (record,) = await consumer.poll(WAIT_MS)
            assert record.value == b"next"
            assert await consumer.commit_sync() == {TopicPartition(place.topic, 0): None}

    asyncio.run(main())
