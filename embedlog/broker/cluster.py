"""`Cluster`: a broker over a directory, or over memory; what `embedlog.open` returns.

    with embedlog.open("data") as cluster:
        with cluster.producer() as producer:
            producer.send("events", b"value").result()

Opening reads the metadata log, hosts every partition and starts no thread. A thread and a socket
come with `listen` only.
"""

from __future__ import annotations

from embedlog.broker import dispatch, meta_properties
from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from embedlog.common import ONE_UUID, TopicPartition
from embedlog.config.broker_config import BrokerConfig, normalise_names
from embedlog.controller.controller import Controller
from embedlog.controller.metadata_log import LOG_SETTINGS, METADATA_PARTITION, MetadataLog
from embedlog.errors import ClosedError, ConfigError
from embedlog.runtime import real_runtime
from embedlog.storage.log_config import DURABILITIES, LogConfig
from embedlog.storage.log_manager import LogManager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _weakref import ReferenceType
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any, Protocol, Self

    from embedlog.broker.network import BrokerListener
    from embedlog.client.admin.admin import Admin
    from embedlog.client.consumer.consumer import Consumer
    from embedlog.client.producer.producer import Producer
    from embedlog.controller.metadata import TopicImage
    from embedlog.runtime import Runtime
    from embedlog.transport import InProcessTransport

    class Path(Protocol):
        """Anything that `open` of Python takes as a path and is not text."""

        def __fspath__(self) -> str: ...


_MEMORY_DIRECTORY = "memory"
"""The data directory's name in a file system of its own, when there is no path."""

_REBALANCE_DELAY = "group.initial.rebalance.delay.ms"


class Cluster:
    """One broker of this process, and the clients' way to it.

    Every method may be called from any thread. `durability` says what an acknowledged record
    survives by default: "memory" nothing, "os" the end of this process, "fsync" loss of power;
    a topic may say otherwise (`embedlog.durability`).
    """

    def __init__(
        self,
        path: str | Path | None = None,
        config: Mapping[str, object] | None = None,
        *,
        durability: str | None = None,
        cluster_id: str | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        """Open the directory at `path`, or a cluster in memory. See `open`.

        `runtime` replaces clock, files, threads and randomness: see `embedlog.testing`.
        """
        directory = _MEMORY_DIRECTORY if path is None else _text_of(path)
        self.path = None if path is None else directory
        self.config = BrokerConfig(config)
        self.durability = _durability(self.path, durability, self.config)
        self.config.set_static("embedlog.durability", self.durability)
        if self.path is not None:
            self.config.set_static("log.dirs", directory)
        elif not self.config.is_set(_REBALANCE_DELAY):
            # A test shall not wait 3 s for members that it does not start.
            self.config.set_static(_REBALANCE_DELAY, "0")
        self.runtime = runtime or _runtime(self.path)
        self._listeners: list[BrokerListener] = []
        self._transports: dict[int, ReferenceType[InProcessTransport]] = {}
        self._is_closed = False
        self._log_manager = LogManager(
            self.runtime,
            directory,
            LogConfig(durability=self.durability),
            retention_first_ms=self.config.log_initial_task_delay_ms,
            retention_interval_ms=self.config.log_retention_check_interval_ms,
            cleaner_settings=self.config,
        )
        try:
            self.broker = self._open(directory, cluster_id)
            """The broker; `handle` is its one door."""
        except BaseException:
            self._log_manager.close()
            raise

    def _open(self, directory: str, cluster_id: str | None) -> Broker:
        node_id = self.config.node_id
        on_disk = self.path is not None
        properties = meta_properties.read(self.runtime, directory, node_id)
        # What outlives a topic's records must be at least as durable as any of them.
        level = "fsync" if on_disk else "memory"
        log = self._log_manager.get_or_create(
            METADATA_PARTITION, LogConfig(**LOG_SETTINGS, durability=level), topic_id=ONE_UUID
        )
        controller = Controller(
            self.runtime,
            MetadataLog(log, self.runtime.clock, sync=on_disk),
            self.config,
            cluster_id=properties.cluster_id or cluster_id,
        )
        found = controller.image.cluster_id
        for source, expected in (
            ("meta.properties names", properties.cluster_id),
            ("expected was", cluster_id),
        ):
            if expected and expected != found:
                raise ConfigError(
                    f"{directory} belongs to cluster {found}, but {source} {expected}"
                )
        if not properties.cluster_id:
            properties.cluster_id = found
            meta_properties.write(self.runtime, directory, node_id, properties, sync=on_disk)
        self._remove_deleted(controller)
        controller.compact()
        if not self._log_manager.clean:
            # Logs may have lost their ends, or all they had. A reader who is ahead of one must
            # learn of it, and not be given other records at its offset (KIP-320).
            controller.bump_leader_epochs(
                TopicPartition(topic.name, partition.partition)
                for topic in controller.image.topics_by_name.values()
                for partition in topic.partitions
            )
        return Broker(
            self.runtime,
            self.config,
            self._log_manager,
            controller,
            directory_id=properties.directory_id,
            log_directory=directory,
        )

    def _remove_deleted(self, controller: Controller) -> None:
        """Finish deletions that a crash cut short; logs of unknown origin are left alone."""
        if not controller.removed_topic_ids:
            return
        known = {METADATA_PARTITION.topic, *controller.image.topics_by_name}
        for topic_partition in self._log_manager.partitions():
            if topic_partition.topic in known:
                continue
            log = self._log_manager.get(topic_partition)
            if log is not None and log.topic_id in controller.removed_topic_ids:
                self._log_manager.delete(topic_partition)

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

    def connect(self, client_id: str = "") -> InProcessTransport:
        """A transport to the broker: requests as objects, no bytes, no socket.

        Raises:
            ClosedError: the cluster was closed.
        """
        from _weakref import ref

        from embedlog.transport import InProcessTransport

        if self._is_closed:
            raise ClosedError("the cluster was closed")

        def make_context(api_key: int, version: int) -> RequestContext:
            return RequestContext(api_key, version, client_id=client_id)

        transport = InProcessTransport(
            self.broker.handle,
            make_context,
            {key: (first, last) for key, (_, first, last) in dispatch.HANDLERS.items()},
            self.runtime,
        )
        key = id(transport)
        self._transports[key] = ref(transport, lambda _: self._transports.pop(key, None))
        return transport

    # Topics

    @property
    def topics(self) -> list[str]:
        """The names of the topics that are not a coordinator's, sorted."""
        found = self.broker.controller.image.topics_by_name.values()
        return sorted(topic.name for topic in found if not topic.is_internal)

    def create_topic(
        self, name: str, partitions: int = -1, *, config: Mapping[str, object] | None = None
    ) -> TopicImage:
        """Make a topic; -1 partitions means `num.partitions`. Settings by Kafka's names.

        Raises:
            KafkaError: TopicAlreadyExists, InvalidTopic, InvalidConfig, InvalidPartitions.
        """
        from embedlog.config.broker_config import text_of

        configs = {key: text_of(value) for key, value in (config or {}).items()}
        return self.broker.controller.create_topic(
            name, partition_count=partitions, configs=configs
        )

    # Addresses

    def listen(
        self, host: str = "127.0.0.1", port: int = 0, *, allow_remote_plaintext: bool = False
    ) -> BrokerListener:
        """Serve the cluster at an address, in a thread of its own, until closed.

        `address` of the result is what any Kafka client takes as its bootstrap server; port 0
        finds a free port.

        Raises:
            OSError: the address cannot be listened on.
            ConfigError: other machines could reach it, and that was not allowed.
        """
        from embedlog.broker.network import listen

        if self._is_closed:
            raise ClosedError("the cluster was closed")
        listener = listen(self.broker, host, port, allow_remote_plaintext=allow_remote_plaintext)
        listener.start()
        self._listeners.append(listener)
        return listener

    # Life

    @property
    def cluster_id(self) -> str:
        """The cluster's id, 22 characters."""
        return self.broker.cluster_id

    def close(self) -> None:
        """Close the addresses, answer what waits, write what is open. A second call does nothing.

        Clients should be closed before: what they have not sent is not sent any more.
        """
        if self._is_closed:
            return
        self._is_closed = True
        for listener in self._listeners:
            listener.close()
        for reference in list(self._transports.values()):
            transport = reference()
            if transport is not None:
                transport.close()
        self.broker.close()
        self._log_manager.close()

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
        addresses = "".join(f", {listener.address}" for listener in self._listeners)
        return f"<Cluster {where}, {len(self.topics)} topics{addresses}>"


def open(
    path: str | Path | None = None,
    *,
    config: Mapping[str, object] | None = None,
    durability: str | None = None,
    cluster_id: str | None = None,
    **settings: object,
) -> Cluster:
    """Open the cluster in the directory at `path`, making it when it is missing; without a path,
    a new one in memory that is gone when it is closed.

    Settings are those of a Kafka broker, in a dict under Kafka's names or as keyword arguments with
    underscores for dots. `durability` is "fsync" with a path and "memory" without, unless told.
    `cluster_id` names a new cluster, and is what an existing one must have.

    >>> import embedlog
    >>> with embedlog.open(num_partitions=3) as cluster:
    ...     topic = cluster.create_topic("events")
    ...     len(topic.partitions)
    3

    Raises:
        DirectoryLocked: another process, or another cluster of this one, has the directory.
        ConfigError: a setting with a value that it does not take, or a directory of another node
            or cluster.
        CorruptRecord: the metadata log was damaged; the message says where.
    """
    return Cluster(
        path,
        {**(config or {}), **normalise_names(settings)},
        durability=durability,
        cluster_id=cluster_id,
    )


def _text_of(path: str | Path) -> str:
    text = path if isinstance(path, str) else path.__fspath__()
    if not text:
        raise ConfigError("the path is empty: None means a cluster in memory")
    return text.rstrip("/") or "/"


def _durability(path: str | None, asked: str | None, config: BrokerConfig) -> str:
    level: str | None = asked or config.embedlog_durability
    if level is None:
        return "memory" if path is None else "fsync"
    if level not in DURABILITIES:
        raise ConfigError(f"durability {level!r}: expected one of {', '.join(DURABILITIES)}")
    if path is None and level != "memory":
        raise ConfigError(f"durability {level!r} needs a path: there is no disk in memory")
    return level


def _runtime(path: str | None) -> Runtime:
    if path is not None:
        return real_runtime()
    from embedlog.runtime.memory_files import MemoryFiles

    return real_runtime(MemoryFiles())
