"""`Cluster`: brokers over a directory, or over memory; what `embedlog.open` returns.

    with embedlog.open("data") as cluster:
        with cluster.producer() as producer:
            producer.send("events", b"value").result()

Opening reads the metadata log, hosts every partition and starts no thread, unless `background` asks
for one. A socket, and its thread, come with `listen` only.
"""

from __future__ import annotations

from _weakref import ref
from sys import _getframe

from embedlog.cluster.layout import broker_count
from embedlog.cluster.single import Alone
from embedlog.config.broker_config import BrokerConfig, normalise_names
from embedlog.errors import ClosedError, ConfigError
from embedlog.runtime.at_exit import CLUSTERS
from embedlog.runtime.forks import stays_in_parent
from embedlog.storage.directory.data_path import (
    data_directory,
    durability_of,
    further_directories,
    named_beside,
    runtime_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _weakref import ReferenceType
    from collections.abc import Callable, Mapping, Sequence
    from types import FrameType, TracebackType
    from typing import Any, Self

    from _typeshed import StrPath

    from embedlog.client.admin.admin import Admin
    from embedlog.client.admin.new_topics import CreatedTopic
    from embedlog.client.consumer.consumer import Consumer
    from embedlog.client.producer.producer import Producer
    from embedlog.cluster.faults.network import ClusterNetwork
    from embedlog.cluster.handles.broker_node import BrokerNode
    from embedlog.cluster.handles.cluster_controller import ClusterController
    from embedlog.cluster.handles.cluster_listener import ClusterListener
    from embedlog.cluster.handles.cluster_partition import ClusterPartition
    from embedlog.cluster.several import Several
    from embedlog.cluster.several_transport import SeveralTransport
    from embedlog.runtime import Runtime
    from embedlog.runtime.background import BackgroundThread
    from embedlog.server.addresses import BrokerListener
    from embedlog.storage.degradation import Degradation
    from embedlog.transport import InProcessTransport, Transport
    from wire.schema import R, Request

    LocalTransport = InProcessTransport | SeveralTransport


_MEMORY_DIRECTORY = "memory"
"""The data directory's name in a file system of its own, when there is no path."""

_REBALANCE_DELAY = "group.initial.rebalance.delay.ms"

_EMBEDDED = {
    # An application knows its workers, and shall not wait 3 s for others at each start.
    _REBALANCE_DELAY: "0",
    # A test's first record to a topic costs 80 ms otherwise: a client's pause before it asks again.
    "embedlog.auto.create.topics.await": "true",
}
"""What `open` sets differently from Kafka, unless told."""


class Cluster:
    """The brokers of this process, one unless there are more, and the clients' way to them.

    Every method may be called from any thread. `durability` says what an acknowledged record
    survives by default: "memory" nothing, "os" the end of this process, "fsync" loss of power;
    a topic may say otherwise (`embedlog.durability`).

    One that is dropped, or left open when the interpreter ends, is closed then, with a
    ResourceWarning. Clients and listeners keep their cluster.
    """

    def __init__(
        self,
        path: StrPath | None = None,
        config: Mapping[str, object] | None = None,
        *,
        brokers: int | None = None,
        racks: Sequence[str] = (),
        log_dirs: Sequence[StrPath] = (),
        durability: str | None = None,
        cluster_id: str | None = None,
        background: bool = False,
        is_embedded: bool = False,
        waits_for_committer: bool = True,
        runtime: Runtime | None = None,
    ) -> None:
        """Open the directory at `path`, or a cluster in memory. See `open`.

        `is_embedded`: with the defaults of `open` where they are not Kafka's.
        `waits_for_committer`: who has the directory for a commit of staged files will soon go.

        `runtime` replaces clock, files, threads and randomness: see `embedlog.testing`.
        """
        self.path = data_directory(path)
        directory = self.path or _MEMORY_DIRECTORY
        self.config = BrokerConfig(config)
        log_dirs = log_dirs or named_beside(self.path, self.config.log_dirs)
        self.log_dirs = further_directories(self.path, log_dirs) if log_dirs else ()
        """The further log directories."""
        self.durability = durability_of(self.path, durability, self.config)
        self.config.set_static("embedlog.durability", self.durability)
        self.config.set_static("log.dirs", ",".join((directory, *self.log_dirs)))
        if self.path is None:
            # A test shall not wait 3 s for members that it does not start.
            self._set_defaults({_REBALANCE_DELAY: "0"})
        if is_embedded:
            self._set_defaults(_EMBEDDED)
        self.runtime = runtime or runtime_of(self.path)
        self._transports: dict[int, ReferenceType[LocalTransport]] = {}
        self._brokers: Alone | Several = self._open(
            directory, brokers, racks, cluster_id, waits_for_committer
        )
        self._background: BackgroundThread | None = None
        if background:
            from embedlog.runtime.background import BackgroundThread

            self._background = BackgroundThread(self.runtime)
        self._is_closed = False
        self._is_closing = False
        """Is a close at work, or done?"""
        stays_in_parent(self)
        # Who brings a runtime decides itself what becomes of a cluster that it drops.
        self._forget = self._watch_end() if runtime is None else None

    def _open(
        self,
        directory: str,
        count: int | None,
        racks: Sequence[str],
        cluster_id: str | None,
        waits_for_committer: bool,
    ) -> Alone | Several:
        count = broker_count(self.runtime.files, directory, count, racks)
        if count == 1:
            return Alone(
                self.runtime,
                directory,
                self.config,
                durability=self.durability,
                on_disk=self.path is not None,
                log_dirs=self.log_dirs,
                cluster_id=cluster_id,
                waits_for_committer=waits_for_committer,
            )
        from embedlog.cluster.several import Several

        return Several(
            self.runtime,
            directory,
            self.config,
            count=count,
            racks=racks,
            # In memory, too, what a broker has written is there when it starts again.
            durability=self.durability if self.path is not None else "os",
            on_disk=self.path is not None,
            log_dirs=self.log_dirs,
            cluster_id=cluster_id,
        )

    def _watch_end(self) -> Callable[[], None]:
        """Be closed when the interpreter ends; return what undoes that."""
        self._opened_at = _line_outside()
        reference = ref(self)

        def end() -> None:
            cluster = reference()
            if cluster is not None:
                cluster._forgotten()

        return self.runtime.scheduler.at_exit(end, CLUSTERS)

    def _set_defaults(self, defaults: Mapping[str, str]) -> None:
        for name, value in defaults.items():
            if not self.config.is_set(name):
                self.config.set_static(name, value)

    # Brokers

    def broker(self, node_id: int | None = None) -> BrokerNode:
        """A broker by its number; without one the only broker.

        Raises:
            ConfigError: there is none of that number, or there are several.
        """
        return self._brokers.broker(node_id)

    @property
    def brokers(self) -> list[BrokerNode]:
        """Every broker, by number, also those that do not run."""
        return self._brokers.brokers()

    def partition(self, topic: str, partition: int) -> ClusterPartition:
        """A partition of a cluster of several brokers: who leads it, and how to change that.

        Raises:
            ConfigError: there is one broker.
        """
        from embedlog.cluster.handles.cluster_partition import ClusterPartition

        return ClusterPartition(self._several("partition"), topic, partition)

    @property
    def network(self) -> ClusterNetwork:
        """What several brokers send each other goes through it.

        Raises:
            ConfigError: there is one broker.
        """
        return self._several("network").network

    @property
    def controller(self) -> ClusterController:
        """The controller of several brokers: it may be stopped and started.

        Raises:
            ConfigError: there is one broker.
        """
        from embedlog.cluster.handles.cluster_controller import ClusterController

        return ClusterController(self._several("controller"))

    def add_broker(self, node_id: int | None = None, *, rack: str | None = None) -> BrokerNode:
        """Let another broker join a cluster of several; without a number it gets the next.

        Raises:
            ConfigError: there is one of that number, or the cluster is of one broker.
        """
        return self._several("add_broker").add(node_id, rack)

    def remove_broker(self, node_id: int) -> None:
        """Stop a broker of several, and forget it. Replicas that it had stay assigned to it.

        Raises:
            ConfigError: there is none of that number, or the cluster is of one broker.
        """
        self._several("remove_broker").remove(node_id)

    def _several(self, what: str) -> Several:
        from embedlog.cluster.several import Several

        if not isinstance(self._brokers, Several):
            raise ConfigError(f"{what} is for several brokers: open with brokers=2 or more")
        return self._brokers

    # Clients

    def producer(self, **settings: Any) -> Producer:
        """A producer to this cluster; settings as of `embedlog.Producer`."""
        from embedlog.client.producer.producer import Producer

        return Producer(self, **settings)

    def consumer(self, **settings: Any) -> Consumer:
        """A consumer of this cluster; settings as of `embedlog.Consumer`."""
        from embedlog.client.consumer.consumer import Consumer

        return Consumer(self, **settings)

    def admin(self, **settings: Any) -> Admin:
        """An admin client of this cluster; settings as of `embedlog.Admin`."""
        from embedlog.client.admin.admin import Admin

        return Admin(self, **settings)

    def connect(self, client_id: str | None = None) -> Transport:
        """A transport to the brokers: requests as objects, no bytes, no socket.

        A client that says its `client_id`, which may be empty, ends with this process: groups do
        not wait for it when the directory is opened again. None: requests of anybody.

        Raises:
            ClosedError: the cluster was closed.
        """
        return self._connect(client_id)

    def _connect(self, client_id: str | None = None, *, appends: bool = True) -> LocalTransport:
        self._check_open()
        transport: LocalTransport = self._brokers.connect(client_id, self, appends=appends)
        key, transports = id(transport), self._transports
        transports[key] = ref(transport, lambda _: transports.pop(key, None))
        return transport

    # Topics

    @property
    def topics(self) -> list[str]:
        """The names of the topics that are not a coordinator's, sorted.

        Raises:
            ClosedError: the cluster was closed.
        """
        from wire.schemas.metadata import MetadataRequest

        found = self._ask(MetadataRequest(topics=None)).topics
        return sorted(topic.name or "" for topic in found if not topic.is_internal)

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        *,
        replication_factor: int = -1,
        config: Mapping[str, object] | None = None,
    ) -> CreatedTopic:
        """Make a topic; -1 partitions means `num.partitions`, -1 replicas
        `default.replication.factor`. Settings by Kafka's names.

        The result says what the broker filled in: the id, the counts, every setting.

        Raises:
            KafkaError: TopicAlreadyExists, InvalidTopic, InvalidConfig, InvalidPartitions.
            ClosedError: the cluster was closed.
        """
        self._check_open()
        from embedlog.client import arguments
        from embedlog.client.admin.new_topics import NewTopic, creatable, created
        from embedlog.config.broker_config import text_of
        from wire.schemas.create_topics import CreateTopicsRequest

        arguments.topic_name(name, "create_topic", "name")
        partitions = arguments.partition_count(partitions, "create_topic", "partitions")
        given = arguments.mapping(config or {}, "create_topic", "config", "name: value")
        texts = {key: text_of(value) for key, value in given.items()}
        # None leaves the default, as in `open`; the protocol has no word for that.
        configs = {key: text for key, text in texts.items() if text is not None}
        topic = creatable(NewTopic(name, partitions, replication_factor, configs=configs))
        (made,) = self._ask(CreateTopicsRequest(topics=[topic])).topics
        return created(made)

    def _ask(self, request: Request[R]) -> R:
        """What the broker answers, through the door that all take."""
        from embedlog.transport import ANY_NODE

        transport = self._connect(
            appends=False
        )  # it appends nothing, and Produce takes 1 ms to load
        pending = transport.send(ANY_NODE, request)
        while not pending.done():
            transport.wait(pending, None)
        return pending.result()

    # Addresses

    def listen(
        self,
        host: str | None = None,
        port: int | None = None,
        *,
        allow_remote_plaintext: bool = False,
    ) -> BrokerListener | ClusterListener:
        """Serve the cluster at an address, in a thread of its own, until closed.

        `address` of the result is what any Kafka client takes as its bootstrap server. What is not
        given says the setting `listeners` if it was made, for the first listener; else the host is
        loopback, and the port 0, which finds a free one. Several brokers have a port each, from
        `port` on.

        Raises:
            OSError: the address cannot be listened on.
            ConfigError: other machines could reach it, and that was not allowed.
        """
        self._check_open()
        return self._brokers.listen(
            host, port, allow_remote_plaintext=allow_remote_plaintext, owner=self
        )

    # Background work

    def maintain(self) -> int:
        """Do the work that otherwise waits for its interval; return how many bytes it freed.

        Retention of every topic, compaction of the logs that Kafka's cleaner would clean, the end
        of committed offsets that are too old, deletion of files that are not needed any more (also
        of those that file.delete.delay.ms keeps for a while), and checkpoints. It returns when
        nothing is left. Callable beside a listener and at any time; other threads go on meanwhile.

        >>> import embedlog
        >>> with embedlog.open() as cluster:
        ...     topic = cluster.create_topic("events", config={"retention.bytes": 0})
        ...     with cluster.producer() as producer:
        ...         record = producer.send("events", b"x" * 1000, partition=0).result()
        ...     cluster.maintain() > 1000
        True

        Raises:
            ClosedError: the cluster was closed.
            KafkaStorageError: the disk refuses.
        """
        self._check_open()
        return sum(node.maintain() for node in self._brokers.nodes())

    def health(self) -> list[Degradation]:
        """What is degraded, since when and why; empty when all is well.

        Each has a `kind`: a log that is "read-only" since the disk failed or "damaged", a recovery
        that "cut" something, files in "quarantined", "retention paused" by a clock that jumped, an
        "uncleanable" log, "work failing", "move ended" of a log to another directory, a log
        directory that is "offline". It looks into every log's directory: 0.1 s for 10,000.

        >>> import embedlog
        >>> with embedlog.open() as cluster:
        ...     cluster.health()
        []

        Raises:
            ClosedError: the cluster was closed.
        """
        self._check_open()
        return [each for node in self._brokers.nodes() for each in node.health()]

    def adopt_staged(self) -> None:
        """Commit what other processes have left for the owner, and return when nothing is left.

        Otherwise it is done in the background, a moment after it was left there.

        Raises:
            ClosedError: the cluster was closed.
            OSError: the disk refuses.
        """
        self._check_open()
        for node in self._brokers.nodes():
            if node.commit_inbox is not None:
                worker = node.commit_inbox.worker
                while worker.commit_one():
                    pass

    # Life

    @property
    def cluster_id(self) -> str:
        """The cluster's id, 22 characters."""
        return self._brokers.cluster_id

    def close(self) -> None:
        """Close the addresses, answer what waits, write what is open. A second call does nothing.

        Clients should be closed before. Producers that were not get 10 s each for what they hold;
        what failed and nobody asked for is told by a warning. After an interrupt, call it again.
        """
        if self._is_closing:
            return
        self._is_closing = self._is_closed = True
        try:
            self._close()
        finally:
            if self._brokers.is_held:
                self._is_closing = False
            elif self._forget is not None:
                self._forget()

    def _close(self) -> None:
        for reference in list(self._transports.values()):
            transport = reference()
            if transport is not None:
                transport.end()
        if self._background is not None:
            self._background.close()
        self._brokers.close()

    def __del__(self) -> None:
        if self.__dict__.get("_forget") is not None and not self._is_closing:
            self._forgotten()

    def _forgotten(self) -> None:
        """Nobody closed it, and nobody can any more: say so, and do it."""
        from _warnings import warn

        try:
            warn(f"{self!r}, opened at {self._opened_at}, was not closed", ResourceWarning, 1, self)
        finally:
            self.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the cluster was closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = f"at {self.path!r}, durability {self.durability}" if self.path else "in memory"
        if self._is_closed:
            return f"<Cluster {where}, closed>"
        count = len(self.brokers)
        several = f", {count} brokers" if count > 1 else ""
        addresses = "".join(f", {each}" for each in self._brokers.addresses)
        return f"<Cluster {where}{several}, {len(self.topics)} topics{addresses}>"


def open(
    path: StrPath | None = None,
    *,
    brokers: int | None = None,
    racks: Sequence[str] = (),
    log_dirs: Sequence[StrPath] = (),
    config: Mapping[str, object] | None = None,
    durability: str | None = None,
    cluster_id: str | None = None,
    background: bool = False,
    **settings: object,
) -> Cluster:
    """Open the cluster in the directory at `path`, making it when it is missing; without a path,
    or at ":memory:", a new one in memory that is gone when it is closed. A leading "~" is the home
    directory.

    Settings are those of a Kafka broker, in a dict under Kafka's names or as keyword arguments with
    underscores for dots. `durability` is "fsync" with a path and "memory" without, unless told.
    `cluster_id` names a new cluster, and is what an existing one must have. A setting that does not
    exist, or that embedlog does not use, is warned about.

    `brokers` is how many brokers there are, 1 to begin with; each has a directory of its own below
    `path`, and its rack of `racks`. They replicate, elect leaders and fail as those of a real
    cluster: see `Cluster.broker`, `Cluster.network` and `Cluster.partition`.

    `log_dirs` are further directories, on other disks (Kafka's log.dirs): a log lies in one of all.
    Several brokers have directories below each. One that fails, or is left out when the cluster is
    opened again, is offline, and the others go on.

    Two defaults are not Kafka's: group.initial.rebalance.delay.ms is 0, and a topic that a client
    makes by asking for it is in the first answer (embedlog.auto.create.topics.await).

    Work that is due by the clock (retention, compaction, checkpoints, the ends of sessions) is done
    by the calls of clients in this process, by threads that wait for something, and by a listener.
    `background` starts a thread for it, for a process that may make no calls for long; see also
    `Cluster.maintain`.

    >>> import embedlog
    >>> with embedlog.open(num_partitions=3) as cluster:
    ...     topic = cluster.create_topic("events")
    ...     topic.partition_count
    3

    Raises:
        DirectoryLocked: another process, or another cluster of this one, has the directory.
        ConfigError: a setting with a value that it does not take, a path that is none, or a
            directory of another node or cluster, or of something else.
        CorruptRecord: the metadata log was damaged; the message says where.
    """
    return Cluster(
        path,
        {**(config or {}), **normalise_names(settings)},
        brokers=brokers,
        racks=racks,
        log_dirs=log_dirs,
        durability=durability,
        cluster_id=cluster_id,
        background=background,
        is_embedded=True,
    )


def _line_outside() -> str:
    """The line of whoever called embedlog."""
    frame: FrameType | None = _getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("embedlog"):
        frame = frame.f_back
    return "an unknown line" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
