"""aiokafka: a client over asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.interop.clients import Row

SECONDS_MAX = 20


class AioKafka:
    """AIOKafkaProducer, AIOKafkaConsumer and AIOKafkaAdminClient."""

    name = "aiokafka"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    null_values = headers = timestamps = True

    def create_topic(self, address: str, topic: str, partitions: int) -> None:
        """With the admin client."""

        async def create() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=address)
            await admin.start()
            try:
                await admin.create_topics([NewTopic(topic, partitions, 1)])
            finally:
                await admin.close()

        asyncio.run(create())

    def produce(
        self, address: str, topic: str, rows: Sequence[Row], *, codec: str = "none", acks: int = -1
    ) -> None:
        """Waits for every future."""

        async def send() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=address,
                acks="all" if acks == -1 else acks,
                compression_type=None if codec == "none" else codec,
            )
            await producer.start()
            try:
                futures = [
                    await producer.send(
                        topic, row.value, row.key, 0, row.timestamp, list(row.headers)
                    )
                    for row in rows
                ]
                await asyncio.wait_for(asyncio.gather(*futures), SECONDS_MAX)
            finally:
                await producer.stop()

        asyncio.run(send())

    def consume(self, address: str, topic: str, count: int) -> list[Row]:
        """With assign()."""

        async def read() -> list[Row]:
            consumer = AIOKafkaConsumer(bootstrap_servers=address, group_id=None)
            await consumer.start()
            where = TopicPartition(topic, 0)
            rows: list[Row] = []
            try:
                consumer.assign([where])
                await consumer.seek_to_beginning(where)
                while len(rows) < count:
                    message = await asyncio.wait_for(consumer.getone(), SECONDS_MAX)
                    assert message.offset == len(rows)
                    rows.append(
                        Row(message.key, message.value, tuple(message.headers), message.timestamp)
                    )
            finally:
                await consumer.stop()
            return rows

        return asyncio.run(read())

    def offsets(self, address: str, topic: str, timestamp: int) -> int:
        """Beginning, end, or offsets_for_times."""

        async def ask() -> int:
            consumer = AIOKafkaConsumer(bootstrap_servers=address, group_id=None)
            await consumer.start()
            where = TopicPartition(topic, 0)
            try:
                consumer.assign([where])
                if timestamp == -2:
                    return int((await consumer.beginning_offsets([where]))[where])
                if timestamp == -1:
                    return int((await consumer.end_offsets([where]))[where])
                found = (await consumer.offsets_for_times({where: timestamp}))[where]
                return -1 if found is None else int(found.offset)
            finally:
                await consumer.stop()

        return asyncio.run(ask())
