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
    from embedlog.client.admin.admin import Admin
    from embedlog.client.admin.group_results import (
        GroupDescription,
        GroupListing,
        MemberDescription,
    )
    from embedlog.client.admin.new_topics import CreatedTopic, NewTopic
    from embedlog.client.admin.quorum import QuorumInfo, QuorumReplica
    from embedlog.client.admin.replica_results import (
        ElectionType,
        PartitionReassignment,
        ReplicaLogDirectories,
        TopicPartitionReplica,
    )
    from embedlog.client.admin.results import (
        AlterOperation,
        ClusterDescription,
        ConfigEntry,
        ConfigResource,
        ItemResults,
        LogDirectory,
        OffsetSpec,
        ProducerState,
        ResourceType,
    )
    from embedlog.client.admin.transaction_results import (
        FencedProducer,
        TransactionDescription,
        TransactionListing,
    )
    from embedlog.client.cluster_nodes import Node
    from embedlog.client.consumer.consumer import Consumer
    from embedlog.client.consumer.group.group_offsets import (
        CloseOptions,
        ConsumerGroupMetadata,
        OffsetAndMetadata,
    )
    from embedlog.client.consumer.offset_lookup import OffsetAndTimestamp
    from embedlog.client.consumer.rebalance_listener import ConsumerRebalanceListener
    from embedlog.client.consumer.record import (
        ConsumerRecord,
        ConsumerRecords,
        PolledBatch,
        PolledColumns,
    )
    from embedlog.client.consumer.subscription_state import SubscriptionPattern
    from embedlog.client.errors import (
        BufferExhausted,
        CommitFailed,
        ConcurrentUse,
        IllegalState,
        NoOffsetForPartition,
        RecordUnreadable,
        RetriableCommitFailed,
        SerializationError,
        TransactionAborted,
        WakeupError,
    )
    from embedlog.client.metadata import PartitionInfo, TopicInfo
    from embedlog.client.producer.batch import BatchMetadata, RecordMetadata
    from embedlog.client.producer.futures import BatchFuture, DeliveryFuture
    from embedlog.client.producer.partitioners import RoundRobinPartitioner
    from embedlog.client.producer.producer import Producer
    from embedlog.client.producer.records import ProducerRecord
    from embedlog.client.producer.transactions.prepared import PreparedTransaction
    from embedlog.client.producer.transactions.transaction import Transaction
    from embedlog.cluster.cluster import Cluster, open
    from embedlog.cluster.faults.network import ClusterNetwork
    from embedlog.cluster.handles.broker_disk import BrokerDisk
    from embedlog.cluster.handles.broker_node import BrokerNode
    from embedlog.cluster.handles.cluster_controller import ClusterController
    from embedlog.cluster.handles.cluster_listener import ClusterListener
    from embedlog.cluster.handles.cluster_partition import ClusterPartition
    from embedlog.common import TopicPartition
    from embedlog.errors import (
        ClosedError,
        ConfigError,
        CorruptRecord,
        DirectoryLocked,
        EmbedlogError,
        KafkaError,
        LogTruncation,
        StorageFailed,
        TimedOut,
    )
    from embedlog.reader.partition_range import PartitionRange
    from embedlog.reader.reader import LogDirectoryReader, PartitionReader, open_reader
    from embedlog.server.addresses import BrokerListener
    from embedlog.storage.degradation import Degradation
    from embedlog.storage.state_files.retention_pins import RetentionPin
    from embedlog.version import __version__ as __version__

__all__ = [
    "Admin",
    "AlterOperation",
    "BatchFuture",
    "BatchMetadata",
    "BrokerListener",
    "BrokerDisk",
    "BrokerNode",
    "BufferExhausted",
    "CloseOptions",
    "ClosedError",
    "Cluster",
    "ClusterController",
    "ClusterDescription",
    "ClusterListener",
    "ClusterNetwork",
    "ClusterPartition",
    "CommitFailed",
    "ConcurrentUse",
    "ConfigEntry",
    "ConfigError",
    "ConfigResource",
    "Consumer",
    "ConsumerGroupMetadata",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerRecords",
    "CorruptRecord",
    "CreatedTopic",
    "Degradation",
    "DeliveryFuture",
    "DirectoryLocked",
    "ElectionType",
    "EmbedlogError",
    "FencedProducer",
    "GroupDescription",
    "GroupListing",
    "IllegalState",
    "ItemResults",
    "KafkaError",
    "LogDirectory",
    "LogDirectoryReader",
    "LogTruncation",
    "MemberDescription",
    "NewTopic",
    "NoOffsetForPartition",
    "Node",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetSpec",
    "PartitionInfo",
    "PartitionRange",
    "PartitionReader",
    "PartitionReassignment",
    "PolledBatch",
    "PolledColumns",
    "PreparedTransaction",
    "Producer",
    "ProducerRecord",
    "ProducerState",
    "QuorumInfo",
    "QuorumReplica",
    "RecordMetadata",
    "RecordUnreadable",
    "ReplicaLogDirectories",
    "ResourceType",
    "RetentionPin",
    "RetriableCommitFailed",
    "RoundRobinPartitioner",
    "SerializationError",
    "StorageFailed",
    "SubscriptionPattern",
    "TimedOut",
    "TopicInfo",
    "TopicPartition",
    "TopicPartitionReplica",
    "Transaction",
    "TransactionAborted",
    "TransactionDescription",
    "TransactionListing",
    "WakeupError",
    "open",
    "open_reader",
]

_HOMES = {
    "Admin": "client.admin.admin",
    "AlterOperation": "client.admin.results",
    "BatchFuture": "client.producer.batch",
    "BatchMetadata": "client.producer.batch",
    "BrokerListener": "server.addresses",
    "BrokerDisk": "cluster.handles.broker_disk",
    "BrokerNode": "cluster.handles.broker_node",
    "BufferExhausted": "client.errors",
    "CloseOptions": "client.consumer.group.group_offsets",
    "Cluster": "cluster.cluster",
    "ClusterController": "cluster.handles.cluster_controller",
    "ClusterDescription": "client.admin.results",
    "ClusterListener": "cluster.handles.cluster_listener",
    "ClusterNetwork": "cluster.faults.network",
    "ClusterPartition": "cluster.handles.cluster_partition",
    "CommitFailed": "client.errors",
    "ConcurrentUse": "client.errors",
    "ConfigEntry": "client.admin.results",
    "ConfigResource": "client.admin.results",
    "Consumer": "client.consumer.consumer",
    "ConsumerGroupMetadata": "client.consumer.group.group_offsets",
    "ConsumerRebalanceListener": "client.consumer.rebalance_listener",
    "ConsumerRecord": "client.consumer.record",
    "ConsumerRecords": "client.consumer.record",
    "CreatedTopic": "client.admin.new_topics",
    "Degradation": "storage.degradation",
    "DeliveryFuture": "client.producer.batch",
    "ElectionType": "client.admin.replica_results",
    "FencedProducer": "client.admin.transaction_results",
    "GroupDescription": "client.admin.group_results",
    "GroupListing": "client.admin.group_results",
    "IllegalState": "client.errors",
    "ItemResults": "client.admin.results",
    "LogDirectory": "client.admin.results",
    "LogDirectoryReader": "reader.reader",
    "MemberDescription": "client.admin.group_results",
    "NewTopic": "client.admin.new_topics",
    "NoOffsetForPartition": "client.errors",
    "Node": "client.cluster_nodes",
    "OffsetAndMetadata": "client.consumer.group.group_offsets",
    "OffsetAndTimestamp": "client.consumer.offset_lookup",
    "OffsetSpec": "client.admin.results",
    "PartitionInfo": "client.metadata",
    "PartitionRange": "reader.partition_range",
    "PartitionReader": "reader.reader",
    "PartitionReassignment": "client.admin.replica_results",
    "PolledBatch": "client.consumer.record",
    "PolledColumns": "client.consumer.record",
    "PreparedTransaction": "client.producer.transactions.prepared",
    "Producer": "client.producer.producer",
    "ProducerRecord": "client.producer.records",
    "ProducerState": "client.admin.results",
    "QuorumInfo": "client.admin.quorum",
    "QuorumReplica": "client.admin.quorum",
    "RecordMetadata": "client.producer.batch",
    "RecordUnreadable": "client.errors",
    "ReplicaLogDirectories": "client.admin.replica_results",
    "ResourceType": "client.admin.results",
    "RetentionPin": "storage.state_files.retention_pins",
    "RetriableCommitFailed": "client.errors",
    "RoundRobinPartitioner": "client.producer.destinations",
    "SerializationError": "client.errors",
    "SubscriptionPattern": "client.consumer.subscription_state",
    "TopicInfo": "client.metadata",
    "TopicPartition": "common",
    "TopicPartitionReplica": "client.admin.replica_results",
    "Transaction": "client.producer.transactions.transaction",
    "TransactionAborted": "client.errors",
    "TransactionDescription": "client.admin.transaction_results",
    "TransactionListing": "client.admin.transaction_results",
    "WakeupError": "client.errors",
    "__version__": "version",
    "open": "cluster.cluster",
    "open_reader": "reader.reader",
}
"""Where names are that are not in `errors`."""

_MODULES = ("aio", "errors", "testing")
"""Loaded when they are named. Not in `__all__`: a star would load asyncio."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return __import__(f"{__name__}.{name}", fromlist=(name,))
    if name not in __all__ and name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = f"{__name__}.{_HOMES.get(name, 'errors')}"
    value: object = getattr(__import__(module, fromlist=(name,)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOMES, *_MODULES})
