"""`Cluster`: brokers over a directory or over memory. `embedlog.open` returns it.

    with embedlog.open("data") as cluster:
        with cluster.producer() as producer:
            producer.send("events", b"value").result()

The constructor reads the metadata log and hosts every partition. It starts no thread unless
`background` is true. Only `listen` opens a socket and starts the listener's thread.
"""

from __future__ import annotations

from _thread import get_ident
from _weakref import ReferenceType, ref
from sys import _getframe

from embedlog.cluster.layout import broker_count
from embedlog.cluster.single import Single
from embedlog.config.broker_config import BrokerConfig, normalise_names
from embedlog.config.cordons import ALL, CORDONED
from embedlog.errors import ClosedError, ConfigError
from embedlog.runtime.at_exit import CLUSTERS
from embedlog.runtime.forks import stays_in_parent
from embedlog.runtime.outer_call import INSIDE, outer, outer_close
from embedlog.storage.directory.data_path import (
    data_directory,
    durability_of,
    further_directories,
    named_beside,
    runtime_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from socket import socket
    from types import FrameType
    from typing import Any, Self, Unpack

    from _typeshed import StrPath

    from embedlog.client.admin.admin import Admin
    from embedlog.client.admin.new_topics import CreatedTopic
    from embedlog.client.consumer.consumer import Consumer
    from embedlog.client.producer.producer import Producer
    from embedlog.client.share.consumer import ShareConsumer
    from embedlog.cluster.faults.network import ClusterNetwork
    from embedlog.cluster.handles.broker_node import BrokerNode
    from embedlog.cluster.handles.cluster_controller import ClusterController
    from embedlog.cluster.handles.cluster_listener import ClusterListener
    from embedlog.cluster.handles.cluster_partition import ClusterPartition
    from embedlog.cluster.interception import Interceptor
    from embedlog.cluster.several import Several
    from embedlog.cluster.several_transport import SeveralTransport
    from embedlog.queue.arguments import QueueArguments
    from embedlog.queue.queue import Queue
    from embedlog.runtime import Runtime
    from embedlog.runtime.background import BackgroundThread
    from embedlog.server.addresses import BrokerListener
    from embedlog.storage.degradation import Degradation
    from embedlog.storage.directory.log_manager import LogManager
    from embedlog.transport import InProcessTransport, Transport
    from wire.schema import R, Request

    LocalTransport = InProcessTransport | SeveralTransport


_MEMORY_DIRECTORY = "memory"
"""Name of the data directory in memory, without a path."""

_REBALANCE_DELAY = "group.initial.rebalance.delay.ms"

_EMBEDDED = {
    # By Kafka's default each start waits 3 s for more members; an application knows its members.
    _REBALANCE_DELAY: "0",
    # Without this the first record to a topic costs 80 ms, the client's pause between two requests.
    "embedlog.auto.create.topics.await": "true",
    # Full segments alone are compacted, and a start reads the rest: by Kafka's default 100 MiB of
    # one queue's commits.
    "offsets.topic.segment.bytes": str(2 << 20),
    "transaction.state.log.segment.bytes": str(2 << 20),
    # By Kafka's default the first member of a share group gets its partitions after 5 s.
    "embedlog.share.first.heartbeat.ms": "50",
    # If a broker is killed while a share group begins with a partition, the next broker waits for
    # this long, by Kafka's default 30 s, before it begins again.
    "group.share.initialize.retry.interval.ms": "1000",
}
"""Defaults of `open` that differ from Kafka's."""


class Cluster:
    """One or several brokers of this process, with methods that make clients and listeners for
    them.

    Every method may be called from any thread. `durability` is the default level: an acknowledged
    record survives nothing ("memory"), the end of this process ("os"), or loss of power ("fsync").
    A topic can have its own level (`embedlog.durability`).

    A cluster that is dropped, or still open when the interpreter ends, is closed with a
    ResourceWarning. Clients and listeners keep their cluster alive.
    """

    @outer
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

        `is_embedded`: take the defaults of `open`, not Kafka's. `waits_for_committer`: wait a
        moment if a Spark committer holds the directory. `runtime` replaces clock, files, threads
        and randomness: see `embedlog.testing`.
        """
        self._is_closed = False
        given = data_directory(path)
        self.runtime = runtime or runtime_of(given)
        absolute = self.runtime.files.absolute
        self.path = given and absolute(given)
        """The absolute path, so that the program may change its working directory; or None."""
        directory = self.path or _MEMORY_DIRECTORY
        self.config = BrokerConfig(config)
        log_dirs = log_dirs or named_beside(self.path, self.config.log_dirs)
        further = further_directories(self.path, log_dirs) if log_dirs else ()
        self.log_dirs = tuple(map(absolute, further))
        """The further log directories, as absolute paths."""
        self.durability = durability_of(self.path, durability, self.config)
        self.config.set_static("embedlog.durability", self.durability)
        self.config.set_static("log.dirs", ",".join((directory, *self.log_dirs)))
        cordoned = self.config.cordoned_log_dirs
        if cordoned:
            names = [each if each == ALL else absolute(each) for each in cordoned]
            self.config.set_static(CORDONED, ",".join(names))
        if self.path is None:
            # A test shall not wait 3 s for further members.
            self._set_defaults({_REBALANCE_DELAY: "0"})
        if is_embedded:
            self._set_defaults(_EMBEDDED)
        self._transports: dict[int, ReferenceType[LocalTransport]] = {}
        self._brokers: Single | Several = self._open(
            directory, brokers, racks, cluster_id, waits_for_committer
        )
        self._background = self._begin_background() if background else None
        self._is_closing = False
        """True once `close` began."""
        stays_in_parent(self)
        # A caller with its own runtime closes its clusters itself.
        self._forget = self._watch_end() if runtime is None else None

    def _begin_background(self) -> BackgroundThread:
        """Start the thread of `background=True`; close the brokers if that fails."""
        from embedlog.runtime.background import BackgroundThread

        try:
            return BackgroundThread(self.runtime)
        except BaseException:
            self._brokers.close()
            raise

    def _open(
        self,
        directory: str,
        count: int | None,
        racks: Sequence[str],
        cluster_id: str | None,
        waits_for_committer: bool,
    ) -> Single | Several:
        asked = count
        count = broker_count(self.runtime.files, directory, asked, racks)
        if count == 1:
            return Single(
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
            asked=asked,
            racks=racks,
            # A broker in memory that starts again keeps its earlier records at level "os".
            durability=self.durability if self.path is not None else "os",
            on_disk=self.path is not None,
            log_dirs=self.log_dirs,
            cluster_id=cluster_id,
        )

    def _watch_end(self) -> Callable[[], None]:
        """Close the cluster when the interpreter ends. Return a function that cancels this."""
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
        """Return the broker with this number; None means the only broker.

        Raises:
            ConfigError: no broker has that number, or `node_id` is None and there are several.
        """
        return self._brokers.broker(node_id)

    @property
    def brokers(self) -> list[BrokerNode]:
        """All brokers by number, running or not."""
        return self._brokers.brokers()

    def partition(self, topic: str, partition: int) -> ClusterPartition:
        """Return a handle of a partition: its leader, replicas, offsets and moves."""
        brokers = self._brokers
        if isinstance(brokers, Single):
            from embedlog.cluster.handles.lone_partition import LonePartition

            return LonePartition(brokers.member(), topic, partition)
        from embedlog.cluster.handles.cluster_partition import ClusterPartition

        return ClusterPartition(brokers.host, brokers.members, topic, partition)

    @property
    def network(self) -> ClusterNetwork:
        """The links between brokers and the controller, to cut and to slow down."""
        brokers = self._brokers
        return (brokers.member() if isinstance(brokers, Single) else brokers).network

    @property
    def controller(self) -> ClusterController:
        """A handle of the controller, to stop and start it."""
        from embedlog.cluster.handles.cluster_controller import ClusterController

        brokers = self._brokers
        if isinstance(brokers, Single):
            member = brokers.member()
            return ClusterController(member.controller, member.door.try_again)
        return ClusterController(brokers.host, brokers.try_again)

    @outer
    def add_broker(self, node_id: int | None = None, *, rack: str | None = None) -> BrokerNode:
        """Add a broker to a cluster of several, with the next free number unless given.

        Raises:
            ConfigError: a broker has that number, or the cluster has one broker.
        """
        return self._several("add_broker").add(node_id, rack)

    @outer
    def remove_broker(self, node_id: int) -> None:
        """Stop a broker of several, and unregister it. Its replicas stay assigned to it.

        Raises:
            ConfigError: no broker has that number, or the cluster has one broker.
        """
        self._several("remove_broker").remove(node_id)

    def _several(self, what: str) -> Several:
        from embedlog.cluster.several import Several

        if not isinstance(self._brokers, Several):
            raise ConfigError(f"{what} is for several brokers: open with brokers=2 or more")
        return self._brokers

    def log_managers(self) -> list[LogManager]:
        """Return the owners of the data directories: of each running broker, and of the controller
        of several.
        """
        from embedlog.cluster.several import Several

        managers = [each for one in self._brokers.running() for each in one.log_manager.managers]
        if isinstance(self._brokers, Several) and self._brokers.host.log_manager is not None:
            managers.append(self._brokers.host.log_manager)
        return managers

    def intercept(self, interceptor: Interceptor | None) -> None:
        """Let `interceptor` see every request before the broker does. None ends that.

        It is called with the broker, the context and the request, in the thread of the request,
        for clients in this process and over connections, also at brokers that start later. Its
        return value is the answer, or a pending of it; None lets the broker answer. It may call
        `embedlog.broker.dispatch.call` itself, to see or to change the broker's answer. The faults
        of `embedlog.testing` stand on it.
        """
        running = [each.core for each in self._brokers.running()]
        self._brokers.interception.change(interceptor, running)

    def wrap_sockets(self, wrap: Callable[[socket], socket] | None) -> None:
        """Let listeners use the socket that `wrap` returns in place of each newly accepted one.

        None ends that. The toxics of `embedlog.testing` stand on it.
        """
        running = [each.core for each in self._brokers.running()]
        self._brokers.interception.wrap_sockets(wrap, running)

    # Clients

    def producer(self, **settings: Any) -> Producer:
        """Return a producer to this cluster, with the settings of `embedlog.Producer`."""
        from embedlog.client.producer.producer import Producer

        return Producer(self, **settings)

    def consumer(self, **settings: Any) -> Consumer:
        """Return a consumer of this cluster, with the settings of `embedlog.Consumer`."""
        from embedlog.client.consumer.consumer import Consumer

        return Consumer(self, **settings)

    def share_consumer(self, **settings: Any) -> ShareConsumer:
        """Return a share consumer of this cluster; the settings are `embedlog.ShareConsumer`'s."""
        from embedlog.client.share.consumer import ShareConsumer

        return ShareConsumer(self, **settings)

    def admin(self, **settings: Any) -> Admin:
        """Return an admin client of this cluster, with the settings of `embedlog.Admin`."""
        from embedlog.client.admin.admin import Admin

        return Admin(self, **settings)

    def queue(self, name: str, **options: Unpack[QueueArguments]) -> Queue:
        """Return the job queue of this name; make it if it does not exist. See `embedlog.Queue`.

        Options that the cluster stores; an existing queue keeps its own unless you give others:
            priorities: number of priorities (1). Each is a topic; existing ones stay.
            ordered: True to work on the jobs of a key one after another, without pauses of retries.
            lock: seconds that a worker has for a job (30, of 15 to 60). `Worker` renews it.
            partitions: partitions of a new topic (1). Among several, only keys have an order.
        Options of this object:
            serializer: `dumps` and `loads`, as pickle has; by default JSON, and bytes as they are.
            retries: how often a failing job is tried again before it is dead (4).
            prefetch: most jobs to fetch at once (500); slow workers fetch fewer.

        Raises:
            TypeError, ValueError: an option is not of its type or range.
            KafkaError: the cluster refuses to make the queue.
        """
        from embedlog.queue.queue import Queue

        return Queue(self, name, **options)

    @outer
    def connect(self, client_id: str | None = None) -> Transport:
        """Return a transport to the brokers: requests are objects; no bytes, no socket.

        With a `client_id` (it may be empty) the client counts as a part of this process: after the
        directory is opened again, groups do not wait for it. With None it counts as a remote
        client.

        Raises:
            ClosedError: the cluster was closed.
        """
        return self._connect(client_id)

    def _connect(self, client_id: str | None = None, *, appends: bool = True) -> LocalTransport:
        self._check_open()
        transport: LocalTransport = self._brokers.connect(client_id, self, appends=appends)
        key, transports = id(transport), self._transports
        transports[key] = ref(transport, lambda _: transports.pop(key, None))
        if self._is_closed:  # by another thread, which may not have seen this transport
            transport.close()
            raise ClosedError("the cluster was closed")
        return transport

    # Topics

    @property
    @outer
    def topics(self) -> list[str]:
        """Sorted names of all topics but the coordinators' internal ones.

        Raises:
            ClosedError: the cluster was closed.
        """
        from wire.schemas.metadata import MetadataRequest

        found = self._ask(MetadataRequest(topics=None)).topics
        return sorted(topic.name or "" for topic in found if not topic.is_internal)

    @outer
    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        *,
        replication_factor: int = -1,
        config: Mapping[str, object] | None = None,
    ) -> CreatedTopic:
        """Create a topic. -1 partitions means `num.partitions`, -1 replicas
        `default.replication.factor`. `config` has Kafka's names.

        The result has the topic's id, its counts and every setting.

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
        # None means the default, as in `open`. The protocol cannot express that.
        configs = {key: text for key, text in texts.items() if text is not None}
        topic = creatable(NewTopic(name, partitions, replication_factor, configs=configs))
        (made,) = self._ask(CreateTopicsRequest(topics=[topic])).topics
        return created(made)

    def _ask(self, request: Request[R]) -> R:
        """Send a request through the brokers' door, and return the answer."""
        from embedlog.errors import Network
        from embedlog.transport import ANY_NODE

        transport = self._connect(appends=False)  # loading Produce would take 1 ms
        if not transport.is_ready(ANY_NODE):
            raise Network("no broker runs, or all are paused")
        pending = transport.send(ANY_NODE, request)
        while not pending.done():
            transport.wait(pending, None)
        return pending.result()

    # Addresses

    @outer
    def listen(
        self,
        host: str | None = None,
        port: int | Mapping[int, int] | None = None,
        *,
        allow_remote_plaintext: bool = False,
    ) -> BrokerListener | ClusterListener:
        """Serve the cluster at an address until closed. The listener has a thread of its own.

        Any Kafka client takes the result's `address` as its bootstrap server. The first listener
        takes a missing host or port from the setting `listeners`. Otherwise the host is loopback
        and the port 0, which finds a free port. Several brokers listen at consecutive ports from
        `port` on, or each at its own if `port` has the ports by the numbers of the brokers.

        Raises:
            OSError: the address cannot be listened on.
            ConfigError: other machines could reach the address, and `allow_remote_plaintext` is
                false.
        """
        self._check_open()
        return self._brokers.listen(
            host, port, allow_remote_plaintext=allow_remote_plaintext, owner=self
        )

    # Background work

    @outer
    def maintain(self) -> int:
        """Do all periodic work now; return the number of bytes it freed.

        The work is: everything that is due by the clock (time-outs of sessions, requests and
        transactions), retention of every topic, compaction of every log that Kafka's cleaner would
        clean, expiry of committed offsets and of transactional ids, deletion of unneeded files
        (also files that file.delete.delay.ms keeps for a while), and checkpoints. Other threads
        continue meanwhile.

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
        return sum(each.maintain() for each in self._brokers.running())

    @outer
    def health(self) -> list[Degradation]:
        """Return every degradation with its cause and time; empty if all is well.

        Each has a `kind`, explained in `embedlog.storage.degradation`: for a log "read-only" (the
        disk failed), "unreachable" (its files cannot be opened), "damaged", "cut" or "quarantined"
        (a recovery removed bytes), "uncleanable" or "move ended"; for the rest "retention paused"
        (the clock jumped), "work failing" and "offline" (a log directory). The call looks into each
        log's directory: 0.3 s for 10000 logs.

        >>> import embedlog
        >>> with embedlog.open() as cluster:
        ...     cluster.health()
        []

        Raises:
            ClosedError: the cluster was closed.
        """
        self._check_open()
        return [each for broker in self._brokers.running() for each in broker.health()]

    @outer
    def adopt_staged(self) -> None:
        """Commit all staged files of other processes now.

        Without this call the cluster commits them in the background, a moment later.

        Raises:
            ClosedError: the cluster was closed.
            OSError: the disk refuses.
        """
        self._check_open()
        for broker in self._brokers.running():
            if broker.commit_inbox is not None:
                worker = broker.commit_inbox.worker
                while worker.commit_one():
                    pass

    # Life

    @property
    def cluster_id(self) -> str:
        """The cluster's id, 22 characters."""
        return self._brokers.cluster_id

    @outer_close(in_callbacks=False)
    def close(self) -> None:
        """Close the listeners, answer waiting requests, write buffered state. Idempotent.

        Close clients first. An open producer gets 10 s to send its records; a warning names failed
        records whose futures nobody read. After an interrupt, call `close` again.
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

    def _ends_soon(self) -> None:
        for reference in list(self._transports.values()):
            transport = reference()
            if transport is not None and transport.ends_soon is not None:
                transport.ends_soon()

    def __del__(self) -> None:
        if self.__dict__.get("_forget") is not None and not self._is_closing:
            self._forgotten()

    def _forgotten(self) -> None:
        """Warn that the cluster was never closed, and close it."""
        from _warnings import warn

        try:
            warn(f"{self!r}, opened at {self._opened_at}, was not closed", ResourceWarning, 1, self)
        finally:
            self.close()

    def _is_gone(self) -> bool:
        return self._is_closed

    @property
    def is_closed(self) -> bool:
        """True once `close` began."""
        return self._is_closed

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the cluster was closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = f"at {self.path!r}, durability {self.durability}" if self.path else "in memory"
        if self._is_closed:
            return f"<Cluster {where}, closed>"
        count = len(self.brokers)
        several = f", {count} brokers" if count > 1 else ""
        addresses = "".join(f", {each}" for each in self._brokers.addresses)
        is_nested = get_ident() in INSIDE
        is_silent = is_nested or not any(
            each.is_running and not each.is_paused for each in self.brokers
        )
        topics = "" if is_silent else f", {len(self.topics)} topics"
        return f"<Cluster {where}{several}{topics}{addresses}>"


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
    """Open the cluster in the directory at `path`; create the directory if missing. Without a path,
    or with ":memory:", open a new cluster in memory, which is gone after `close`. A leading "~" is
    the home directory.

    Settings have the names of Kafka's broker settings: in the dict `config`, or as keyword
    arguments with underscores for dots. `durability` is by default "fsync" with a path and "memory"
    without. `cluster_id` names a new cluster; an existing cluster must have that id. Settings that
    do not exist, or that embedlog does not use, cause a warning.

    `brokers` is the number of brokers, by default 1. Several have a directory each below `path`,
    and their racks from `racks`. They replicate, elect leaders and fail like the brokers of a real
    cluster: see `Cluster.broker`, `Cluster.network` and `Cluster.partition`. One broker fails too.

    `log_dirs` are further directories, on other disks (Kafka's log.dirs). Each log lies in one of
    the directories; several brokers have subdirectories in each. A directory that fails, or is left
    out when the cluster is opened again, is offline, and the other directories continue.

    Some defaults differ from Kafka's: group.initial.rebalance.delay.ms is 0, the first answer to a
    client that auto-creates a topic contains the topic (embedlog.auto.create.topics.await), and new
    internal topics have segments of 2 MiB, so that a start reads little.

    Work that is due by the clock (retention, compaction, checkpoints, session expiry) is done by
    calls of clients in this process, before their own work, by waiting threads, and by listeners.
    `background` starts a thread for it, for a process without calls; see also `Cluster.maintain`.

    >>> import embedlog
    >>> with embedlog.open(num_partitions=3) as cluster:
    ...     topic = cluster.create_topic("events")
    ...     topic.partition_count
    3

    Raises:
        DirectoryLocked: another process, or another cluster of this process, has the directory.
        ConfigError: a setting has a wrong value, `path` is no path, or the directory belongs to
            another node, another cluster, or another program.
        CorruptRecord: the metadata log is damaged; the message names the file and the byte.
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
    """Return `file:line` of the user's code that called embedlog."""
    frame: FrameType | None = _getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("embedlog"):
        frame = frame.f_back
    return "an unknown line" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
