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
    from embedlog.cluster.handles.cluster_partition import ClusterPartition
    from embedlog.server.addresses import BrokerListener
    from embedlog.testing.control.door import ControlDoor
    from embedlog.testing.registry.registry import Registry


class Kafka:
    """A cluster for tests. Every method may be called from any thread.

    It listens from the first use of `bootstrap_servers` on. `close` closes the clients that the
    test got from it, then the cluster.
    """

    def __init__(
        self,
        shape: Shape | None = None,
        *,
        cluster: Cluster | None = None,
        listener: BrokerListener | ClusterListener | None = None,
        **given: Any,
    ) -> None:
        """Open a cluster of this shape, or of the shape that the arguments give: see `Shape`.

        `cluster` is one that is open already, and `listener` is its listener if it has one.
        """
        self.shape = Shape.of(**given) if shape is None else shape
        self.cluster = cluster or Cluster(
            self.shape.path,
            normalise_names(dict(self.shape.config)),
            brokers=self.shape.brokers,
            racks=self.shape.racks,
            is_embedded=True,
        )
        """The cluster, for everything that this object does not offer itself."""
        self._stages = Stages(self.cluster)
        self._ends = ExitStack()
        self._listener = listener
        self._control: ControlDoor | None = None
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

    # What happened

    # Saved states

    # Schema registry

    @cached_property
    def registry(self) -> Registry:
        """The schema registry of this cluster, with Confluent's HTTP API: see `Registry`.

        kafka.registry.register("orders-value", '{"type": "string"}')
        client = SchemaRegistryClient(kafka.registry.client_config("confluent"))
        """
        from embedlog.testing.registry.registry import Registry

        made = Registry()
        self._ends.push(made)
        return made

    # Control over HTTP

    def control(self) -> ControlDoor:
        """Return the control door of this cluster. Without one, open it on loopback."""
        return self._control or self.listen_control()

    def listen_control(
        self, host: str = "127.0.0.1", port: int = 0, token: str | None = None
    ) -> ControlDoor:
        """Serve the calls of this object as JSON over HTTP, for tests in any language.

            url = kafka.listen_control().url        # GET url/openapi.json lists the calls
            RemoteKafka(url).broker(1).kill()

        An address that other machines can reach needs a token. `close` ends the door.
        """
        from embedlog.testing.control.door import ControlDoor

        made = ControlDoor(self, host, port, token)
        self._ends.callback(made.close)
        self._control = self._control or made
        return made

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
