"""confluent-kafka: librdkafka behind Python."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.clients import Row

SECONDS_MAX = 20


class Confluent:
    """The binding's Producer, Consumer and AdminClient."""

    name = "confluent"
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    null_values = headers = timestamps = True

    def create_topic(self, address: str, topic: str, partitions: int) -> None:
        """With AdminClient."""
        admin = AdminClient({"bootstrap.servers": address})
        made = admin.create_topics([NewTopic(topic, partitions, 1)])
        made[topic].result(SECONDS_MAX)

    def produce(
        self, address: str, topic: str, rows: Sequence[Row], *, codec: str = "none", acks: int = -1
    ) -> None:
        """Checks every delivery report."""
        producer = Producer({"bootstrap.servers": address, "compression.type": codec, "acks": acks})
        failed: list[object] = []
        for row in rows:
            producer.produce(
                topic, row.value, row.key, 0, timestamp=row.timestamp, headers=list(row.headers),
                on_delivery=lambda error, _: error and failed.append(error),
            )  # fmt: skip
        assert producer.flush(SECONDS_MAX) == 0
        assert not failed, failed

    def consume(self, address: str, topic: str, count: int) -> list[Row]:
        """With assign()."""
        consumer = self._consumer(address)
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        rows: list[Row] = []
        try:
            while len(rows) < count:
                messages = consumer.consume(count - len(rows), SECONDS_MAX)
                assert messages, f"{len(rows)} of {count} records"
                for message in messages:
                    assert message.error() is None, message.error()
                    assert message.offset() == len(rows)
                    headers = tuple(message.headers() or ())
                    rows.append(
                        Row(message.key(), message.value(), headers, message.timestamp()[1])
                    )
        finally:
            consumer.close()
        return rows

    def offsets(self, address: str, topic: str, timestamp: int) -> int:
        """Watermarks, or offsets_for_times."""
        consumer = self._consumer(address)
        try:
            if timestamp < 0:
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), SECONDS_MAX)
                return int(low if timestamp == -2 else high)
            asked = [TopicPartition(topic, 0, timestamp)]
            return int(consumer.offsets_for_times(asked, SECONDS_MAX)[0].offset)
        finally:
            consumer.close()

    @staticmethod
    def _consumer(address: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "check.crcs": True,
            }
        )
