"""`Kafka`: a cluster for tests, with everything that a test does to it in one object.

    with Kafka() as kafka:
        kafka.create_topic("orders", 3)
        my_service(kafka.bootstrap_servers)

The fixture `kafka` of the pytest plugin is one. Each part loads when a test first uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from embedlog.cluster.cluster import Cluster
from embedlog.config.broker_config import normalise_names
from embedlog.testing.interception import Stages
from embedlog.testing.shape import Shape

if TYPE_CHECKING:
    from embedlog.client.admin.admin import Admin
    from embedlog.client.admin.new_topics import CreatedTopic
    from embedlog.client.consumer.consumer import Consumer
    from embedlog.client.producer.producer import Producer
    from embedlog.cluster.faults.network import ClusterNetwork
    from embedlog.cluster.handles.broker_node import BrokerNode
    from embedlog.cluster.handles.cluster_controller import ClusterController
    from embedlog.cluster.handles.cluster_listener import ClusterListener
    from embedlog.server.addresses import BrokerListener
    from embedlog.testing.inspection.connections import ConnectionValue
    from embedlog.testing.inspection.group_values import GroupValue
    from embedlog.testing.inspection.partition import Partition
    from embedlog.testing.on_demand.desk import Desk
    from embedlog.testing.on_demand.group import Group
    from embedlog.testing.on_demand.transaction import Transaction
    from embedlog.testing.on_demand.transactions import Transactions
    from embedlog.testing.waits.waits import Waits


class Kafka:
    """A cluster for tests. Every method may be called from any thread.

    It listens from the first use of `bootstrap_servers` on. `close` closes the clients that the
    test got from it, then the cluster.
    """

    def __init__(self, shape: Shape | None = None, **given: Any) -> None:
        """Open a cluster of this shape, or of the shape that the arguments give: see `Shape`."""
        self.shape = Shape.of(**given) if shape is None else shape
        self.cluster = Cluster(
            self.shape.path,
            normalise_names(dict(self.shape.config)),
            brokers=self.shape.brokers,
            racks=self.shape.racks,
            is_embedded=True,
        )
        """The cluster, for everything that this object does not offer itself."""
        self._stages = Stages(self.cluster)
        self._ends = ExitStack()
        self._listener: BrokerListener | ClusterListener | None = None
        self._ends.callback(self.cluster.close)
        try:
            self._create_topics()
        except BaseException:
            self.close()
            raise

    def _create_topics(self) -> None:
        for name, given in self.shape.topics.items():
            arguments = dict(given) if isinstance(given, Mapping) else {"partitions": given}
            self.create_topic(name, **arguments)

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

    def partition(self, topic: str, partition: int) -> Partition:
        """Return a partition: its leader, its offsets and producers, its replicas and moves."""
        return self._desk.partition(topic, partition)

    @property
    def network(self) -> ClusterNetwork:
        """The links between the brokers."""
        return self.cluster.network

    @property
    def controller(self) -> ClusterController:
        """The controller, to stop and start it."""
        return self.cluster.controller

    # Groups and transactions

    def group(self, group_id: str) -> Group:
        """Return a group, to look at it and to change it; it need not exist."""
        return self._desk.group(group_id)

    def groups(self) -> list[GroupValue]:
        """Return all groups as they are now, sorted."""
        return self._desk.groups()

    def transaction(self, transactional_id: str) -> Transaction:
        """Return a transactional id, to look at it and to end its transaction."""
        return self._desk.transaction(transactional_id)

    @property
    def transactions(self) -> Transactions:
        """All transactional ids: `transactions()` lists them, `transactions.hold` stops one."""
        return self._desk.transactions

    def connections(self) -> list[ConnectionValue]:
        """Return the open connections of clients over sockets, the oldest first."""
        return self._desk.connections()

    @cached_property
    def _desk(self) -> Desk:
        from embedlog.testing.on_demand.desk import Desk

        desk = Desk(self.cluster, self._stages)
        self._ends.callback(desk.transactions.release_all)
        return desk

    # Waits

    @cached_property
    def wait(self) -> Waits:
        """Waits for a state of the cluster: `wait.group("g", members=2)`, `wait.lag("g")`, ..."""
        from embedlog.testing.waits.waits import Waits

        return Waits(self._desk.brokers, self._stages)

    # Time

    # What happened

    # Saved states

    # Schema registry

    # Life

    def close(self) -> None:
        """Close the clients of `producer`, `consumer` and `admin`, then the cluster. Idempotent."""
        self._ends.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Kafka over {self.cluster!r}>"
