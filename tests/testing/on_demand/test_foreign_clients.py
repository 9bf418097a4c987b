"""Waits and changes on demand while foreign clients read and write over sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from embedlog.testing import Kafka
from tests.testing.foreign_clients import CLIENTS, foreign_members
from tests.testing.members import FAST

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TIMEOUT = 40
IDS = ["-".join(each) for each in CLIENTS]


@pytest.fixture(params=[1, 3], ids=["one-broker", "three-brokers"])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    topics = {"orders": {"partitions": 6, "replication_factor": request.param}}
    with Kafka(brokers=request.param, topics=topics, config=FAST) as made:
        yield made


def _shares(kafka: Kafka) -> dict[str, list[int]]:
    return {
        each.client_id: [place.partition for place in each.assignment]
        for each in kafka.group("g").members
    }


@pytest.mark.parametrize("client", CLIENTS, ids=IDS)
def test_waits_follow_real_rebalances(kafka: Kafka, client: tuple[str, str]) -> None:
    with foreign_members(kafka, client, "a", "b") as members:
        before = kafka.wait.group("g", members=2, assigned=6, timeout=TIMEOUT)
        assert {each.client_id for each in before.members} == {"a", "b"}
        producer = kafka.producer()
        for number in range(60):
            producer.send("orders", b"x", partition=number % 6)
        producer.flush()
        assert sum(kafka.wait.lag("g", topics=["orders"], timeout=TIMEOUT).values()) == 0
        kafka.wait.committed("g", {("orders", 5): 10}, timeout=TIMEOUT)
        software = {each.software for each in kafka.connections() if each.client_id == "a"}
        assert software & {"confluent-kafka-python", "kafka-python", "aiokafka", ""}
        members[0].close()
        after = kafka.wait.group("g", members=1, assigned=6, timeout=TIMEOUT)
        assert after.epoch > before.epoch
        kafka.wait.request("Fetch", client_id="b", times=3, timeout=TIMEOUT)
        assert sum(len(each.values) for each in members) >= 60


@pytest.mark.parametrize("client", CLIENTS, ids=IDS)
def test_members_come_back_after_a_rebalance_and_an_expulsion(
    kafka: Kafka, client: tuple[str, str]
) -> None:
    group = kafka.group("g")
    with foreign_members(kafka, client, "a", "b"):
        kafka.wait.group("g", members=2, assigned=6, timeout=TIMEOUT)
        kafka.wait.rebalanced("g", since=group.rebalance(), timeout=TIMEOUT)
        before = kafka.wait.group("g", members=2, assigned=6, timeout=TIMEOUT)
        group.expel("b")
        kafka.wait.until(
            lambda: (
                {each.member_id for each in group.members}
                != {each.member_id for each in before.members}
                or group.epoch > before.epoch
            ),
            timeout=TIMEOUT,
        )
        after = kafka.wait.group("g", members=2, assigned=6, timeout=TIMEOUT)
        assert after.epoch > before.epoch


@pytest.mark.parametrize("client", CLIENTS, ids=IDS)
def test_clients_take_a_pinned_assignment(kafka: Kafka, client: tuple[str, str]) -> None:
    with foreign_members(kafka, client, "a", "b") as members:
        kafka.wait.group("g", members=2, assigned=6, timeout=TIMEOUT)
        kafka.group("g").assign({"a": [("orders", 3)], "b": [("orders", 0), ("orders", 1)]})
        kafka.wait.until(lambda: _shares(kafka) == {"a": [3], "b": [0, 1]}, timeout=TIMEOUT)
        kafka.wait.group("g", state="Stable", timeout=TIMEOUT)
        producer = kafka.producer()
        for number in range(6):
            producer.send("orders", str(number).encode(), partition=number).result()
        kafka.wait.committed("g", {("orders", number): 1 for number in (0, 1, 3)}, timeout=TIMEOUT)
        assert members[0].values == [b"3"]
        assert sorted(members[1].values) == [b"0", b"1"]
        assert kafka.group("g").value.committed.get(("orders", 4), 0) == 0


class _Confluent:
    def __init__(self, address: str) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({"bootstrap.servers": address, "transactional.id": "tx"})
        self._producer.init_transactions(TIMEOUT)

    def send(self, value: bytes) -> None:
        self._producer.begin_transaction()
        self._producer.produce("orders", value, partition=0)
        self._producer.flush()

    def commit(self) -> None:
        self._producer.commit_transaction(TIMEOUT)

    def close(self) -> None:
        del self._producer


class _KafkaPython:
    def __init__(self, address: str) -> None:
        from kafka import KafkaProducer

        self._producer = KafkaProducer(bootstrap_servers=address, transactional_id="tx")
        self._producer.init_transactions()

    def send(self, value: bytes) -> None:
        self._producer.begin_transaction()
        self._producer.send("orders", value, partition=0).get(TIMEOUT)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def close(self) -> None:
        self._producer.close(timeout=0)


class _AioKafka:
    def __init__(self, address: str) -> None:
        from aiokafka import AIOKafkaProducer

        self._loop = asyncio.new_event_loop()

        async def start() -> Any:
            producer = AIOKafkaProducer(bootstrap_servers=address, transactional_id="tx")
            await producer.start()
            return producer

        self._producer = self._loop.run_until_complete(start())

    def send(self, value: bytes) -> None:
        async def send() -> None:
            await self._producer.begin_transaction()
            await self._producer.send_and_wait("orders", value, partition=0)

        self._loop.run_until_complete(send())

    def commit(self) -> None:
        self._loop.run_until_complete(self._producer.commit_transaction())

    def close(self) -> None:
        async def stop() -> None:
            await asyncio.wait({asyncio.ensure_future(self._producer.stop())}, timeout=1)

        self._loop.run_until_complete(stop())
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()


PRODUCERS = (_Confluent, _KafkaPython, _AioKafka)
NAMES = ["confluent", "kafka-python", "aiokafka"]


@pytest.mark.parametrize("make", PRODUCERS, ids=NAMES)
def test_readers_at_read_committed_wait_for_a_held_transaction(kafka: Kafka, make: Any) -> None:
    producer = make(kafka.bootstrap_servers)
    with foreign_members(kafka, ("confluent", "classic"), "reader") as (reader,):
        kafka.wait.group("g", members=1, assigned=6, timeout=TIMEOUT)
        with kafka.transactions.hold("tx", at="PrepareCommit") as held:
            producer.send(b"x")
            producer.commit()
            held.wait(timeout=TIMEOUT)
            assert kafka.transaction("tx").state == "PrepareCommit"
            kafka.wait.request("Fetch", client_id="reader", times=5, timeout=TIMEOUT)
            assert reader.values == []
        kafka.wait.transaction("tx", "CompleteCommit", timeout=TIMEOUT)
        kafka.wait.committed("g", {("orders", 0): 1}, timeout=TIMEOUT)
        assert reader.values == [b"x"]
    producer.close()


@pytest.mark.parametrize("how", ["fence", "expire"])
@pytest.mark.parametrize("make", PRODUCERS, ids=NAMES)
def test_producers_see_that_they_are_fenced(kafka: Kafka, make: Any, how: str) -> None:
    producer = make(kafka.bootstrap_servers)
    producer.send(b"x")
    getattr(kafka.transaction("tx"), how)()
    kafka.wait.until(
        lambda: kafka.transaction("tx").state in ("Empty", "CompleteAbort"), timeout=TIMEOUT
    )
    with pytest.raises(Exception, match=r"(?i)fenced|epoch|invalid|transaction"):
        producer.commit()
    assert kafka.partition("orders", 0).lso == kafka.partition("orders", 0).hw
    producer.close()
