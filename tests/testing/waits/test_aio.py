"""The waits for asyncio: the loop goes on, results and errors are the same, tasks are cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from embedlog.errors import ConfigError
from embedlog.testing import Kafka, WaitTimedOut
from tests.testing.members import FAST


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with Kafka(topics={"orders": 1}, config=FAST) as made:
        yield made


def test_the_loop_goes_on_while_a_task_waits(kafka: Kafka) -> None:
    async def produce() -> None:
        await asyncio.sleep(0)
        kafka.producer().send("orders", b"x").result()
        kafka.group("g").commit({("orders", 0): 1})

    async def main() -> tuple[int, dict[tuple[str, int], int], None]:
        return await asyncio.gather(  # type: ignore[return-value]
            kafka.wait.aio.records("orders", 1),
            kafka.wait.aio.committed("g", {("orders", 0): 1}),
            produce(),
        )

    records, committed, _ = asyncio.run(main())
    assert (records, committed) == (1, {("orders", 0): 1})


def test_a_time_out_and_a_misspelt_name_reach_the_task(kafka: Kafka) -> None:
    async def main() -> None:
        with pytest.raises(WaitTimedOut, match="group 'g' in state Stable"):
            await kafka.wait.aio.group("g", timeout=0.02)
        with pytest.raises(ConfigError, match="did you mean 'Fetch'"):
            await kafka.wait.aio.request("Fitch")

    asyncio.run(main())


def test_a_function_runs_in_the_thread_of_the_loop(kafka: Kafka) -> None:
    threads = []

    def look() -> bool:
        threads.append(threading.get_ident())
        return len(threads) > 1

    async def main() -> None:
        waiting = asyncio.ensure_future(kafka.wait.aio.until(look))
        while not threads:
            await asyncio.sleep(0)
        kafka.create_topic("late", 1)
        assert await waiting is True

    asyncio.run(main())
    assert set(threads) == {threading.get_ident()}


def test_a_cancelled_wait_ends_its_thread(kafka: Kafka) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(kafka.wait.aio.records("orders", 1, timeout=60), 0.02)

    asyncio.run(main())
    for each in threading.enumerate():
        if each.name == "embedlog-test-wait":
            each.join(10)
            assert not each.is_alive()
    assert kafka.cluster.runtime.watchers == []
