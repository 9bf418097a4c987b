"""The records of the metadata log: one class for each kind of change.

A record's value is a frame version, the record type and the version as unsigned varints, then the
message, as in Kafka. The records themselves are embedlog's own: one record stands for a whole
change where Kafka writes many.

    0   ClusterRecord           the cluster exists
    1   TopicRecord             a topic was created
    2   PartitionsRecord        partitions were added, or changed
    3   RemoveTopicRecord       a topic and its settings were deleted
    4   ConfigRecord            one setting of one resource was set, or removed (null)
    5   ProducerIdsRecord       producer ids below a number were given out
    6   SnapshotRecord          earlier records are void: the rest of this batch is the whole state
    7   FeatureRecord           the level of a feature of the cluster changed
    8   RegisterBrokerRecord    a broker of a cluster of several has registered
    9   UnregisterBrokerRecord  a broker was removed
    10  BrokerStateRecord       a broker was fenced, unfenced, or is being shut down
"""

from __future__ import annotations

from wire.schema import array, boolean, int8, int16, int32, int64, message, string, struct, uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FRAME_VERSION = 64
"""Not Kafka's 1: its metadata records have other formats and must not be mistaken for these."""


@message(kind="data", versions="0", flexible="0+", record_type=0)
class ClusterRecord:
    """The id of the cluster."""

    cluster_id: str = string()


@struct
class PartitionRegistration:
    """One partition in full; the lists without a comment contain node ids.

    The fields of version 1 exist only in a cluster of several brokers. Empty fields take no room.
    """

    partition: int = int32()
    leader: int = int32(default=-1)
    leader_epoch: int = int32()
    partition_epoch: int = int32()
    replicas: list[int] = array(int32)
    isr: list[int] = array(int32)
    adding_replicas: list[int] = array(int32, "1+", tag=0)
    removing_replicas: list[int] = array(int32, "1+", tag=1)
    elr: list[int] = array(int32, "1+", tag=2)
    last_known_elr: list[int] = array(int32, "1+", tag=3)
    is_recovering: bool = boolean("1+", tag=4)
    directories: list[bytes] = array(uuid, "1+", tag=5)
    """The log directory of each replica, zeros where unknown; empty if all are unknown."""


@message(kind="data", versions="0-1", flexible="0+", record_type=1)
class TopicRecord:
    """A new topic, with partitions 0 to n-1."""

    name: str = string()
    topic_id: bytes = uuid()
    partitions: list[PartitionRegistration] = array(PartitionRegistration)


@message(kind="data", versions="0-1", flexible="0+", record_type=2)
class PartitionsRecord:
    """New or changed partitions of a topic."""

    topic_id: bytes = uuid()
    partitions: list[PartitionRegistration] = array(PartitionRegistration)


@message(kind="data", versions="0", flexible="0+", record_type=3)
class RemoveTopicRecord:
    """A deleted topic; its settings go with it."""

    topic_id: bytes = uuid()


@message(kind="data", versions="0", flexible="0+", record_type=4)
class ConfigRecord:
    """A new text of a resource's setting; null removes it."""

    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(nullable="0+", default=None)


@message(kind="data", versions="0", flexible="0+", record_type=5)
class ProducerIdsRecord:
    """Producer ids below `next_producer_id` were given out."""

    next_producer_id: int = int64()


@message(kind="data", versions="0", flexible="0+", record_type=6)
class SnapshotRecord:
    """Voids all earlier records. `end_offset` is the `MetadataImage.end_offset` of the snapshot."""

    end_offset: int = int64()


@message(kind="data", versions="0", flexible="0+", record_type=7)
class FeatureRecord:
    """The level of a feature; 0 is off."""

    name: str = string()
    level: int = int16()


@message(kind="data", versions="0", flexible="0+", record_type=8)
class RegisterBrokerRecord:
    """A new registration of a broker, or new properties under its present epoch."""

    broker_id: int = int32()
    broker_epoch: int = int64()
    incarnation: bytes = uuid()
    rack: str | None = string(nullable="0+", default=None)
    directories: list[bytes] = array(uuid)
    is_fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean()
    cordoned: list[bytes] = array(uuid, "0+", tag=0)


@message(kind="data", versions="0", flexible="0+", record_type=9)
class UnregisterBrokerRecord:
    """A broker was removed for good."""

    broker_id: int = int32()


@message(kind="data", versions="0", flexible="0+", record_type=10)
class BrokerStateRecord:
    """The state of a broker."""

    broker_id: int = int32()
    is_fenced: bool = boolean()
    in_controlled_shutdown: bool = boolean()


RECORDS: dict[int, type[Any]] = {
    0: ClusterRecord,
    1: TopicRecord,
    2: PartitionsRecord,
    3: RemoveTopicRecord,
    4: ConfigRecord,
    5: ProducerIdsRecord,
    6: SnapshotRecord,
    7: FeatureRecord,
    8: RegisterBrokerRecord,
    9: UnregisterBrokerRecord,
    10: BrokerStateRecord,
}
"""Record type -> its class; `replay` applies the records to an image."""
