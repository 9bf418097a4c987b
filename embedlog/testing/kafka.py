"""`Kafka`: a cluster for tests, with everything that a test does to it in one object.

    with Kafka() as kafka:
        kafka.create_topic("orders", 3)
        my_service(kafka.bootstrap_servers)

The fixture `kafka` of the pytest plugin is one. Each part loads when a test first uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

from embedlog.testing import opening
from embedlog.testing.interception import Stages
from embedlog.testing.shape import Shape

if TYPE_CHECKING:
    from typing import Unpack

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
    from embedlog.runtime import Runtime
    from embedlog.server.addresses import BrokerListener
    from embedlog.testing.control.door import ControlDoor
    from embedlog.testing.faults.faults import Faults
    from embedlog.testing.faults.hold import Hold
    from embedlog.testing.faults.options import FaultOptions, TriggerOptions
    from embedlog.testing.faults.rule import FaultRule
    from embedlog.testing.inspection.connections import ConnectionValue
    from embedlog.testing.inspection.group_values import GroupValue
    from embedlog.testing.inspection.partition import Partition
    from embedlog.testing.leaks import Leak, LeakWatch
    from embedlog.testing.on_demand.desk import Desk
    from embedlog.testing.on_demand.group import Group
    from embedlog.testing.on_demand.transaction import Transaction
    from embedlog.testing.on_demand.transactions import Transactions
    from embedlog.testing.registry.registry import Registry
    from embedlog.testing.snapshots.snapshot import Snapshot
    from embedlog.testing.time.kafka_clock import KafkaClock
    from embedlog.testing.timeline.recording import Recording
    from embedlog.testing.topics.logs import Logs
    from embedlog.testing.topics.matching import rec
    from embedlog.testing.topics.produced import Produces, ProducesNothing
    from embedlog.testing.topics.topic import Topic
    from embedlog.testing.toxics.toxic import Toxic
    from embedlog.testing.toxics.toxics import Toxics
    from embedlog.testing.waits.waits import Waits

T = TypeVar("T")
Provider = Callable[[], Iterable[tuple[str, str]]]
"""Returns titles and texts for the report of a failed test."""


class Kafka:
    """A cluster for tests. Every method may be called from any thread.

    It listens from the first use of `bootstrap_servers` on. `close` closes the clients that the
    test got from it, then the cluster.
    """

    listen_again: opening.ListenAgain = staticmethod(opening.listen_again)

    def __init__(
        self,
        shape: Shape | None = None,
        *,
        saved: Snapshot | None = None,
        runtime: Runtime | None = None,
        cluster: Cluster | None = None,
        listener: BrokerListener | ClusterListener | None = None,
        **given: Any,
    ) -> None:
        """Open a cluster of this shape, or of the shape that the arguments give: see `Shape`.

        `saved` is the state to begin with; then the shape is its own. `runtime` replaces clock,
        files, threads and randomness: see `simulate`. An open `cluster` may be given, with its
        `listener` if it has one.
        """
        self.shape = Shape.of(**given) if shape is None else shape
        self._origin = saved
        if saved is None:
            self.cluster = cluster or opening.open_cluster(self.shape, runtime=runtime)
        else:
            from embedlog.testing.snapshots.restoring import opened

            self.shape = saved.shape
            self.cluster = opened(saved)
        """The cluster, for everything that this object does not offer itself. `restore` and `reset`
        replace it."""
        self._stages = Stages(self.cluster)
        self._ends = ExitStack()
        self._listener = listener
        self.recording: Recording | None = None
        """The recording that `record` began last; None before the first one."""
        self._control: ControlDoor | None = None
        self._ends.callback(self._close_cluster)
        self._clients: list[Callable[[], object]] = []
        """The ends of the clients that were made for the test."""
        self._ends.callback(self.close_clients)
        self.namespace = ""
        """The end of the names that `name` returns; empty if the cluster belongs to one test."""
        self.failure_providers: list[Provider] = []
        """See `on_failure`."""
        self._leak_watch: LeakWatch | None = None
        try:
            if self.shape.persona is not None:
                from embedlog.testing import personas

                personas.named(self.shape.persona).assume(self.cluster, self._stages)
            if self.shape.clock != "real":
                self.clock.begin()
            if self.shape.timeline:
                self.record()
            if saved is None:
                opening.create_topics(self.cluster, self.shape)
            elif saved.registry is not None:
                self.registry.restore(saved.registry)
        except BaseException:
            self.close()
            raise

    def create_shaped_topic(self, name: str) -> CreatedTopic:
        """Create a topic of the shape, or create it again after it was deleted."""
        return opening.create_topic(self.cluster, self.shape, name)

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
        self._clients.append(made.close)
        return made

    def consumer(self, **settings: Any) -> Consumer:
        """Return a consumer, which `close` closes: see `Cluster.consumer`."""
        made = self.cluster.consumer(**settings)
        self._clients.append(made.close)
        return made

    def admin(self, **settings: Any) -> Admin:
        """Return an admin client, which `close` closes: see `Cluster.admin`."""
        made = self.cluster.admin(**settings)
        self._clients.append(made.close)
        return made

    def client_config(
        self,
        client: str,
        role: str | None = None,
        *,
        group_id: str | None = None,
        **settings: Any,
    ) -> dict[str, Any]:
        """Return settings for a foreign client, which its constructor takes unmodified.

            Producer(kafka.client_config("confluent", "producer"))
            KafkaConsumer("orders", **kafka.client_config("kafka-python", group_id="billing"))

        `client` is "confluent", "librdkafka", "kafka-python", "aiokafka", "java", "kafkajs",
        "franz-go" or "embedlog". `role` is "producer", "consumer" or "admin"; a `group_id` makes it
        "consumer". The values end the waits that the client's defaults cause in tests: see
        `embedlog.testing.clients.kinds`. `settings` override them.
        """
        from embedlog.testing.clients.config import client_config

        addresses = self.bootstrap_servers
        return client_config(client, addresses, role, group_id=group_id, **settings)

    def closing(self, client: T) -> T:
        """Return a foreign client, which `close` ends before the cluster.

            producer = kafka.closing(Producer(kafka.client_config("confluent")))

        So the client sends its records, and prints nothing about lost connections.
        """
        from embedlog.testing.clients.endings import ending

        self._clients.append(ending(client))
        return client

    def name(self, word: str) -> str:
        """Return a name that no other test has: `word` itself if the cluster is the test's own."""
        return word + self.namespace

    # Topics and records

    def create_topic(self, name: str, partitions: int = -1, **settings: Any) -> CreatedTopic:
        """Create a topic: see `Cluster.create_topic`."""
        return self.cluster.create_topic(name, partitions, **settings)

    @cached_property
    def _logs(self) -> Logs:
        from embedlog.testing.topics.logs import Logs

        return Logs(
            self.cluster,
            producer=self.producer,
            registry=lambda: getattr(self, "registry", None),
        )

    def topic(self, name: str, *, key: Any = None, value: Any = None) -> Topic:
        """Return a topic, to read its records and to write some: see `Topic`.

        `key` and `value` are formats ("json", "text", "int64", `avro(schema)`, ...), which hold for
        later calls as well.

        >>> with Kafka(topics={"orders": 1}) as kafka:
        ...     kafka.topic("orders", value="json").put({"id": 1}).offset
        0

        Raises:
            UnknownTopicOrPartition: there is no such topic; the message has the nearest name.
        """
        from embedlog.testing.topics.topic import Topic

        return Topic(self._logs, name, key=key, value=value)

    def assert_produces(
        self,
        topic: str,
        matching: rec | None = None,
        *,
        count: int | range | None = None,
        timeout: float = 10.0,
        quiet_ms: int = 0,
        isolation: str = "read_committed",
        missing_ok: bool = False,
    ) -> Produces:
        """Assert that a block leads to `count` new records; None means at least one.

        The end of the block waits for them, at most `timeout` seconds, and then `quiet_ms` for more
        than that. With `matching` only records that match count. `missing_ok`: the topic may be
        created by the block. There is `async with` as well.

        >>> with Kafka(topics={"orders": 1}) as kafka:
        ...     with kafka.assert_produces("orders", count=1) as new:
        ...         future = kafka.producer().send("orders", b"x")
        ...     new[0].value
        b'x'
        """
        from embedlog.testing.topics.produced import Produces

        return Produces(
            self._logs,
            [topic],
            matching,
            count=count,
            timeout=timeout,
            quiet_ms=quiet_ms,
            isolation=isolation,
            missing_ok=missing_ok,
        )

    def assert_nothing_produced(
        self,
        topic: str | None = None,
        matching: rec | None = None,
        *,
        for_ms: int | None = None,
        until: Callable[[], object] | None = None,
        isolation: str = "read_committed",
        missing_ok: bool = False,
    ) -> ProducesNothing:
        """Assert that a block leads to no new record of a topic; None means all but internal ones.

        The end of the block waits `for_ms` (200 by default). `until` is a function that waits for
        the right moment instead, such as the end of a group's lag; then `for_ms` is 0 by default.

        >>> with Kafka(topics={"bad": 1, "orders": 1}) as kafka:
        ...     with kafka.assert_nothing_produced("orders", for_ms=0):
        ...         record = kafka.topic("bad").put(b"poison")
        """
        from embedlog.testing.topics.produced import ProducesNothing

        return ProducesNothing(
            self._logs,
            None if topic is None else [topic],
            matching,
            for_ms=for_ms,
            until=until,
            isolation=isolation,
            missing_ok=missing_ok,
        )

    def commit(
        self, group: str, offsets: Mapping[tuple[str, int], Any], *, beyond_end: bool = False
    ) -> None:
        """Commit offsets for a group without members, by (topic, partition).

        >>> with Kafka(topics={"t": 1}) as kafka:
        ...     filled = kafka.topic("t").fill(10)
        ...     kafka.commit("g", {("t", 0): 5})

        Raises:
            OffsetOutOfRange: an offset lies beyond the end, and `beyond_end` is false.
        """
        from embedlog.testing.topics.offsets import commit_offsets

        commit_offsets(self._logs, group, offsets, beyond_end=beyond_end)

    # Faults of requests and connections

    def toxic(self, *, cut: bool = False, **given: Any) -> Toxic:
        """Let connections that begin from now on suffer, until the toxic is removed.

        `latency` and `jitter`: seconds for each piece, and how far that varies. `bandwidth`: bytes
        a second. `slice`: pieces of this size, with `slice_delay` seconds between them. `limit`:
        bytes after which the connection closes. `reset_after`: seconds after which it breaks.
        `hang`: nothing goes on. `direction`: "to-broker", "to-client" or "both". `chance`: the
        share of connections, drawn by `seed`. `cut`: break the present connections, so that
        clients connect again.

        >>> with Kafka() as kafka, kafka.toxic(latency=0.01) as toxic:
        ...     toxic.connections
        0

        Raises:
            ConfigError: a property is unknown or has an impossible value, or nothing would happen.
        """
        made = self._toxics.add(**given)
        if cut:
            self.cut_connections()
        return made

    @cached_property
    def _toxics(self) -> Toxics:
        from embedlog.testing.toxics.toxics import Toxics

        made = Toxics(self)
        self._ends.callback(made.close)
        return made

    def cut_connections(self) -> None:
        """Break every connection of clients over sockets, soon. Clients connect again."""
        for each in self.cluster.brokers:
            if each.is_running:
                each.core.listeners.cut()

    @cached_property
    def faults(self) -> Faults:
        """The rules of `fault`, `hold` and `blackhole`: iterate, `clear()`, and named presets.

        kafka.faults.coordinator_moves(group="workers", times=2)
        """
        from embedlog.testing.faults.faults import Faults

        return Faults(self.cluster, self._stages, lambda: self.recording)

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

        A rule that never acts raises UnfiredFault at the end of its `with`, or when the cluster is
        closed, unless `may_miss=True`.

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

    @cached_property
    def clock(self) -> KafkaClock:
        """The cluster's time and its timers; jumps, with clock="manual" or "auto"."""
        from embedlog.testing.time.kafka_clock import KafkaClock

        return KafkaClock(self)

    def maintain(self) -> int:
        """Do all periodic work now: retention, compaction, expiry. See `Cluster.maintain`."""
        return self.cluster.maintain()

    # What happened

    def record(self, *, frames: bool = False) -> Recording:
        """Record every request, rebalance, election and fence from now on: see `Recording`.

        `frames`: keep the bytes too, for a capture file. A second recording ends the first.
        """
        from embedlog.testing.timeline.recording import Recording

        if self.recording is not None:
            self.recording.end()
        self.recording = Recording(self.cluster.runtime.clock, self._stages, frames=frames)
        self._ends.callback(self.recording.end)
        return self.recording

    # Saved states

    def snapshot(self) -> Snapshot:
        """Return the present state, for `restore`, `Kafka(saved=...)` and `Snapshot.save`."""
        from embedlog.testing.snapshots.snapshot import take

        saved = take(self)
        if "registry" in vars(self):
            saved.registry = self.registry.snapshot()
        return saved

    def restore(self, saved: Snapshot) -> None:
        """Bring a state back, and the clock with it. See `embedlog.testing.snapshots.restoring`."""
        from embedlog.testing.snapshots.restoring import restore

        restore(self, saved)
        if saved.registry is not None:
            self.registry.restore(saved.registry)

    def reset(self) -> None:
        """Bring back the state right after this object was made."""
        from embedlog.testing.snapshots.restoring import reset

        reset(self, self._origin)

    def fork(self) -> Kafka:
        """Return a second cluster with the present state; the caller closes it.

        Either of the two changes without the other.
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
        clock: KafkaClock | None = vars(self).get("clock")
        if clock is not None:
            clock.end()
        ports, former = opening.ports_of(self.cluster), self.cluster
        self.cluster = cluster
        for part in ("_desk", "_logs", "wait"):
            vars(self).pop(part, None)  # made for the former cluster
        former.close()
        self._stages.move(cluster)
        if "faults" in vars(self):
            self.faults.move(cluster)
        if "_toxics" in vars(self):
            self._toxics.install()
        if clock is not None:
            clock.begin()
        if self._listener is not None:
            self._listener = self.listen_again(cluster, ports)

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

    def on_failure(self, provider: Provider) -> None:
        """Show titles and texts, the result of `provider()`, in the report of a test that fails.

        kafka.on_failure(lambda: [("lag", str(lag()))])
        """
        self.failure_providers.append(provider)

    def watch_leaks(self) -> None:
        """Note the present threads, and the broker's errors from here on, for `leaks`."""
        from embedlog.testing.leaks import LeakWatch

        if self._leak_watch is not None:
            self._leak_watch.begin_again()
            return
        self._leak_watch = LeakWatch()
        self._ends.callback(self._leak_watch.end)

    def leaks(self, *kinds: str) -> list[Leak]:
        """Return the connections, transactions, threads and errors that the test leaves behind.

            assert kafka.leaks("connections", "transactions") == []

        `kinds` are by default all. Threads and errors count from `watch_leaks` on, which the
        fixtures call. It waits half a second for connections that are ending.
        """
        if self._leak_watch is None:
            self.watch_leaks()
        assert self._leak_watch is not None
        return self._leak_watch.found(self.cluster, self._listener, kinds)

    @property
    def client_count(self) -> int:
        """The number of clients that `close_clients` would close."""
        return len(self._clients)

    def close_clients(self, first: int = 0) -> None:
        """Close the clients of the test, the newest first; the first `first` stay open."""
        with ExitStack() as ends:
            for end in self._clients[first:]:
                ends.callback(end)
            del self._clients[first:]

    def close(self) -> None:
        """Close the clients that were made for the test, then the cluster. Idempotent.

        Raises:
            UnfiredFault: a fault rule never acted.
        """
        faults = vars(self).get("faults")
        if faults is not None:
            faults.release()
        self._ends.close()
        if faults is not None:
            faults.close()

    def _close_cluster(self) -> None:
        if "clock" in vars(self):
            self.clock.end()
        self.cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is not None and "faults" in vars(self):
            self.faults.clear(may_miss=True)
        self.close()

    def __repr__(self) -> str:
        return f"<Kafka over {self.cluster!r}>"
