"""`Snapshot`: the state of a cluster at one moment.

It is a copy of the brokers' files, which are in memory. A copied file shares its bytes with the
original until one of the two changes them, so a snapshot takes no time for the records themselves.

A snapshot is taken between two requests: if a request changed something while the files were
copied, they are copied again, and a busy cluster is held for that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from embedlog.cluster.layout import broker_count
from embedlog.common import TopicPartition
from embedlog.errors import ConfigError, IllegalState
from embedlog.runtime.files import Files, is_directory, make_directory, write_fully
from embedlog.runtime.memory_files import MemoryDirectory, MemoryFiles, MemoryNode, MemoryTree
from embedlog.storage import paths
from embedlog.storage.directory.clean_copy import complete_copy
from embedlog.storage.directory.data_path import data_directory
from embedlog.storage.state_files.clean_shutdown import holds_marker, write_marker
from embedlog.testing.interception import GATE
from embedlog.testing.snapshots.gate import Gate
from embedlog.testing.time.moved_clock import MovedClock
from embedlog.testing.time.steady_clock import SteadyClock

if TYPE_CHECKING:
    from _typeshed import StrPath

    from embedlog.cluster.cluster import Cluster
    from embedlog.testing.cluster_owner import ClusterOwner
    from embedlog.testing.registry.store import Store
    from embedlog.testing.shape import Shape

_ROOT = "memory"
"""The data directory of a cluster in memory."""
_TRIES_UNHELD = 3
_TRIES_MAX = 1_000


class Snapshot:
    """The state of a cluster at one moment: `Kafka.snapshot` takes it. It never changes.

    >>> from embedlog.testing import Kafka
    >>> with Kafka(topics={"t": 1}) as kafka:
    ...     saved = kafka.snapshot()
    ...     record = kafka.producer().send("t", b"x").result()
    ...     kafka.restore(saved)
    ...     kafka.producer().send("t", b"y").result().offset
    0
    """

    def __init__(
        self,
        tree: MemoryTree,
        shape: Shape,
        *,
        ahead_ms: int = 0,
        stopped: tuple[int, ...] = (),
        ends: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """`tree` has the files of all brokers; `ends` are the ends of logs, as far as known."""
        self._tree = tree
        self.ends = ends or {}
        self.shape = shape
        """The shape of the cluster."""
        self.ahead_ms = ahead_ms
        """How far the test had moved the clock."""
        self.stopped = stopped
        """The brokers that did not run."""
        self.registry: Store | None = None
        """The subjects and schemas of the registry; None if the test had none."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(node.size for _, node in _nodes(self._tree.root))

    def files(self, clock: SteadyClock | None = None) -> MemoryFiles:
        """Return the files of this state, for a cluster that changes them."""
        clock = SteadyClock() if clock is None else clock
        return MemoryFiles(clock, self._tree.copied(clock))

    def save(self, path: StrPath) -> str:
        """Write the state into a new directory; return its path.

        `embedlog serve --data PATH` and `embedlog.open(PATH)` open it, and `Kafka.load(PATH)` reads
        it.

        Raises:
            ConfigError: the directory exists and is not empty.
            OSError: the disk refuses.
        """
        from embedlog.runtime.os_files import OsFiles

        files, directory = OsFiles(), OsFiles.absolute(_directory(path))
        if files.stat(directory) is not None and (
            not is_directory(files, directory) or files.list(directory)
        ):
            raise ConfigError(f"{directory} exists already: name a new directory")
        source = MemoryFiles(tree=self._tree)
        for name, node in _nodes(self._tree.directory(_ROOT)):
            target = f"{directory}/{name}"
            where, _, file = target.rpartition("/")
            if file not in (paths.LOCK, paths.CLEAN_SHUTDOWN):
                make_directory(files, where, sync=False)
                _write(files, target, node)
        for name in _data_directories(self._tree):
            if holds_marker(source, f"{_ROOT}{name}"):
                # Of this boot of this machine: nothing was synced.
                write_marker(files, f"{directory}{name}", synced=False)
        return directory

    @classmethod
    def read(cls, path: StrPath, shape: Shape) -> Snapshot:
        """Read the state in a directory that no process has open.

        Raises:
            ConfigError: there is no such directory, or it is empty.
        """
        from embedlog.runtime.os_files import OsFiles

        files, directory = OsFiles(), OsFiles.absolute(_directory(path))
        if not is_directory(files, directory) or not files.list(directory):
            raise ConfigError(f"{directory}: expected a directory with the state of a cluster")
        target = MemoryFiles()
        _read(files, directory, target, _ROOT)
        for name in _data_directories(target.tree):
            if holds_marker(files, f"{directory}{name}"):
                write_marker(target, f"{_ROOT}{name}", synced=False)
        count = broker_count(target, _ROOT, None, ())
        return cls(target.tree, replace(shape, brokers=count))

    def __repr__(self) -> str:
        return f"<Snapshot, {self.size} bytes>"


def take(kafka: ClusterOwner) -> Snapshot:
    """Return the present state of a cluster in memory.

    Raises:
        ConfigError: the cluster has a data directory on disk.
    """
    cluster = kafka.cluster
    files = cluster.runtime.files
    if not isinstance(files, MemoryFiles):
        raise ConfigError(
            f"the cluster is at {cluster.path!r}: snapshots are of clusters in memory, which are "
            "made without path="
        )
    clock = cluster.runtime.clock
    return Snapshot(
        _copied(kafka, files),
        kafka.shape,
        ahead_ms=clock.ahead_ms if isinstance(clock, MovedClock) else 0,
        stopped=tuple(node.node_id for node in cluster.brokers if not node.is_running),
        ends=ends_of(cluster),
    )


def save_state(kafka: ClusterOwner, path: StrPath) -> str:
    """Write the state of a cluster into a new directory; return the path of the state.

    A cluster on disk has its state there already. The pytest plugin calls this after a failure.
    """
    if kafka.cluster.path is not None:
        return kafka.cluster.path
    return take(kafka).save(path)


def ends_of(cluster: Cluster) -> dict[TopicPartition, int]:
    """Return the end of each log that is loaded, the largest one of several replicas."""
    ends: dict[TopicPartition, int] = {}
    for manager in cluster.log_managers():
        for log in manager.logs():
            known = ends.get(log.topic_partition, 0)
            ends[log.topic_partition] = max(known, log.log_end_offset)
    return ends


def _directory(path: StrPath) -> str:
    directory = data_directory(path)
    if directory is None:
        raise ConfigError(f"{path!r}: expected a directory")
    return directory


def _copied(kafka: ClusterOwner, files: MemoryFiles) -> MemoryTree:
    cluster, gate = kafka.cluster, Gate()
    exclusively: Callable[[Callable[[], MemoryTree | None]], MemoryTree | None]
    exclusively = cluster.runtime.scheduler.exclusively
    try:
        for number in range(_TRIES_MAX):
            if number == _TRIES_UNHELD:
                kafka.stages.put(GATE, gate.stage)
            copy = exclusively(lambda: _try(cluster, files))
            if copy is not None:
                return copy
    finally:
        if number >= _TRIES_UNHELD:
            gate.open()
            kafka.stages.put(GATE, None)
    raise IllegalState("the cluster did not come to rest for a snapshot")


def _try(cluster: Cluster, files: MemoryFiles) -> MemoryTree | None:
    """Return a copy of the files; None if something changed meanwhile."""
    before = _version(cluster)
    try:
        copy = files.tree.copied(files.clock)
        target = MemoryFiles(files.clock, copy)
        for manager in cluster.log_managers():
            complete_copy(manager, target)
    except OSError:
        if _version(cluster) == before:
            raise
        return None  # a log was deleted meanwhile
    return copy if _version(cluster) == before else None


def _version(cluster: Cluster) -> list[object]:
    """Return values that change with every change of the logs, the metadata log among them."""
    return [
        (log, log.log_end_offset, log.offsets.log_start_offset, log.segments)
        for manager in cluster.log_managers()
        for log in manager.logs()
    ]


def _nodes(directory: MemoryDirectory, prefix: str = "") -> Iterator[tuple[str, MemoryNode]]:
    """Yield every file below a directory with its path."""
    for name, entry in directory.entries.items():
        if isinstance(entry, MemoryDirectory):
            yield from _nodes(entry, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", entry


def _data_directories(tree: MemoryTree) -> list[str]:
    """Return the paths below the root of directories that a broker or a controller locks."""
    root = tree.directory(_ROOT)
    below = [name for name, entry in root.entries.items() if isinstance(entry, MemoryDirectory)]
    if paths.CLUSTER_PROPERTIES in root.entries:
        return [f"/{name}" for name in below]
    return [""]


def _write(files: Files, path: str, node: MemoryNode) -> None:
    file = files.open(path, create=True)
    try:
        if node.size:
            write_fully(file.write, [node.view(0, node.size)], 0)
    finally:
        file.close()


def _read(files: Files, source: str, target: MemoryFiles, directory: str) -> None:
    target.make_directory(directory)
    for name in files.list(source):
        if is_directory(files, f"{source}/{name}"):
            _read(files, f"{source}/{name}", target, f"{directory}/{name}")
        elif name not in (paths.LOCK, paths.CLEAN_SHUTDOWN):
            content = files.read(f"{source}/{name}")
            file = target.open(f"{directory}/{name}", create=True)
            if content:
                file.write([content], 0)
