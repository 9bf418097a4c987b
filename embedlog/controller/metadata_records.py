"""What the metadata log holds: one class for each kind of change.

A record's value is a frame version, the record type and the version as unsigned varints, then the
message, as in Kafka. The records themselves are embedlog's own, one for a whole change where Kafka
writes many.

    0   ClusterRecord           the cluster exists
    1   TopicRecord             a topic was made
    2   PartitionsRecord        partitions were added, or changed
    3   RemoveTopicRecord       a topic and its settings are gone
    4   ConfigRecord            one setting of one resource was set, or removed (null)
    5   ProducerIdsRecord       producer ids below a number were handed out
    6   SnapshotRecord          what came before is void: the rest of this batch says all there is
    7   FeatureRecord           a feature of the cluster has another level
    8   RegisterBrokerRecord    a broker of a cluster of several has registered
    9   UnregisterBrokerRecord  a broker is gone
    10  BrokerStateRecord       a broker was fenced, unfenced, or is being shut down
"""

from __future__ import annotations

from wire.schema import array, boolean, int8, int16, int32, int64, message, string, struct, uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FRAME_VERSION = 64
"""Not 1, which is Kafka's: its metadata records are others, and must not be taken for these."""


@message(kind="data", versions="0", flexible="0+", record_type=0)
class ClusterRecord:
    """The cluster exists, under this id."""

    cluster_id: str = string()


@struct
class PartitionRegistration:
    """One partition in full; lists are node ids.

    Version 1 can say what only a cluster of several brokers has. It takes no room when there is
    nothing to say.
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
    """In which log directory each replica lies, zeros where nobody has said; or none at all."""


@message(kind="data", versions="0-1", flexible="0+", record_type=1)
class TopicRecord:
    """A topic was made, with partitions 0 to n-1."""

    name: str = string()
    topic_id: bytes = uuid()
    partitions: list[PartitionRegistration] = array(PartitionRegistration)


@message(kind="data", versions="0-1", flexible="0+", record_type=2)
class PartitionsRecord:
    """These partitions of a topic are new, or as they are said to be here."""

    topic_id: bytes = uuid()
    partitions: list[PartitionRegistration] = array(PartitionRegistration)


@message(kind="data", versions="0", flexible="0+", record_type=3)
class RemoveTopicRecord:
    """A topic is gone, and its settings with it."""

    topic_id: bytes = uuid()


@message(kind="data", versions="0", flexible="0+", record_type=4)
class ConfigRecord:
    """A setting of a resource has this text; null removes it."""

    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(nullable="0+", default=None)


@message(kind="data", versions="0", flexible="0+", record_type=5)
class ProducerIdsRecord:
    """Ids below this one were handed out."""

    next_producer_id: int = int64()


@message(kind="data", versions="0", flexible="0+", record_type=6)
class SnapshotRecord:
    """What came before is void; `end_offset` is where the state was taken."""

    end_offset: int = int64()


@message(kind="data", versions="0", flexible="0+", record_type=7)
class FeatureRecord:
    """A feature has this level; 0 is off."""

    name: str = string()
    level: int = int16()


@message(kind="data", versions="0", flexible="0+", record_type=8)
class RegisterBrokerRecord:
    """A broker has registered, or says more of itself under the epoch that it has."""

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
    """A broker is gone for good."""

    broker_id: int = int32()


@message(kind="data", versions="0", flexible="0+", record_type=10)
class BrokerStateRecord:
    """A broker is in this state."""

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
"""The class of each record type; `metadata_log` has what each does to an image."""
