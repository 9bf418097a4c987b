"""`Kafka`: a cluster for tests, with everything that a test does to it in one object.

    with Kafka() as kafka:
        kafka.create_topic("orders", 3)
        my_service(kafka.bootstrap_servers)

The fixture `kafka` of the pytest plugin is one. Each part loads when a test first uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from embedlog.testing.interception import Stages
from embedlog.testing.opening import create_topics, open_cluster, ports_of
from embedlog.testing.shape import Shape

if TYPE_CHECKING:
    from _typeshed import StrPath

    from embedlog.client.admin.admin import Admin
    from embedlog.client.admin.new_topics import CreatedTopic
    from embedlog.client.consumer.consumer import Consumer
    from embedlog.client.producer.producer import Producer
    from embedlog.cluster.cluster import Cluster
    from embedlog.cluster.faults.network import ClusterNetwork
    from embedlog.cluster.handles.broker_node import BrokerNode
    from embedlog.cluster.handles.cluster_controller import ClusterController
    from embedlog.cluster.handles.cluster_listener import ClusterListener
    from embedlog.cluster.handles.cluster_partition import ClusterPartition
    from embedlog.server.addresses import BrokerListener
    from embedlog.testing.snapshots.snapshot import Snapshot
    from embedlog.testing.time.kafka_clock import KafkaClock


class Kafka:
    """A cluster for tests. Every method may be called from any thread.

    It listens from the first use of `bootstrap_servers` on. `close` closes the clients that the
    test got from it, then the cluster.
    """

    def __init__(
        self, shape: Shape | None = None, *, saved: Snapshot | None = None, **given: Any
    ) -> None:
        """Open a cluster of this shape, or of the shape that the arguments give: see `Shape`.

        `saved` is the state to begin with; then the shape is its own.
        """
        self.shape = Shape.of(**given) if shape is None else shape
        self._origin = saved
        if saved is None:
            self.cluster = open_cluster(self.shape)
        else:
            from embedlog.testing.snapshots.restoring import opened

            self.shape = saved.shape
            self.cluster = opened(saved)
        """The cluster, for everything that this object does not offer itself. `restore` and `reset`
        replace it."""
        self._stages = Stages(self.cluster)
        self._ends = ExitStack()
        self._listener: BrokerListener | ClusterListener | None = None
        self._clock: KafkaClock | None = None
        self._ends.callback(self._close_cluster)
        try:
            if self.shape.clock != "real":
                self.clock.begin()
            if saved is None:
                create_topics(self.cluster, self.shape)
        except BaseException:
            self.close()
            raise

    @property
    def stages(self) -> Stages:
        """The parts of the test kit between requests and brokers."""
        return self._stages

    # Addresses and clients

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of each broker, for any Kafka client."""
        if self._listener is None:
            self._listener = self.cluster.listen("127.0.0.1", 0)
        return self._listener.address

    def producer(self, **settings: Any) -> Producer:
        """Return a producer, which `close` closes: see `Cluster.producer`."""
        made = self.cluster.producer(**settings)
        self._ends.callback(made.close)
        return made

    def consumer(self, **settings: Any) -> Consumer:
        """Return a consumer, which `close` closes: see `Cluster.consumer`."""
        made = self.cluster.consumer(**settings)
        self._ends.callback(made.close)
        return made

    def admin(self, **settings: Any) -> Admin:
        """Return an admin client, which `close` closes: see `Cluster.admin`."""
        made = self.cluster.admin(**settings)
        self._ends.callback(made.close)
        return made

    # Topics and records

    def create_topic(self, name: str, partitions: int = -1, **settings: Any) -> CreatedTopic:
        """Create a topic: see `Cluster.create_topic`."""
        return self.cluster.create_topic(name, partitions, **settings)

    # Faults of requests and connections

    # Brokers, links, leaders

    def broker(self, node_id: int | None = None) -> BrokerNode:
        """Return a broker, to stop, kill and pause it; None means the only one."""
        return self.cluster.broker(node_id)

    @property
    def brokers(self) -> list[BrokerNode]:
        """All brokers by number, running or not."""
        return self.cluster.brokers

    def partition(self, topic: str, partition: int) -> ClusterPartition:
        """Return a partition: its leader, its replicas and their moves."""
        return self.cluster.partition(topic, partition)

    @property
    def network(self) -> ClusterNetwork:
        """The links between the brokers."""
        return self.cluster.network

    @property
    def controller(self) -> ClusterController:
        """The controller, to stop and start it."""
        return self.cluster.controller

    # Groups and transactions

    # Waits

    # Time

    @property
    def clock(self) -> KafkaClock:
        """The cluster's time and its timers; jumps, with clock="manual" or "auto"."""
        if self._clock is None:
            from embedlog.testing.time.kafka_clock import KafkaClock

            self._clock = KafkaClock(self)
        return self._clock

    def maintain(self) -> int:
        """Do all periodic work now: retention, compaction, expiry. See `Cluster.maintain`."""
        return self.cluster.maintain()

    # What happened

    # Saved states

    def snapshot(self) -> Snapshot:
        """Return the present state, for `restore`, `Kafka(saved=...)` and `Snapshot.save`."""
        from embedlog.testing.snapshots.snapshot import take

        return take(self)

    def restore(self, saved: Snapshot) -> None:
        """Bring a state back, and the clock with it. See `embedlog.testing.snapshots.restoring`."""
        from embedlog.testing.snapshots.restoring import restore

        restore(self, saved)

    def reset(self) -> None:
        """Bring back the state right after this object was made."""
        from embedlog.testing.snapshots.restoring import reset

        reset(self, self._origin)

    def fork(self) -> Kafka:
        """Return a second cluster with the present state; the caller closes it.

        It has its own addresses, and either of the two changes without the other.
        """
        return Kafka(saved=self.snapshot())

    @classmethod
    def load(cls, path: StrPath, **given: Any) -> Kafka:
        """Open a copy of the state in a directory, such as one of `Snapshot.save`: see `Shape`."""
        from embedlog.testing.snapshots.snapshot import Snapshot

        return cls(saved=Snapshot.read(path, Shape.of(**given)))

    def save(self, path: StrPath) -> str:
        """Write the state into a new directory, for `embedlog serve --data`: see `Snapshot.save`.

        Return its path. A cluster on disk returns the path that it has already.
        """
        from embedlog.testing.snapshots.snapshot import save_state

        return save_state(self, path)

    def replace_cluster(self, opened: Callable[[], Cluster]) -> None:
        """Close the cluster; continue with another one at the same addresses.

        `opened` returns the other one, and is called while the present one still serves. Clients,
        handles and listeners that were made before raise ClosedError from here on.
        """
        cluster = opened()
        if self._clock is not None:
            self._clock.end()
        ports, former = ports_of(self.cluster), self.cluster
        self.cluster = cluster
        former.close()
        self._stages.move(cluster)
        if self._clock is not None:
            self._clock.begin()
        if self._listener is not None:
            self._listener = cluster.listen("127.0.0.1", ports)

    # Schema registry

    # Life

    def close(self) -> None:
        """Close the clients of `producer`, `consumer` and `admin`, then the cluster. Idempotent."""
        self._ends.close()

    def _close_cluster(self) -> None:
        if self._clock is not None:
            self._clock.end()
        self.cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Kafka over {self.cluster!r}>"
