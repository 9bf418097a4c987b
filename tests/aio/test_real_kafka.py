"""The asyncio clients against Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from embedlog.aio import Admin, Consumer, Producer
from tests.aio import test_admin as admins
from tests.aio import test_consumer as consumers
from tests.aio import test_producer as producers
from tests.aio.conftest import Run
from tests.support.kafka import real_kafka

pytestmark = [pytest.mark.interop, pytest.mark.slow]

GROUP = {"group.id": "readers", "auto.offset.reset": "earliest", "heartbeat.interval.ms": 100}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with real_kafka(tmp_path_factory.mktemp("kafka")) as listening:
        yield listening


@pytest.fixture
def connect(address: str, run: Run) -> Callable[[], Any]:
    """The address of a cluster without topics."""

    async def clear() -> None:
        async with Admin(address) as admin:
            (await admin.delete_topics(list(await admin.list_topics()))).check()

    run(clear())
    return lambda: address


@pytest.mark.parametrize(
    "promise",
    [
        admins.test_errors_come_with_the_item,
        admins.test_tasks_share_one_client_and_a_cancelled_call_holds_nobody_up_for_ever,
        consumers.test_a_cancelled_poll_takes_nothing,
        producers.test_a_record_is_written_when_send_returns,
        producers.test_interceptors_see_records_and_their_outcomes,
        producers.test_waiting_for_one_topic_holds_no_other_back,
        producers.test_wrong_records_are_refused_at_once,
    ],
    ids=lambda promise: promise.__name__.removeprefix("test_"),
)
def test_kafka_keeps_the_promise_too(promise: Any, connect: Callable[[], Any], run: Run) -> None:
    promise(connect, run)


def test_a_group_reads_what_many_tasks_sent(connect: Callable[[], Any], run: Run) -> None:
    async def main() -> None:
        found: list[int] = []
        async with Admin(connect()) as admin:
            (await admin.create_topics({"work": 4})).check()

        async def member() -> None:
            async with Consumer(connect(), GROUP) as consumer:
                await consumer.subscribe(["work"])
                while len(set(found)) < 2000:
                    found.extend([int(record.value) for record in await consumer.poll(100)])

        async with Producer(connect()) as producer:
            readers = [asyncio.create_task(member()) for _ in range(2)]
            numbers = [b"%d" % number for number in range(2000)]
            await asyncio.gather(*[producer.send("work", each, key=each) for each in numbers])
        await asyncio.gather(*readers)
        assert set(found) == set(range(2000))

    run(main())
