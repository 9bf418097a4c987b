"""What the cluster knows about itself, as immutable values.

A `MetadataImage` is never changed: the controller makes a new one for each change, sharing what
stayed the same, and publishes it by one assignment. Readers take the reference once and see one
consistent state, without a lock.
"""

from __future__ import annotations

from embedlog.controller.features import FIRST_LEVELS
from embedlog.topic_names import INTERNAL_TOPICS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embedlog.common import TopicPartition

RESOURCE_TOPIC = 2
RESOURCE_BROKER = 4
RESOURCE_BROKER_LOGGER = 8
RESOURCE_CLIENT_METRICS = 16
RESOURCE_GROUP = 32


class PartitionImage:
    """One partition: where its replicas are, and who leads. `leader` is -1 when nobody does."""

    __slots__ = (
        "directories",
        "isr",
        "leader",
        "leader_epoch",
        "offline_replicas",
        "partition",
        "partition_epoch",
        "replicas",
    )

    def __init__(
        self,
        *,
        partition: int,
        leader: int,
        leader_epoch: int,
        replicas: tuple[int, ...],
        isr: tuple[int, ...],
        partition_epoch: int = 0,
        offline_replicas: tuple[int, ...] = (),
        directories: tuple[bytes, ...] = (),
    ) -> None:
        self.partition = partition
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.replicas = replicas
        self.isr = isr
        self.partition_epoch = partition_epoch
        self.offline_replicas = offline_replicas
        self.directories = directories

    def next_epoch(self, epoch_min: int = 0) -> PartitionImage:
        """The same partition under the next leader epoch, or a later one if that is too low."""
        return PartitionImage(
            partition=self.partition,
            leader=self.leader,
            leader_epoch=max(self.leader_epoch + 1, epoch_min),
            replicas=self.replicas,
            isr=self.isr,
            partition_epoch=self.partition_epoch + 1,
            offline_replicas=self.offline_replicas,
            directories=self.directories,
        )

    def __repr__(self) -> str:
        return (
            f"PartitionImage({self.partition}, leader={self.leader}@{self.leader_epoch},"
            f" replicas={self.replicas}, isr={self.isr})"
        )


class TopicImage:
    """One topic; `partitions[n].partition == n`."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes, partitions: tuple[PartitionImage, ...]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions

    @property
    def is_internal(self) -> bool:
        """Does it belong to a coordinator?"""
        return self.name in INTERNAL_TOPICS

    @property
    def replication_factor(self) -> int:
        """Replicas of its first partition, as Kafka reports it."""
        return len(self.partitions[0].replicas)

    def __repr__(self) -> str:
        return f"TopicImage({self.name!r}, {len(self.partitions)} partitions)"


class BrokerImage:
    """One registered broker. Its addresses depend on the listener and are not kept here."""

    __slots__ = ("node_id", "rack")

    def __init__(self, node_id: int, rack: str | None = None) -> None:
        self.node_id = node_id
        self.rack = rack


class MetadataImage:
    """The whole state after some record of the metadata log; `end_offset` says which.

    Settings are the texts that were set, nothing effective: topics, groups and client metrics by
    name, brokers by "" (cluster-wide) or node id. `feature_levels` has those that are on, by name.
    """

    __slots__ = (
        "broker_configs",
        "brokers",
        "client_metrics_configs",
        "cluster_id",
        "end_offset",
        "feature_levels",
        "group_configs",
        "next_producer_id",
        "topic_configs",
        "topics_by_id",
        "topics_by_name",
    )

    def __init__(
        self,
        *,
        cluster_id: str = "",
        brokers: Mapping[int, BrokerImage] = {},
        topics_by_name: Mapping[str, TopicImage] = {},
        topics_by_id: Mapping[bytes, TopicImage] = {},
        topic_configs: Mapping[str, Mapping[str, str]] = {},
        broker_configs: Mapping[str, Mapping[str, str]] = {},
        group_configs: Mapping[str, Mapping[str, str]] = {},
        client_metrics_configs: Mapping[str, Mapping[str, str]] = {},
        feature_levels: Mapping[str, int] = FIRST_LEVELS,
        next_producer_id: int = 0,
        end_offset: int = 0,
    ) -> None:
        self.cluster_id = cluster_id
        self.brokers = brokers
        self.topics_by_name = topics_by_name
        self.topics_by_id = topics_by_id
        self.topic_configs = topic_configs
        self.broker_configs = broker_configs
        self.group_configs = group_configs
        self.client_metrics_configs = client_metrics_configs
        self.feature_levels = feature_levels
        self.next_producer_id = next_producer_id
        self.end_offset = end_offset

    def configs(self, resource_type: int) -> Mapping[str, Mapping[str, str]]:
        """The settings of all resources of a type (`RESOURCE_...`), by resource name."""
        found: Mapping[str, Mapping[str, str]] = getattr(self, CONFIG_ATTRIBUTES[resource_type])
        return found

    def feature_level(self, name: str) -> int:
        """The level in force of a feature of `features`, 0 when it is off."""
        return self.feature_levels.get(name, 0)

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        """The partition of that name and number, None when there is none."""
        image = self.topics_by_name.get(topic)
        if image is None or not 0 <= partition < len(image.partitions):
            return None
        return image.partitions[partition]

    def __repr__(self) -> str:
        return (
            f"MetadataImage({self.cluster_id}, {len(self.topics_by_name)} topics,"
            f" end_offset={self.end_offset})"
        )


CONFIG_ATTRIBUTES = {
    RESOURCE_TOPIC: "topic_configs",
    RESOURCE_BROKER: "broker_configs",
    RESOURCE_CLIENT_METRICS: "client_metrics_configs",
    RESOURCE_GROUP: "group_configs",
}


class MetadataDelta:
    """What one change did, for those who must act on it; see the attributes of `__init__`."""

    __slots__ = (
        "broker_configs_changed",
        "changed_configs",
        "created",
        "deleted",
        "epochs_changed",
        "groups_changed",
        "image",
        "partitions_added",
    )

    def __init__(
        self,
        image: MetadataImage,
        *,
        created: Sequence[TopicImage] = (),
        deleted: Sequence[TopicImage] = (),
        partitions_added: Sequence[tuple[TopicImage, range]] = (),
        changed_configs: Sequence[str] = (),
        epochs_changed: Sequence[TopicPartition] = (),
        broker_configs_changed: bool = False,
        groups_changed: Sequence[str] = (),
    ) -> None:
        self.image = image
        """The state after the change."""
        self.created = created
        self.deleted = deleted
        self.partitions_added = partitions_added
        """Topics as they are after the change, with the numbers of the new partitions."""
        self.changed_configs = changed_configs
        """Names of topics whose settings changed."""
        self.epochs_changed = epochs_changed
        """Partitions with a new leader epoch."""
        self.broker_configs_changed = broker_configs_changed
        """Dynamic broker settings changed, and with them the defaults of every topic."""
        self.groups_changed = groups_changed
        """Names of groups whose settings changed."""

    @classmethod
    def everything(cls, image: MetadataImage) -> MetadataDelta:
        """From nothing to `image`: what a broker must do when it opens."""
        return cls(
            image,
            created=list(image.topics_by_name.values()),
            broker_configs_changed=bool(image.broker_configs),
        )

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in self.__slots__ if name != "image"]
        return f"MetadataDelta({', '.join(shown)})"
