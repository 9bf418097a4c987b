"""An embeddable, in-process message log with Kafka wire compatibility.

    import embedlog

    with embedlog.open("data") as cluster:              # a directory; without: in memory
        with cluster.producer() as producer:
            producer.send("events", b"value", key=b"key").result()

        listener = cluster.listen("127.0.0.1", 9092)    # now any Kafka client can connect

`import embedlog` loads almost nothing: a public name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.admin.admin import Admin as Admin
    from embedlog.client.admin.cluster import (
        QuorumInfo as QuorumInfo,
        QuorumReplica as QuorumReplica,
    )
    from embedlog.client.admin.groups import (
        GroupDescription as GroupDescription,
        GroupListing as GroupListing,
        MemberDescription as MemberDescription,
    )
    from embedlog.client.admin.new_topics import CreatedTopic as CreatedTopic, NewTopic as NewTopic
    from embedlog.client.admin.replicas import (
        ElectionType as ElectionType,
        PartitionReassignment as PartitionReassignment,
        ReplicaLogDirectories as ReplicaLogDirectories,
        TopicPartitionReplica as TopicPartitionReplica,
    )
    from embedlog.client.admin.results import (
        AlterOperation as AlterOperation,
        ClusterDescription as ClusterDescription,
        ConfigEntry as ConfigEntry,
        ConfigResource as ConfigResource,
        ItemResults as ItemResults,
        LogDirectory as LogDirectory,
        OffsetSpec as OffsetSpec,
        ProducerState as ProducerState,
        ResourceType as ResourceType,
    )
    from embedlog.client.admin.share_groups import ShareGroupOffset as ShareGroupOffset
    from embedlog.client.admin.transactions import (
        FencedProducer as FencedProducer,
        TransactionDescription as TransactionDescription,
        TransactionListing as TransactionListing,
    )
    from embedlog.client.cluster_nodes import Node as Node
    from embedlog.client.consumer.consumer import Consumer as Consumer
    from embedlog.client.consumer.group.group_offsets import (
        CloseOptions as CloseOptions,
        ConsumerGroupMetadata as ConsumerGroupMetadata,
        OffsetAndMetadata as OffsetAndMetadata,
    )
    from embedlog.client.consumer.offset_lookup import OffsetAndTimestamp as OffsetAndTimestamp
    from embedlog.client.consumer.rebalance_listener import (
        ConsumerRebalanceListener as ConsumerRebalanceListener,
    )
    from embedlog.client.consumer.record import (
        ConsumerRecord as ConsumerRecord,
        ConsumerRecords as ConsumerRecords,
        PolledBatch as PolledBatch,
        PolledColumns as PolledColumns,
    )
    from embedlog.client.consumer.subscription_state import (
        SubscriptionPattern as SubscriptionPattern,
    )
    from embedlog.client.errors import (
        BufferExhausted as BufferExhausted,
        CommitFailed as CommitFailed,
        ConcurrentUse as ConcurrentUse,
        NoOffsetForPartition as NoOffsetForPartition,
        RecordUnreadable as RecordUnreadable,
        RetriableCommitFailed as RetriableCommitFailed,
        SerializationError as SerializationError,
        TransactionAborted as TransactionAborted,
        WakeupError as WakeupError,
    )
    from embedlog.client.metadata import PartitionInfo as PartitionInfo, TopicInfo as TopicInfo
    from embedlog.client.producer.batch import BatchMetadata as BatchMetadata
    from embedlog.client.producer.batch import RecordMetadata as RecordMetadata
    from embedlog.client.producer.futures import BatchFuture as BatchFuture
    from embedlog.client.producer.futures import DeliveryFuture as DeliveryFuture
    from embedlog.client.producer.partitioners import RoundRobinPartitioner as RoundRobinPartitioner
    from embedlog.client.producer.producer import Producer as Producer
    from embedlog.client.producer.records import ProducerRecord as ProducerRecord
    from embedlog.client.producer.transactions.prepared import (
        PreparedTransaction as PreparedTransaction,
    )
    from embedlog.client.producer.transaction import Transaction as Transaction
    from embedlog.client.share.acknowledge_type import AcknowledgeType as AcknowledgeType
    from embedlog.client.share.consumer import ShareConsumer as ShareConsumer
    from embedlog.client.share.record import (
        ShareRecord as ShareRecord,
        ShareRecords as ShareRecords,
    )
    from embedlog.cluster.cluster import Cluster as Cluster, open as open
    from embedlog.cluster.faults.network import ClusterNetwork as ClusterNetwork
    from embedlog.cluster.handles.broker_disk import BrokerDisk as BrokerDisk
    from embedlog.cluster.handles.broker_node import BrokerNode as BrokerNode
    from embedlog.cluster.handles.cluster_controller import ClusterController as ClusterController
    from embedlog.cluster.handles.cluster_listener import ClusterListener as ClusterListener
    from embedlog.cluster.handles.cluster_partition import ClusterPartition as ClusterPartition
    from embedlog.cluster.processes.shared_cluster import (
        SharedCluster as SharedCluster,
        connect_or_open as connect_or_open,
    )
    from embedlog.common import TopicPartition as TopicPartition
    from embedlog.errors import (
        ClosedError as ClosedError,
        ConfigError as ConfigError,
        CorruptRecord as CorruptRecord,
        DirectoryLocked as DirectoryLocked,
        EmbedlogError as EmbedlogError,
        IllegalState as IllegalState,
        KafkaError as KafkaError,
        LogTruncation as LogTruncation,
        NestedCall as NestedCall,
        StorageFailed as StorageFailed,
        TimedOut as TimedOut,
    )
    from embedlog.queue.backoff import exponential as exponential
    from embedlog.queue.dead import DeadJob as DeadJob, DeadJobs as DeadJobs
    from embedlog.queue.job import Job as Job
    from embedlog.queue.job_record import JobRecord as JobRecord
    from embedlog.queue.queue import Queue as Queue
    from embedlog.queue.replies import JobFailed as JobFailed
    from embedlog.queue.stats import QueueStats as QueueStats
    from embedlog.queue.working.worker import Worker as Worker
    from embedlog.reader.partition_range import PartitionRange as PartitionRange
    from embedlog.reader.reader import (
        LogDirectoryReader as LogDirectoryReader,
        PartitionReader as PartitionReader,
        open_reader as open_reader,
    )
    from embedlog.server.addresses import BrokerListener as BrokerListener
    from embedlog.storage.degradation import Degradation as Degradation
    from embedlog.storage.state_files.retention_pins import RetentionPin as RetentionPin
    from embedlog.version import __version__ as __version__

_PUBLIC = {
    "client.admin.admin": "Admin",
    "client.admin.cluster": "QuorumInfo QuorumReplica",
    "client.admin.groups": "GroupDescription GroupListing MemberDescription",
    "client.admin.new_topics": "CreatedTopic NewTopic",
    "client.admin.replicas": (
        "ElectionType PartitionReassignment ReplicaLogDirectories TopicPartitionReplica"
    ),
    "client.admin.results": (
        "AlterOperation ClusterDescription ConfigEntry ConfigResource ItemResults "
        "LogDirectory OffsetSpec ProducerState ResourceType"
    ),
    "client.admin.share_groups": "ShareGroupOffset",
    "client.admin.transactions": "FencedProducer TransactionDescription TransactionListing",
    "client.cluster_nodes": "Node",
    "client.consumer.consumer": "Consumer",
    "client.consumer.group.group_offsets": "CloseOptions ConsumerGroupMetadata OffsetAndMetadata",
    "client.consumer.offset_lookup": "OffsetAndTimestamp",
    "client.consumer.rebalance_listener": "ConsumerRebalanceListener",
    "client.consumer.record": "ConsumerRecord ConsumerRecords PolledBatch PolledColumns",
    "client.consumer.subscription_state": "SubscriptionPattern",
    "client.errors": (
        "BufferExhausted CommitFailed ConcurrentUse NoOffsetForPartition "
        "RecordUnreadable RetriableCommitFailed SerializationError TransactionAborted "
        "WakeupError"
    ),
    "client.metadata": "PartitionInfo TopicInfo",
    "client.producer.batch": "BatchMetadata RecordMetadata",
    "client.producer.futures": "BatchFuture DeliveryFuture",
    "client.producer.partitioners": "RoundRobinPartitioner",
    "client.producer.producer": "Producer",
    "client.producer.records": "ProducerRecord",
    "client.producer.transactions.prepared": "PreparedTransaction",
    "client.producer.transaction": "Transaction",
    "client.share.acknowledge_type": "AcknowledgeType",
    "client.share.consumer": "ShareConsumer",
    "client.share.record": "ShareRecord ShareRecords",
    "cluster.cluster": "Cluster open",
    "cluster.faults.network": "ClusterNetwork",
    "cluster.handles.broker_disk": "BrokerDisk",
    "cluster.handles.broker_node": "BrokerNode",
    "cluster.handles.cluster_controller": "ClusterController",
    "cluster.handles.cluster_listener": "ClusterListener",
    "cluster.handles.cluster_partition": "ClusterPartition",
    "cluster.processes.shared_cluster": "SharedCluster connect_or_open",
    "common": "TopicPartition",
    "errors": (
        "ClosedError ConfigError CorruptRecord DirectoryLocked EmbedlogError KafkaError "
        "IllegalState LogTruncation NestedCall StorageFailed TimedOut"
    ),
    "queue.backoff": "exponential",
    "queue.dead": "DeadJob DeadJobs",
    "queue.job": "Job",
    "queue.job_record": "JobRecord",
    "queue.queue": "Queue",
    "queue.replies": "JobFailed",
    "queue.stats": "QueueStats",
    "queue.working.worker": "Worker",
    "reader.partition_range": "PartitionRange",
    "reader.reader": "LogDirectoryReader PartitionReader open_reader",
    "server.addresses": "BrokerListener",
    "storage.degradation": "Degradation",
    "storage.state_files.retention_pins": "RetentionPin",
    "version": "__version__",
}
"""The public names by the module that defines them. Type checkers read the imports above."""

_HOMES = {name: module for module, names in _PUBLIC.items() for name in names.split()}
__all__ = list(_HOMES.keys() - {"__version__"})

_MODULES = ("aio", "errors", "testing")
"""Modules that are loaded on the first use of their name. They are not in `__all__`, because
`import *` would load asyncio."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return __import__(f"{__name__}.{name}", fromlist=(name,))
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = __import__(f"{__name__}.{_HOMES[name]}", fromlist=(name,))
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
