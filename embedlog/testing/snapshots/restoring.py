"""Put another state in place of the present one: `Kafka.restore` and `Kafka.reset`.

Clients of other processes keep the address. They must not take the older state for stale news, so
it looks newer where it counts:

    leader epochs     of a partition whose log ends elsewhere, or whose epoch was later, are raised
                      beyond the former one: clients take the metadata, and consumers notice that
                      their positions belong to records that are gone
    producer ids      that the former cluster has given out are not given out again
    groups            that the state does not have: their members of the new protocol join again,
                      where GROUP_ID_NOT_FOUND would be fatal for them

Clients see this:

    connections       break, and are made again to the same address
    consumers         join their groups again, and go on at the offsets that the state has.
                      Positions beyond the end of a log are reset as auto.offset.reset says
    producers         send their records again; idempotent ones go on
    transactions      that the state does not have end with an error, most often a fenced producer
    clients of        `kafka.producer()`, `consumer()`, `admin()` and handles of brokers or
    this process      partitions belong to the former cluster, and raise ClosedError: make new ones
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from embedlog.cluster.cluster import Cluster
from embedlog.common import TopicPartition
from embedlog.errors import ConfigError
from embedlog.testing.interception import RESTORED
from embedlog.testing.opening import create_topics, open_cluster
from embedlog.testing.snapshots.snapshot import Snapshot, ends_of
from embedlog.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC

if TYPE_CHECKING:
    from embedlog.controller.controller import Controller
    from embedlog.testing.cluster_owner import ClusterOwner


def restore(kafka: ClusterOwner, saved: Snapshot) -> None:
    """Continue with the state of `saved`, at the same addresses. See `Kafka.restore`."""
    if kafka.shape.path is not None:
        raise ConfigError(
            f"the cluster is at {kafka.shape.path!r}: states are of clusters in memory"
        )
    if len(saved.shape.racks) != len(kafka.shape.racks) or saved.shape.clock != kafka.shape.clock:
        raise ConfigError(
            f"the state is of a cluster with clock={saved.shape.clock!r} and racks="
            f"{list(saved.shape.racks)}, and this one has clock={kafka.shape.clock!r} and racks="
            f"{list(kafka.shape.racks)}: open it with Kafka(saved=...)"
        )
    former = Former(kafka.cluster)

    def successor() -> Cluster:
        cluster = opened(saved)
        try:
            former.exceed_in(cluster, saved.ends)
        except BaseException:
            cluster.close()
            raise
        return cluster

    _replace(kafka, former, successor)


def reset(kafka: ClusterOwner, origin: Snapshot | None) -> None:
    """Continue with the state at the beginning: `origin`, or the shape's topics without records."""
    if origin is not None:
        restore(kafka, origin)
        return
    if kafka.shape.path is not None:
        raise ConfigError(
            f"the cluster is at {kafka.shape.path!r}: only one in memory can be reset"
        )
    former, cluster_id = Former(kafka.cluster), kafka.cluster.cluster_id

    def successor() -> Cluster:
        cluster = open_cluster(kafka.shape, cluster_id=cluster_id)
        try:
            create_topics(cluster, kafka.shape)
            former.exceed_in(cluster, {})
        except BaseException:
            cluster.close()
            raise
        return cluster

    _replace(kafka, former, successor)


def _replace(kafka: ClusterOwner, former: Former, successor: Callable[[], Cluster]) -> None:
    kafka.replace_cluster(successor)
    if former.has_groups:
        from embedlog.testing.snapshots.rejoining import rejoining

        kafka.stages.put(RESTORED, rejoining)


def opened(saved: Snapshot) -> Cluster:
    """Open a cluster with the state of `saved`; brokers that did not run are stopped."""
    cluster = open_cluster(saved.shape, saved.files(), ahead_ms=saved.ahead_ms)
    for node_id in saved.stopped:
        cluster.broker(node_id).stop()
    return cluster


class Former:
    """The facts about the former cluster that its successor must exceed."""

    def __init__(self, cluster: Cluster) -> None:
        self._ends = ends_of(cluster)
        self._next_producer_id = 0
        self._epochs: dict[TopicPartition, int] = {}
        self.has_groups = False
        controller = _controller(cluster)
        if controller is not None:
            image = controller.image
            self._next_producer_id = image.next_producer_id
            self._epochs = {
                TopicPartition(topic.name, each.partition): each.leader_epoch
                for topic in image.topics_by_name.values()
                for each in topic.partitions
            }
            self.has_groups = OFFSETS_TOPIC in image.topics_by_name

    def exceed_in(self, cluster: Cluster, ends: Mapping[TopicPartition, int]) -> None:
        """Raise the epochs and the producer ids of the successor, whose logs have these ends."""
        controller = _controller(cluster)
        assert controller is not None, cluster
        missing = self._next_producer_id - controller.image.next_producer_id
        if missing > 0:
            controller.allocate_producer_ids(missing)
        older: list[TopicPartition] = []
        for partition, epoch in self._epochs.items():
            present = controller.image.partition(*partition)
            if present is None:
                continue
            # Clients read no internal topics, so these need only epochs that do not fall.
            is_same = partition[0] in INTERNAL_TOPICS or (
                partition in ends and ends[partition] == self._ends.get(partition)
            )
            if not is_same or present.leader_epoch < epoch:
                older.append(partition)
        if older:
            latest = max(self._epochs[each] for each in older)
            controller.bump_leader_epochs(older, latest + 1)


def _controller(cluster: Cluster) -> Controller | None:
    """Return the controller; None if no broker runs that knows it."""
    running = [node for node in cluster.brokers if node.is_running]
    return running[0].core.controller if running else None
