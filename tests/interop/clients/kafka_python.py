"""kafka-python 3: a client in pure Python."""

from __future__ import annotations

from collections.abc import Sequence

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from tests.interop.clients import Row

MS_MAX = 20_000


class KafkaPython:
    """KafkaProducer, KafkaConsumer and KafkaAdminClient."""

    name = "kafka-python"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    null_values = headers = timestamps = True

    def create_topic(self, address: str, topic: str, partitions: int) -> None:
        """With the admin client."""
        admin = KafkaAdminClient(bootstrap_servers=address)
        try:
            admin.create_topics([NewTopic(topic, partitions, 1)])
        finally:
            admin.close()

    def produce(
        self, address: str, topic: str, rows: Sequence[Row], *, codec: str = "none", acks: int = -1
    ) -> None:
        """Waits for every future."""
        producer = KafkaProducer(
            bootstrap_servers=address,
            acks="all" if acks == -1 else acks,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=acks == -1,
        )
        futures = [
            producer.send(topic, row.value, row.key, list(row.headers), 0, row.timestamp)
            for row in rows
        ]
        producer.flush(MS_MAX / 1000)
        for future in futures:
            future.get(MS_MAX / 1000)
        producer.close()

    def consume(self, address: str, topic: str, count: int) -> list[Row]:
        """With assign()."""
        consumer = self._consumer(address)
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        rows: list[Row] = []
        try:
            while len(rows) < count:
                polled = consumer.poll(MS_MAX)
                assert polled, f"{len(rows)} of {count} records"
                for message in polled[TopicPartition(topic, 0)]:
                    assert message.offset == len(rows)
                    rows.append(
                        Row(message.key, message.value, tuple(message.headers), message.timestamp)
                    )
        finally:
            consumer.close()
        return rows

    def offsets(self, address: str, topic: str, timestamp: int) -> int:
        """Beginning, end, or offsets_for_times."""
        where = TopicPartition(topic, 0)
        consumer = self._consumer(address)
        try:
            if timestamp == -2:
                return int(consumer.beginning_offsets([where])[where])
            if timestamp == -1:
                return int(consumer.end_offsets([where])[where])
            found = consumer.offsets_for_times({where: timestamp})[where]
            return -1 if found is None else int(found.offset)
        finally:
            consumer.close()

    @staticmethod
    def _consumer(address: str) -> KafkaConsumer:
        return KafkaConsumer(bootstrap_servers=address, group_id=None, check_crcs=True)
