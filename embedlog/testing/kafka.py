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
    from typing import Unpack

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
    from embedlog.testing.faults.faults import Faults
    from embedlog.testing.faults.hold import Hold
    from embedlog.testing.faults.options import FaultOptions, TriggerOptions
    from embedlog.testing.faults.rule import FaultRule


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

    @cached_property
    def faults(self) -> Faults:
        """The rules of `fault`, `hold` and `blackhole`: iterate, `clear()`, and named presets.

        kafka.faults.coordinator_moves(group="workers", times=2)
        """
        from embedlog.testing.faults.faults import Faults

        return Faults(self.cluster, self._stages)

    def fault(self, *apis: str, **given: Unpack[FaultOptions]) -> FaultRule:
        """Make a rule that meets requests with an error, a broken connection, a delay and so on.

        with kafka.fault("Produce", topic="orders", error="NOT_ENOUGH_REPLICAS", times=2) as fault:
            my_service()
        assert fault.hits == 2

        `apis` are Kafka's names; without one, the rule is for all APIs that have the fields of the
        matchers. Requests between brokers are left alone, unless `internal=True` asks for them and
        for no others.

        matchers   node, topic, partition, group, transactional_id, client_id, principal, resource,
                   where=function(request), versions, internal
        triggers   once (the default), nth=, times=, always=True, chance= with seed=
        errors     error="NAME", a code or a class of `embedlog.errors`; after_apply=True lets the
                   broker do the work first. Errors that real brokers send after the work do so.
        actions    action="cut", "cut-after-apply", "truncate", "hang", "corrupt-crc",
                   "stale-metadata", "delay" (seconds=), "throttle" (ms=), "wrong-epoch" (by=)
        answers    answer=function(request, response), which returns the answer to send

        A rule that never acts raises an AssertionError at the end of its `with`, or when the
        cluster is closed, unless `may_miss=True`.

        Raises:
            ConfigError: a name is unknown, or a request could never match, or an API cannot do it.
        """
        return self.faults.add(*apis, **given)

    def hold(self, *apis: str, after_apply: bool = False, **given: Unpack[TriggerOptions]) -> Hold:
        """Hold requests, or with `after_apply` their answers, until the test releases them.

        with kafka.hold("Fetch", client_id="c") as hold:
            hold.wait()
            kafka.partition("orders", 0).move_to(2)
            hold.held[0].release()

        It takes the matchers of `fault`. Without a trigger it holds every matching request.
        """
        return self.faults.hold(*apis, after_apply=after_apply, **given)

    def blackhole(self, **given: Unpack[TriggerOptions]) -> Hold:
        """Let all requests of a client vanish, so that the brokers think it is dead.

        with kafka.blackhole(client_id="worker-2"):
            ...                     # the group expels it
        # alive again: requests of connections that are still open arrive late
        """
        return self.faults.blackhole(**given)

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

    # Life

    def close(self) -> None:
        """Close the clients of `producer`, `consumer` and `admin`, then the cluster. Idempotent.

        Raises:
            AssertionError: a fault rule never acted.
        """
        faults = vars(self).get("faults")
        if faults is not None:
            faults.release()
        self._ends.close()
        if faults is not None:
            faults.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is not None and "faults" in vars(self):
            self.faults.clear(may_miss=True)
        self.close()

    def __repr__(self) -> str:
        return f"<Kafka over {self.cluster!r}>"
