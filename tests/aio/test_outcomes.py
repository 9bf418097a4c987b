"""When the futures of records and flushes are done."""

from __future__ import annotations

import asyncio
from typing import Any

import embedlog
from embedlog.aio import Producer
from embedlog.aio.outcomes import Outcomes
from embedlog.client.producer.futures import BatchFuture
from tests.aio.conftest import Run


class Batch:
    """As much of a producer's batch as `Outcomes` needs; `end` gives it its outcome."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_done = False
        self.on_done: Any = None
        self.outcome = self

    def end(self) -> None:
        self.is_done = True
        self.on_done(self)

    def first_error(self) -> None:
        return None

    def batches(self) -> list[str]:
        return [self.name]


def test_the_future_of_several_batches_is_done_with_the_last(run: Run) -> None:
    async def main() -> None:
        outcomes, one, two = Outcomes(), Batch("one"), Batch("two")
        future = outcomes.new()
        outcomes.watch(future, BatchFuture([one, two]))  # type: ignore[list-item]
        two.end()
        await asyncio.sleep(0)
        outcomes.take_done()
        assert not future.done()
        one.end()
        assert await future == ["one", "two"]

    run(main())


def test_a_flush_does_not_wait_for_later_records(run: Run) -> None:
    async def main() -> None:
        outcomes = Outcomes()
        before = outcomes.new()
        flush = asyncio.create_task(outcomes.until_settled(None))
        await asyncio.sleep(0)
        later = outcomes.new()
        outcomes.settle(before, 1, None)
        outcomes.take_done()
        async with asyncio.timeout(3):
            await flush
        assert not later.done()

    run(main())


def test_a_transaction_ends_after_its_records_that_wait_for_metadata(
    cluster: embedlog.Cluster, run: Run
) -> None:
    async def main() -> None:
        async with Producer(cluster.listen().address, transactional_id="t") as producer:
            await producer.init_transactions()
            async with producer.transaction() as transaction:
                sent = transaction.send("unknown", b"v")
            assert (await sent).offset == 0

    run(main())
    assert cluster.topics == ["unknown"]
