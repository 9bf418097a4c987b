"""`embedlog.aio.Admin`: some calls of each kind, which all go through one mechanism."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import embedlog
from embedlog.aio import Admin, Producer
from tests.aio.conftest import Run

Connect = Callable[[], Any]


def test_topics_settings_records_and_the_cluster(connect: Connect, run: Run) -> None:
    topic = embedlog.ConfigResource(embedlog.ResourceType.TOPIC, "t")

    async def main() -> None:
        async with Admin(connect()) as admin, Producer(connect()) as producer:
            (await admin.create_topics([embedlog.NewTopic("t", 2)])).check()
            assert list(await admin.list_topics()) == ["t"]
            change = {topic: {"retention.ms": (embedlog.AlterOperation.SET, 5)}}
            (await admin.incremental_alter_configs(change)).check()
            described = await admin.describe_configs([topic], names=["retention.ms"])
            assert described[topic]["retention.ms"].value == "5"
            await producer.send_batch("t", [b"v"] * 10, partition=0)
            assert (await admin.delete_records({("t", 0): 4})).check() == {("t", 0): 4}
            assert len((await admin.describe_cluster()).nodes) == 1
            assert not (await admin.list_groups())
            (await admin.delete_topics(["t"])).check()

    run(main())


@pytest.mark.slow
def test_errors_come_with_the_item(connect: Connect, run: Run) -> None:
    async def main() -> None:
        async with Admin(connect()) as admin:
            made = await admin.create_topics(["a", "no such name!"])
            assert isinstance(made.errors["no such name!"], embedlog.errors.InvalidTopic)
            with pytest.raises(embedlog.KafkaError):
                (await admin.delete_topics(["never"])).check()
        with pytest.raises(embedlog.ClosedError):
            await admin.list_topics()

    run(main())


@pytest.mark.slow
def test_tasks_share_one_client_and_a_cancelled_call_holds_nobody_up_for_ever(
    connect: Connect, run: Run
) -> None:
    async def main() -> None:
        async with Admin(connect()) as admin:
            names = [f"topic-{number}" for number in range(20)]
            await asyncio.gather(*[admin.create_topics([name]) for name in names])
            waiting = asyncio.create_task(admin.describe_topics(["not-there"]))
            await asyncio.sleep(0)
            waiting.cancel()
            assert set(await admin.list_topics()) == set(names)
            assert waiting.cancelled()

    run(main())
