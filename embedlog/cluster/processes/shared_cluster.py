"""`SharedCluster`: one data directory for several processes. `embedlog.connect_or_open` returns it.

    with embedlog.connect_or_open("data") as cluster:       # in each of the processes
        with cluster.producer() as producer:
            producer.send("events", b"value").result()

The first process opens the directory and listens on loopback: it is the *owner*. The others connect
to it. When the owner closes the directory or dies, another process becomes the owner, and the
clients of all processes connect to it.
"""

from __future__ import annotations

from embedlog.cluster.cluster import open as open_cluster
from embedlog.cluster.layout import broker_count
from embedlog.cluster.processes.ownership import Ownership
from embedlog.cluster.processes.shared_directory import SharedDirectory
from embedlog.errors import ClosedError, ConfigError, KafkaError, TimedOut
from embedlog.runtime import real_runtime
from embedlog.runtime.forks import stays_in_parent
from embedlog.runtime.outer_call import outer_close
from embedlog.storage.directory.data_path import data_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self, Unpack

    from _typeshed import StrPath

    from embedlog.client.admin.admin import Admin
    from embedlog.client.admin.new_topics import CreatedTopic
    from embedlog.client.consumer.consumer import Consumer
    from embedlog.client.producer.producer import Producer
    from embedlog.client.settings import Settings
    from embedlog.client.share.consumer import ShareConsumer
    from embedlog.cluster.cluster import Cluster
    from embedlog.cluster.handles.broker_node import BrokerNode
    from embedlog.queue.arguments import QueueArguments
    from embedlog.queue.queue import Queue
    from embedlog.transport import Transport

_ASK_MS = 250
_TIMEOUT_MS = 30_000
_QUICK = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}
"""Defaults of a client that connects to the owner: the address is in this machine, and after a
change of owner a client shall not pause for a second before it looks for the next one."""


class SharedCluster:
    """The cluster of a data directory that several processes share, with methods that make clients.

    Every method may be called from any thread. Clients of the owner's process need no connection.
    Close clients before the cluster. A forked child cannot use its parent's cluster: it calls
    `connect_or_open` itself.
    """

    def __init__(self, path: str, settings: Mapping[str, Any], timeout_ms: int) -> None:
        """Open the directory at the absolute `path`, or connect to its owner.

        `settings` are arguments of `embedlog.open`. See `connect_or_open`.
        """
        runtime = real_runtime()
        self.path = path
        """The absolute path of the directory."""
        self.is_closed = False
        """True once `close` began."""
        if broker_count(runtime.files, path, None, ()) > 1:
            raise ConfigError(
                f"{path} belongs to several brokers: processes can share the directory of one"
            )
        self._directory = SharedDirectory(runtime.files, path)
        self._ownership = Ownership(
            runtime, self._directory, lambda: open_cluster(path, **settings)
        )
        self._ownership.begin(self._is_answered, timeout_ms)
        stays_in_parent(self)

    def _is_answered(self) -> bool:
        """Return whether a broker with the directory's identity answers."""
        if not self._directory.addresses() or self._directory.identity() is None:
            return False
        with self.admin() as admin:
            try:
                admin.describe_cluster(timeout_ms=_ASK_MS)
            except (KafkaError, TimedOut):
                return False
        return True

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

    def queue(self, name: str, **options: Unpack[QueueArguments]) -> Queue:
        """Return the job queue of this name; make it if needed. See `Cluster.queue`."""
        from embedlog.queue.queue import Queue

        return Queue(self, name, **options)

    def admin(self, **settings: Any) -> Admin:
        """Return an admin client of this cluster, with the settings of `embedlog.Admin`."""
        from embedlog.client.admin.admin import Admin

        return Admin(self, **settings)

    def reach(self, settings: Settings) -> Transport:
        """Return a transport to the owner: in this process, or a connection with a client's
        `settings`, which finds the next owner as well.

        Raises:
            ClosedError: the cluster was closed.
        """
        self._check_open()
        cluster = self._ownership.cluster
        if cluster is not None:
            return cluster.connect(settings["client.id"])
        from embedlog.client.network.network_client import NetworkClient

        given = getattr(settings, "given", ())
        settings.update({name: ms for name, ms in _QUICK.items() if name not in given})
        return NetworkClient([], settings, find=self._nodes)

    def _nodes(self) -> Any:
        # A bound method of this object keeps it alive as long as its clients.
        return self._directory.nodes()

    # Topics

    @property
    def topics(self) -> list[str]:
        """Sorted names of all topics but the coordinators' internal ones.

        Raises:
            ClosedError: the cluster was closed.
            TimedOut: no owner answered in a minute.
        """
        cluster = self._owned()
        if cluster is not None:
            return cluster.topics
        with self.admin() as admin:
            return sorted(admin.list_topics())

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        *,
        replication_factor: int = -1,
        config: Mapping[str, object] | None = None,
    ) -> CreatedTopic:
        """Create a topic: see `Cluster.create_topic`.

        Raises:
            KafkaError: TopicAlreadyExists, InvalidTopic, InvalidConfig, InvalidPartitions.
            ClosedError: the cluster was closed.
            TimedOut: no owner answered in a minute.
        """
        cluster = self._owned()
        if cluster is not None:
            return cluster.create_topic(
                name, partitions, replication_factor=replication_factor, config=config
            )
        from embedlog.client.admin.new_topics import NewTopic

        configs = {key: value for key, value in (config or {}).items() if value is not None}
        topic = NewTopic(name, partitions, replication_factor, configs=configs)
        with self.admin() as admin:
            return admin.create_topics([topic])[name]

    # The owner

    @property
    def is_owner(self) -> bool:
        """True if this process has the directory open."""
        return self._owned() is not None

    @property
    def address(self) -> str | None:
        """The owner's address, "host:port", for any Kafka client; None while no owner listens.

        After a change of owner it is the same, unless another program has taken the port.
        """
        listener = self._ownership.listener
        if self._owned() is not None and listener is not None:
            return listener.address
        return next(iter(self._directory.addresses()), None)

    @property
    def brokers(self) -> list[BrokerNode]:
        """The broker if this process is the owner; none if another process is."""
        cluster = self._owned()
        return [] if cluster is None else cluster.brokers

    @property
    def cluster_id(self) -> str:
        """The cluster's id, 22 characters."""
        identity = self._directory.identity()
        assert identity is not None, self.path
        return identity[0]

    def _owned(self) -> Cluster | None:
        self._check_open()
        return self._ownership.cluster

    # Life

    @outer_close(in_callbacks=False)
    def close(self) -> None:
        """Leave the directory; if this process is the owner, another becomes it. Idempotent.

        Close clients first: see `Cluster.close`.
        """
        self.is_closed = True
        self._ownership.close()

    def __del__(self) -> None:
        if "_ownership" in self.__dict__ and not self.is_closed:
            self._ownership.stop_watching()  # an open cluster warns and closes by itself

    def _check_open(self) -> None:
        if self.is_closed:
            raise ClosedError("the cluster was closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.is_closed:
            return f"<SharedCluster at {self.path!r}, closed>"
        role = "owner" if self.is_owner else "connected to the owner"
        return f"<SharedCluster at {self.path!r}, {role}, {self.address}>"


def connect_or_open(
    path: StrPath,
    *,
    config: Mapping[str, object] | None = None,
    durability: str | None = None,
    timeout_ms: int = _TIMEOUT_MS,
    **settings: object,
) -> SharedCluster:
    """Open the data directory at `path`, or connect to the process that has it open.

    The first process becomes the *owner*: it opens the directory, or creates it, and listens on
    loopback. The other processes connect to it, also if it is an `embedlog.open` that listens, or
    `embedlog serve`. When the owner closes the directory or dies, one of the others becomes the
    owner, after some 50 ms and the time that the opening takes. Clients go on: they connect to the
    next owner, and repeat the requests that got no answer.

    `config`, `durability` and the settings are explained at `embedlog.open`. The owner uses its
    own, so give the same in all processes. Every local user can connect to the port.

    Wait at most `timeout_ms` for an owner that starts.

    >>> import embedlog, tempfile
    >>> with tempfile.TemporaryDirectory() as path:
    ...     with embedlog.connect_or_open(path) as first, embedlog.connect_or_open(path) as second:
    ...         topic = second.create_topic("events")
    ...         first.is_owner, second.is_owner, first.topics
    (True, False, ['events'])

    Raises:
        DirectoryLocked: a process has the directory open, and cannot be reached in time.
        ConfigError: see `embedlog.open`; or there is no path, or the directory belongs to several
            brokers.
        CorruptRecord: the metadata log is damaged.
        OSError: the directory cannot be opened. A process that may only read it can connect.
    """
    from embedlog.client import arguments

    directory = data_directory(path)
    if directory is None:
        raise ConfigError("processes share a directory, and not memory: give a path")
    limit_ms = arguments.timeout_ms(timeout_ms, "connect_or_open")
    opening = {"config": config, "durability": durability, **settings}
    return SharedCluster(real_runtime().files.absolute(directory), opening, limit_ms)
