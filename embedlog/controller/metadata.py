"""The metadata of the cluster, as immutable values.

A `MetadataImage` is never changed: for each change the controller makes a new one, which shares its
unchanged parts, and publishes it by one assignment. Readers take the reference once and see one
consistent state, without a lock.
"""

from __future__ import annotations

from embedlog.common import ZERO_UUID, TopicPartition, Value
from embedlog.controller.features import FIRST_LEVELS
from embedlog.topic_names import INTERNAL_TOPICS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


RESOURCE_TOPIC = 2
RESOURCE_BROKER = 4
RESOURCE_BROKER_LOGGER = 8
RESOURCE_CLIENT_METRICS = 16
RESOURCE_GROUP = 32


class PartitionImage:
    """One partition: its replicas and its leader; `leader` is -1 without one.

    Every change raises `partition_epoch` by one. A change of the leader, or a removal of replicas,
    also begins a new `leader_epoch`. An image does not change. It has slots and is no `Value`,
    because opening 10,000 partitions would take a fifth longer.
    """

    __slots__ = (
        *("partition", "leader", "leader_epoch", "replicas", "isr", "partition_epoch"),
        *("adding_replicas", "removing_replicas", "elr", "last_known_elr", "is_recovering"),
        "directories",
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
        adding_replicas: tuple[int, ...] = (),
        removing_replicas: tuple[int, ...] = (),
        elr: tuple[int, ...] = (),
        last_known_elr: tuple[int, ...] = (),
        is_recovering: bool = False,
        directories: Mapping[int, bytes] = {},
    ) -> None:
        self.partition = partition
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.replicas = replicas
        """All replicas, the preferred leader first; during a reassignment also the old ones."""
        self.isr = isr
        self.partition_epoch = partition_epoch
        self.adding_replicas = adding_replicas
        self.removing_replicas = removing_replicas
        self.elr = elr
        """Eligible leader replicas: not in the in-sync set, but with every record below the high
        watermark (KIP-966)."""
        self.last_known_elr = last_known_elr
        """The last leader of a partition without leader."""
        self.is_recovering = is_recovering
        """True if the leader was elected uncleanly and has not yet reported its recovery."""
        self.directories = directories
        """Node id -> the replica's log directory; brokers with one directory have no entry."""

    def replace(self, **changes: Any) -> PartitionImage:
        """Return a copy in which the fields `changes` are replaced."""
        return PartitionImage(**{name: getattr(self, name) for name in self.__slots__} | changes)

    def __eq__(self, other: object) -> bool:
        return type(other) is PartitionImage and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    def next_epoch(self, epoch_min: int = 0) -> PartitionImage:
        """Return the partition under the next leader epoch, at least `epoch_min`."""
        return self.replace(
            leader_epoch=max(self.leader_epoch + 1, epoch_min),
            partition_epoch=self.partition_epoch + 1,
        )

    def __hash__(self) -> int:
        return hash((self.partition, self.partition_epoch))

    def __repr__(self) -> str:
        return (
            f"PartitionImage({self.partition}, leader={self.leader}@{self.leader_epoch},"
            f" replicas={self.replicas}, isr={self.isr})"
        )


class TopicImage(Value):
    """One topic; `partitions[n].partition == n`."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionImage, ...]

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @property
    def replication_factor(self) -> int:
        """Number of replicas of partition 0, as Kafka reports it."""
        return len(self.partitions[0].replicas)

    def __repr__(self) -> str:
        return f"TopicImage({self.name!r}, {len(self.partitions)} partitions)"


class BrokerImage(Value):
    """One registered broker. Its addresses depend on the listener and are not kept here."""

    node_id: int
    rack: str | None = None
    epoch: int = -1
    """Offset of the registration in the metadata log; -1 for the only broker of a cluster."""
    is_fenced: bool = False
    """A fenced broker may neither lead nor be in sync: the controller treats it as absent."""
    in_controlled_shutdown: bool = False
    incarnation: bytes = ZERO_UUID
    """A random id of the broker's last start."""
    directories: tuple[bytes, ...] = ()
    """Ids of the log directories that work."""
    cordoned: tuple[bytes, ...] = ()
    """Ids of the directories that get no new replicas (KIP-1066)."""

    @property
    def is_cordoned(self) -> bool:
        """Return whether all of the broker's directories are cordoned."""
        return bool(self.cordoned) and set(self.directories) <= set(self.cordoned)

    @property
    def is_active(self) -> bool:
        """Return whether the broker may lead and be in sync."""
        return not self.is_fenced and not self.in_controlled_shutdown

    def __repr__(self) -> str:
        state = "fenced" if self.is_fenced else "active" if self.is_active else "leaving"
        return f"BrokerImage({self.node_id}, epoch={self.epoch}, {state})"


class MetadataImage(Value):
    """The whole state after some record of the metadata log.

    Settings are the texts that were set, without defaults.
    """

    cluster_id: str = ""
    brokers: Mapping[int, BrokerImage] = {}
    topics_by_name: Mapping[str, TopicImage] = {}
    topics_by_id: Mapping[bytes, TopicImage] = {}
    topic_configs: Mapping[str, Mapping[str, str]] = {}
    broker_configs: Mapping[str, Mapping[str, str]] = {}
    """Node id, or "" for the whole cluster -> dynamic settings."""
    group_configs: Mapping[str, Mapping[str, str]] = {}
    client_metrics_configs: Mapping[str, Mapping[str, str]] = {}
    feature_levels: Mapping[str, int] = FIRST_LEVELS
    """The features that are on, by name."""
    next_producer_id: int = 0
    end_offset: int = 0
    """The offset after the last record that this state contains."""

    def configs(self, resource_type: int) -> Mapping[str, Mapping[str, str]]:
        """Return the settings of all resources of a type (`RESOURCE_...`), by resource name."""
        found: Mapping[str, Mapping[str, str]] = getattr(self, CONFIG_ATTRIBUTES[resource_type])
        return found

    def feature_level(self, name: str) -> int:
        """Return the level in force of a feature of `features`, 0 if it is off."""
        return self.feature_levels.get(name, 0)

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        image = self.topics_by_name.get(topic)
        if image is None or not 0 <= partition < len(image.partitions):
            return None
        return image.partitions[partition]

    @property
    def is_alone(self) -> bool:
        """Return whether this is a cluster of one configured broker, not of several."""
        return len(self.brokers) == 1 and all(each.epoch < 0 for each in self.brokers.values())

    def is_active(self, node_id: int) -> bool:
        broker = self.brokers.get(node_id)
        return broker is not None and broker.is_active

    def is_lost(self, partition: PartitionImage, node_id: int) -> bool:
        """Return whether the broker's replica is in a directory that the broker has lost."""
        directory = partition.directories.get(node_id)
        if directory is None:
            return False
        broker = self.brokers.get(node_id)
        return broker is None or (bool(broker.directories) and directory not in broker.directories)

    def may_lead(self, partition: PartitionImage, node_id: int) -> bool:
        """Return whether the broker is active, and its replica in a usable directory."""
        return self.is_active(node_id) and not self.is_lost(partition, node_id)

    def directories_of(self, node_id: int) -> set[bytes]:
        """Return the directories of a broker that are known to hold replicas."""
        return {
            partition.directories[node_id]
            for topic in self.topics_by_name.values()
            for partition in topic.partitions
            if node_id in partition.directories
        }

    def offline_replicas(self, partition: PartitionImage) -> tuple[int, ...]:
        """Return the replicas on fenced or unknown brokers, or in offline directories."""
        brokers, places = self.brokers, partition.directories
        return tuple(
            node
            for node in partition.replicas
            if (broker := brokers.get(node)) is None
            or broker.is_fenced
            or (places and self.is_lost(partition, node))
        )

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


class MetadataDelta(Value):
    """The effects of one change, for the parts of a broker that must act on it."""

    image: MetadataImage
    """The state after the change."""
    created: Sequence[TopicImage] = ()
    deleted: Sequence[TopicImage] = ()
    partitions_added: Sequence[tuple[TopicImage, range]] = ()
    """Topics as they are after the change, with the numbers of the new partitions."""
    changed_configs: Sequence[str] = ()
    """Names of topics whose settings changed."""
    partitions_changed: Sequence[TopicPartition] = ()
    """Partitions whose leader, epoch, in-sync set or list of replicas changed."""
    brokers_changed: bool = False
    """True if a broker came, went, was fenced or is no longer fenced."""
    broker_configs_changed: bool = False
    """True if dynamic broker settings changed, and with them the defaults of every topic."""
    groups_changed: Sequence[str] = ()
    """Names of groups whose settings changed."""

    @classmethod
    def everything(cls, image: MetadataImage) -> MetadataDelta:
        """Return the change from nothing to `image`, as a broker sees it when it opens."""
        return cls(
            image,
            created=list(image.topics_by_name.values()),
            brokers_changed=True,
            broker_configs_changed=bool(image.broker_configs),
        )
