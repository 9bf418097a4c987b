"""From records to images: the only code that says what a metadata record does.

The controller applies the records it has just written, and opening applies those of the log: the
same function, so a restart cannot see another state than the one that was published.
"""

from __future__ import annotations

from embedlog.controller.features import FIRST_LEVELS
from embedlog.controller.metadata import CONFIG_ATTRIBUTES, RESOURCE_TOPIC, MetadataImage
from embedlog.controller.metadata import PartitionImage as Partition
from embedlog.controller.metadata import TopicImage as Topic
from embedlog.controller.metadata_records import (
    ClusterRecord,
    ConfigRecord,
    FeatureRecord,
    PartitionsRecord,
    PartitionState,
    ProducerIdsRecord,
    RemoveTopicRecord,
    SnapshotRecord,
    TopicRecord,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_DICTS = ("topics_by_name", "topics_by_id", "feature_levels", *CONFIG_ATTRIBUTES.values())


class ImageBuilder:
    """An image under change: dictionaries are copied when they are first touched."""

    def __init__(self, image: MetadataImage) -> None:
        self._base = image
        self._changed: dict[str, dict[Any, Any]] = {}
        self._cluster_id = image.cluster_id
        self._next_producer_id = image.next_producer_id

    def apply(self, record: Any) -> None:
        """Take one record into account. Records come in the order of the log."""
        _APPLY[type(record)](self, record)

    def build(self, end_offset: int) -> MetadataImage:
        """The image after the records so far; `end_offset` is the one after the last of them."""
        base = self._base
        return MetadataImage(
            cluster_id=self._cluster_id,
            brokers=base.brokers,
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

    def _snapshot(self, record: SnapshotRecord) -> None:
        self._base = MetadataImage(brokers=self._base.brokers)
        self._changed = {}
        self._cluster_id = ""
        self._next_producer_id = 0


def snapshot(image: MetadataImage) -> list[Any]:
    """The records that make `image` out of nothing."""
    records: list[Any] = [
        SnapshotRecord(end_offset=image.end_offset),
        ClusterRecord(cluster_id=image.cluster_id),
        ProducerIdsRecord(next_producer_id=image.next_producer_id),
    ]
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


def topic_record(topic: Topic) -> TopicRecord:
    """The record that makes this topic."""
    return TopicRecord(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[partition_state(partition) for partition in topic.partitions],
    )


def partition_state(partition: Partition) -> PartitionState:
    """The part of a record that makes this partition."""
    return PartitionState(
        partition=partition.partition,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
    )


def _partition(state: PartitionState) -> Partition:
    return Partition(
        partition=state.partition,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        replicas=tuple(state.replicas),
        isr=tuple(state.isr),
    )


_APPLY: dict[type[Any], Callable[[ImageBuilder, Any], None]] = {
    ClusterRecord: ImageBuilder._cluster,
    TopicRecord: ImageBuilder._topic,
    PartitionsRecord: ImageBuilder._partitions,
    RemoveTopicRecord: ImageBuilder._remove_topic,
    ConfigRecord: ImageBuilder._config,
    ProducerIdsRecord: ImageBuilder._producer_ids,
    FeatureRecord: ImageBuilder._feature,
    SnapshotRecord: ImageBuilder._snapshot,
}
