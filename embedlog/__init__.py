"""An embeddable, in-process message log with Kafka wire compatibility.

    import embedlog

    with embedlog.open("data") as cluster:              # a directory; without: in memory
        with cluster.producer() as producer:
            producer.send("events", b"value", key=b"key").result()

        listener = cluster.listen("127.0.0.1", 9092)    # now any Kafka client can connect

Importing this loads next to nothing: what is named here is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.cluster import Cluster, open
    from embedlog.client.admin.admin import Admin
    from embedlog.client.admin.results import (
        AlterOperation,
        ConfigResource,
        NewTopic,
        OffsetSpec,
        ResourceType,
    )
    from embedlog.client.consumer.consumer import Consumer
    from embedlog.client.consumer.consumer_record import ConsumerRecord
    from embedlog.client.consumer.subscription_state import SubscriptionPattern
    from embedlog.client.errors import (
        BufferExhausted,
        CommitFailed,
        SerializationError,
        WakeupError,
    )
    from embedlog.client.group.group_offsets import (
        CloseOptions,
        ConsumerGroupMetadata,
        OffsetAndMetadata,
    )
    from embedlog.client.group.rebalance_listener import ConsumerRebalanceListener
    from embedlog.client.producer.delivery import RecordMetadata
    from embedlog.client.producer.partitioner import RoundRobinPartitioner
    from embedlog.client.producer.producer import Producer
    from embedlog.client.producer.producer_records import ProducerRecord
    from embedlog.common import TopicPartition
    from embedlog.errors import (
        ClosedError,
        ConfigError,
        CorruptRecord,
        DirectoryLocked,
        EmbedlogError,
        KafkaError,
        StorageFailed,
        TimedOut,
    )
    from embedlog.reader import LogDirectoryReader, PartitionReader, open_reader
    from embedlog.storage.degradation import Degradation

__all__ = [
    "Admin",
    "AlterOperation",
    "BufferExhausted",
    "CloseOptions",
    "ClosedError",
    "Cluster",
    "CommitFailed",
    "ConfigError",
    "ConfigResource",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "CorruptRecord",
    "Degradation",
    "DirectoryLocked",
    "EmbedlogError",
    "KafkaError",
    "LogDirectoryReader",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetSpec",
    "PartitionReader",
    "Producer",
    "ProducerRecord",
    "RecordMetadata",
    "ResourceType",
    "RoundRobinPartitioner",
    "SerializationError",
    "StorageFailed",
    "SubscriptionPattern",
    "TimedOut",
    "TopicPartition",
    "WakeupError",
    "open",
    "open_reader",
]

_HOMES = {
    "Admin": "client.admin.admin",
    "AlterOperation": "client.admin.results",
    "BufferExhausted": "client.errors",
    "CloseOptions": "client.group.group_offsets",
    "Cluster": "broker.cluster",
    "CommitFailed": "client.errors",
    "ConfigResource": "client.admin.results",
    "Consumer": "client.consumer.consumer",
    "ConsumerGroupMetadata": "client.group.group_offsets",
    "ConsumerRebalanceListener": "client.group.rebalance_listener",
    "ConsumerRecord": "client.consumer.consumer_record",
    "Degradation": "storage.degradation",
    "LogDirectoryReader": "reader",
    "PartitionReader": "reader",
    "NewTopic": "client.admin.results",
    "OffsetAndMetadata": "client.group.group_offsets",
    "OffsetSpec": "client.admin.results",
    "Producer": "client.producer.producer",
    "ProducerRecord": "client.producer.producer_records",
    "RecordMetadata": "client.producer.delivery",
    "ResourceType": "client.admin.results",
    "RoundRobinPartitioner": "client.producer.partitioner",
    "SerializationError": "client.errors",
    "SubscriptionPattern": "client.consumer.subscription_state",
    "TopicPartition": "common",
    "WakeupError": "client.errors",
    "open": "broker.cluster",
    "open_reader": "reader",
}


def __getattr__(name: str) -> object:
    if name == "aio":
        # Not in `__all__`: a star would load asyncio.
        return __import__("embedlog.aio").aio
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = f"{__name__}.{_HOMES.get(name, 'errors')}"
    value: object = getattr(__import__(module, fromlist=(name,)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
