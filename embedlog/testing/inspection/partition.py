"""`Partition`: a test's handle of one partition, of one broker or of several."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedlog.common import TopicPartition
from embedlog.errors import NotLeaderOrFollower
from embedlog.testing.inspection.brokers import Brokers

if TYPE_CHECKING:
    from embedlog.cluster.handles.cluster_partition import ClusterPartition
    from embedlog.controller.metadata import PartitionImage
    from embedlog.replication.partition import Partition as Hosted


@dataclass(frozen=True, slots=True)
class ProducerValue:
    """The state of one producer in one partition."""

    producer_id: int
    epoch: int
    last_sequence: int
    """The sequence number of its last record; -1 if it is unknown."""
    last_offset: int
    """The offset of its last record; -1 if it is unknown."""
    transaction_start: int | None
    """The offset of the first record of its open transaction; None without one."""


@dataclass(frozen=True, slots=True)
class EpochValue:
    """One leader epoch, and the offset of its first record."""

    epoch: int
    start_offset: int


class Partition:
    """One partition: its leader, its offsets, its producers, its moves.

    The offsets are the leader's. Moves need several brokers.

    >>> from embedlog.testing import Kafka
    >>> with Kafka(topics={"orders": 1}) as kafka:
    ...     _ = kafka.producer().send("orders", b"x").result()
    ...     kafka.partition("orders", 0).hw
    1
    """

    def __init__(self, brokers: Brokers, topic: str, partition: int) -> None:
        """Raise UnknownTopicOrPartition if the partition does not exist."""
        self._brokers = brokers
        self.topic_partition: TopicPartition = brokers.check_partition(topic, partition)

    # Leadership

    @property
    def leader(self) -> int:
        """The number of the leading broker; -1 if there is no leader."""
        return self._image.leader

    @property
    def leader_epoch(self) -> int:
        """The leader epoch: it rises with each change of the leader."""
        return self._image.leader_epoch

    @property
    def replicas(self) -> tuple[int, ...]:
        """The brokers that hold a replica, the preferred leader first."""
        return self._image.replicas

    @property
    def isr(self) -> tuple[int, ...]:
        """The replicas in sync with the leader, including the leader."""
        return self._image.isr

    # Offsets

    @property
    def start(self) -> int:
        """The log start offset: the first offset that can be read."""
        return self._led.log.offsets.log_start_offset

    @property
    def leo(self) -> int:
        """The log end offset: the offset of the next record."""
        return self._led.log.log_end_offset

    @property
    def hw(self) -> int:
        """The high watermark: consumers read the records below it."""
        return self._led.log.offsets.high_watermark

    @property
    def lso(self) -> int:
        """The last stable offset: consumers at read_committed read the records below it."""
        return self._led.log.offsets.last_stable_offset

    @property
    def end_offsets(self) -> dict[int, int]:
        """The log end offset at each replica that runs."""
        return {node: found.log.log_end_offset for node, found in self._hosted().items()}

    @property
    def high_watermarks(self) -> dict[int, int]:
        """The high watermark at each replica that runs."""
        return {node: found.log.offsets.high_watermark for node, found in self._hosted().items()}

    @property
    def producers(self) -> list[ProducerValue]:
        """The producers that the leader remembers, by producer id."""
        return [
            ProducerValue(
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                each.last_data_offset,
                None if each.current_txn_first_offset < 0 else each.current_txn_first_offset,
            )
            for each in sorted(self._led.active_producers(), key=lambda each: each.producer_id)
        ]

    @property
    def epochs(self) -> list[EpochValue]:
        """The leader epochs of the leader's log, the oldest first."""
        led = self._led
        with led.lock:
            return [EpochValue(*each) for each in led.log.epochs.cache.entries]

    # Moves

    def move_to(self, node_id: int) -> None:
        """Make a broker the preferred leader: see `ClusterPartition.move_to`."""
        self._handle.move_to(node_id)

    def reassign(self, replicas: Collection[int]) -> None:
        """Give the partition other replicas: see `ClusterPartition.reassign`."""
        self._handle.reassign(replicas)

    def hold(self, node_id: int) -> None:
        """Keep a follower behind until `release`: see `ClusterPartition.hold`."""
        self._handle.hold(node_id)

    def release(self, node_id: int) -> None:
        """End `hold`."""
        self._handle.release(node_id)

    @property
    def _handle(self) -> ClusterPartition:
        return self._brokers.cluster.partition(*self.topic_partition)

    @property
    def _image(self) -> PartitionImage:
        self._brokers.check_partition(*self.topic_partition)
        found = self._brokers.image.partition(*self.topic_partition)
        assert found is not None, self.topic_partition
        return found

    @property
    def _led(self) -> Hosted:
        self._brokers.check_partition(*self.topic_partition)
        found = self._brokers.leader(*self.topic_partition)
        if found is None:
            raise NotLeaderOrFollower(f"partition {self.topic_partition} has no running leader")
        return found

    def _hosted(self) -> dict[int, Hosted]:
        return self._brokers.replicas(*self.topic_partition)

    def __repr__(self) -> str:
        image = self._image
        return f"<Partition {self.topic_partition}, leader {image.leader}, isr {image.isr}>"
