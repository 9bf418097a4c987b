"""From records to images: the only code that applies metadata records.

The controller applies its new records by the function that also applies the records of the log at
opening, so a restart sees exactly the published state.
"""

from __future__ import annotations

from embedlog.common import ZERO_UUID
from embedlog.controller.features import FIRST_LEVELS
from embedlog.controller.metadata import (
    CONFIG_ATTRIBUTES,
    RESOURCE_TOPIC,
    BrokerImage,
    MetadataImage,
)
from embedlog.controller.metadata import PartitionImage as Partition
from embedlog.controller.metadata import TopicImage as Topic
from embedlog.controller.metadata_records import (
    BrokerStateRecord,
    ClusterRecord,
    ConfigRecord,
    FeatureRecord,
    PartitionRegistration,
    PartitionsRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    SnapshotRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_DICTS = (
    "brokers",
    "topics_by_name",
    "topics_by_id",
    "feature_levels",
    *CONFIG_ATTRIBUTES.values(),
)
_PARTITION_SCALARS = ("partition", "leader", "leader_epoch", "partition_epoch", "is_recovering")
_PARTITION_NODES = (
    "replicas",
    "isr",
    "adding_replicas",
    "removing_replicas",
    "elr",
    "last_known_elr",
)


class ImageBuilder:
    """An image under change: each dictionary is copied when it is first touched."""

    def __init__(self, image: MetadataImage) -> None:
        self._base = image
        self._changed: dict[str, dict[Any, Any]] = {}
        self._cluster_id = image.cluster_id
        self._next_producer_id = image.next_producer_id

    def apply(self, record: Any) -> None:
        _APPLY[type(record)](self, record)

    def build(self, end_offset: int) -> MetadataImage:
        """Return the image after the applied records; `end_offset` follows the last one."""
        base = self._base
        return MetadataImage(
            cluster_id=self._cluster_id,
            next_producer_id=self._next_producer_id,
            end_offset=end_offset,
            **{name: self._changed.get(name, getattr(base, name)) for name in _DICTS},
        )

    def _dict(self, name: str) -> dict[Any, Any]:
        changed = self._changed.get(name)
        if changed is None:
            changed = self._changed[name] = dict(getattr(self._base, name))
        return changed

    def _put_topic(self, topic: Topic) -> None:
        self._dict("topics_by_name")[topic.name] = topic
        self._dict("topics_by_id")[topic.topic_id] = topic

    def _cluster(self, record: ClusterRecord) -> None:
        self._cluster_id = record.cluster_id

    def _topic(self, record: TopicRecord) -> None:
        partitions = tuple(_partition(state) for state in record.partitions)
        self._put_topic(Topic(record.name, record.topic_id, partitions))

    def _partitions(self, record: PartitionsRecord) -> None:
        topic: Topic = self._dict("topics_by_id")[record.topic_id]
        partitions = {image.partition: image for image in topic.partitions}
        partitions.update((state.partition, _partition(state)) for state in record.partitions)
        ordered = tuple(partitions[number] for number in range(len(partitions)))
        self._put_topic(Topic(topic.name, topic.topic_id, ordered))

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        topic: Topic = self._dict("topics_by_id").pop(record.topic_id)
        del self._dict("topics_by_name")[topic.name]
        self._dict(CONFIG_ATTRIBUTES[RESOURCE_TOPIC]).pop(topic.name, None)

    def _config(self, record: ConfigRecord) -> None:
        resources = self._dict(CONFIG_ATTRIBUTES[record.resource_type])
        settings: Mapping[str, str] = resources.get(record.resource_name, {})
        changed = {name: text for name, text in settings.items() if name != record.name}
        if record.value is not None:
            changed[record.name] = record.value
        if changed:
            resources[record.resource_name] = changed
        else:
            resources.pop(record.resource_name, None)

    def _producer_ids(self, record: ProducerIdsRecord) -> None:
        self._next_producer_id = record.next_producer_id

    def _feature(self, record: FeatureRecord) -> None:
        levels = self._dict("feature_levels")
        if record.level:
            levels[record.name] = record.level
        else:
            levels.pop(record.name, None)

    def _register_broker(self, record: RegisterBrokerRecord) -> None:
        self._dict("brokers")[record.broker_id] = BrokerImage(
            record.broker_id,
            record.rack,
            epoch=record.broker_epoch,
            is_fenced=record.is_fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            incarnation=record.incarnation,
            directories=tuple(record.directories),
            cordoned=tuple(record.cordoned),
        )

    def _unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        del self._dict("brokers")[record.broker_id]

    def _broker_state(self, record: BrokerStateRecord) -> None:
        brokers = self._dict("brokers")
        brokers[record.broker_id] = brokers[record.broker_id].replace(
            is_fenced=record.is_fenced, in_controlled_shutdown=record.in_controlled_shutdown
        )

    def _snapshot(self, record: SnapshotRecord) -> None:
        brokers = self._dict("brokers").items()
        self._base = MetadataImage(
            brokers={node: broker for node, broker in brokers if not _is_logged(broker)}
        )
        self._changed = {}
        self._cluster_id = ""
        self._next_producer_id = 0


def snapshot(image: MetadataImage) -> list[Any]:
    """Return the records that make `image` out of nothing."""
    records: list[Any] = [
        SnapshotRecord(end_offset=image.end_offset),
        ClusterRecord(cluster_id=image.cluster_id),
        ProducerIdsRecord(next_producer_id=image.next_producer_id),
    ]
    records.extend(broker_record(broker) for broker in image.brokers.values() if _is_logged(broker))
    records.extend(topic_record(topic) for topic in image.topics_by_name.values())
    records.extend(
        FeatureRecord(name=name, level=image.feature_level(name))
        for name in FIRST_LEVELS | dict(image.feature_levels)
        if image.feature_level(name) != FIRST_LEVELS.get(name, 0)
    )
    for resource_type in CONFIG_ATTRIBUTES:
        for resource_name, settings in image.configs(resource_type).items():
            records.extend(
                ConfigRecord(
                    resource_type=resource_type,
                    resource_name=resource_name,
                    name=name,
                    value=text,
                )
                for name, text in settings.items()
            )
    return records


def broker_record(broker: BrokerImage) -> RegisterBrokerRecord:
    """Return the record that registers a broker."""
    return RegisterBrokerRecord(
        broker_id=broker.node_id,
        broker_epoch=broker.epoch,
        incarnation=broker.incarnation,
        rack=broker.rack,
        directories=list(broker.directories),
        cordoned=list(broker.cordoned),
        is_fenced=broker.is_fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
    )


def topic_record(topic: Topic) -> TopicRecord:
    """Return the record that creates a topic."""
    return TopicRecord(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[partition_registration(partition) for partition in topic.partitions],
    )


def partition_registration(partition: Partition) -> PartitionRegistration:
    """Return a partition in the form in which records contain it."""
    return PartitionRegistration(
        **_partition_fields(partition, list),
        directories=_directories(partition),
    )


def _partition(registration: PartitionRegistration) -> Partition:
    return Partition(  # spelled out: opening 10,000 partitions takes a fifth less
        partition=registration.partition,
        leader=registration.leader,
        leader_epoch=registration.leader_epoch,
        partition_epoch=registration.partition_epoch,
        replicas=tuple(registration.replicas),
        isr=tuple(registration.isr),
        adding_replicas=tuple(registration.adding_replicas),
        removing_replicas=tuple(registration.removing_replicas),
        elr=tuple(registration.elr),
        last_known_elr=tuple(registration.last_known_elr),
        is_recovering=registration.is_recovering,
        directories=_places(registration) if registration.directories else {},
    )


def _partition_fields(
    source: Partition | PartitionRegistration, sequence: Callable[[Any], Any]
) -> dict[str, Any]:
    """Return the fields that image and registration share; `sequence` converts node id lists."""
    fields = {name: getattr(source, name) for name in _PARTITION_SCALARS}
    return fields | {name: sequence(getattr(source, name)) for name in _PARTITION_NODES}


def _places(registration: PartitionRegistration) -> dict[int, bytes]:
    places = zip(registration.replicas, registration.directories, strict=False)
    return {node: id for node, id in places if id != ZERO_UUID}


def _directories(partition: Partition) -> list[bytes]:
    known = partition.directories
    return [known.get(node, ZERO_UUID) for node in partition.replicas] if known else []


def _is_logged(broker: BrokerImage) -> bool:
    """Return whether the broker has registered.

    The only broker of a cluster does not register, and is in no log.
    """
    return broker.epoch >= 0


_APPLY: dict[type[Any], Callable[[ImageBuilder, Any], None]] = {
    ClusterRecord: ImageBuilder._cluster,
    TopicRecord: ImageBuilder._topic,
    PartitionsRecord: ImageBuilder._partitions,
    RemoveTopicRecord: ImageBuilder._remove_topic,
    ConfigRecord: ImageBuilder._config,
    ProducerIdsRecord: ImageBuilder._producer_ids,
    FeatureRecord: ImageBuilder._feature,
    SnapshotRecord: ImageBuilder._snapshot,
    RegisterBrokerRecord: ImageBuilder._register_broker,
    UnregisterBrokerRecord: ImageBuilder._unregister_broker,
    BrokerStateRecord: ImageBuilder._broker_state,
}
