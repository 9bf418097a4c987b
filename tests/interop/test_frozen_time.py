"""Foreign clients beside a broker whose process has frozen its time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import freezegun
import pytest
import time_machine

import embedlog

pytestmark = pytest.mark.interop

FROZEN: dict[str, Callable[[str], AbstractContextManager[Any]]] = {
    # kafka-python waits by `time.monotonic`, which freezes as well unless it is excluded.
    "freezegun": lambda moment: freezegun.freeze_time(moment, ignore=["kafka"]),
    "time-machine": lambda moment: time_machine.travel(moment, tick=False),
}


@pytest.fixture(params=FROZEN)
def freeze(request: pytest.FixtureRequest) -> Callable[[str], AbstractContextManager[Any]]:
    return FROZEN[request.param]


def in_the_log(cluster: embedlog.Cluster) -> list[bytes | None]:
    with cluster.consumer() as consumer:
        consumer.assign([("t", 0)])
        consumer.seek_to_beginning()
        return [record.value for record in consumer.poll(5_000)]


@pytest.mark.parametrize("moment", ["2020-01-01", "2040-01-01"])
def test_a_client_in_c_has_its_own_clock(freeze: Any, moment: str) -> None:
    from confluent_kafka import Consumer, KafkaError, Producer

    with freeze(moment), embedlog.open() as cluster:
        cluster.create_topic("t")
        address = cluster.listen().address
        failed: list[Any] = []
        producer = Producer({"bootstrap.servers": address})
        producer.produce("t", b"real", on_delivery=lambda error, _: failed.append(error))
        producer.produce(
            "t",
            b"frozen",
            timestamp=int(time.time() * 1000),
            on_delivery=lambda error, _: failed.append(error),
        )
        assert producer.flush(10) == 0
        assert failed == [None, None]
        consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            }
        )
        consumer.subscribe(["t"])
        read: list[bytes] = []
        while True:
            # An empty fetch is answered only after its time-out, which would delay the end of the
            # partition.
            message = consumer.poll(10)
            assert message is not None
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF
                break
            read.append(message.value())
        consumer.close()
        assert read == [b"real", b"frozen"]


@pytest.mark.parametrize("moment", ["2020-01-01", "2040-01-01"])
def test_kafka_python_in_the_frozen_process(freeze: Any, moment: str) -> None:
    from kafka import KafkaProducer

    with freeze(moment), embedlog.open() as cluster:
        cluster.create_topic("t")
        producer = KafkaProducer(bootstrap_servers=cluster.listen().address, linger_ms=0)
        assert producer.send("t", b"v").get(timeout=10).offset == 0
        producer.close(5)
        assert in_the_log(cluster) == [b"v"]


@pytest.mark.parametrize("moment", ["2020-01-01", "2040-01-01"])
def test_aiokafka_in_the_frozen_process(freeze: Any, moment: str) -> None:
    from aiokafka import AIOKafkaProducer

    async def send(address: str) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=address)
        await producer.start()
        assert (await producer.send_and_wait("t", b"v")).offset == 0
        await producer.stop()

    with freeze(moment), embedlog.open() as cluster:
        cluster.create_topic("t")
        asyncio.run(send(cluster.listen().address))
        assert in_the_log(cluster) == [b"v"]
