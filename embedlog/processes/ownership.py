"""`Ownership`: opens a shared directory and listens, or waits until this process can do so.

A process that is not the owner tries the directory's lock every 50 ms, which costs 40 us. The
system releases the lock when the owner ends, however it ends.
"""

from __future__ import annotations

from errno import EADDRINUSE

from embedlog.errors import DirectoryLocked, EmbedlogError
from embedlog.logger import Logger
from embedlog.processes.shared_directory import LOOPBACK, ports
from embedlog.runtime.outer_call import as_caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.cluster.cluster import Cluster
    from embedlog.cluster.handles.cluster_listener import ClusterListener
    from embedlog.processes.shared_directory import SharedDirectory
    from embedlog.runtime import Runtime
    from embedlog.server.addresses import BrokerListener

_log = Logger("broker")

_LOOK_MS = 50
_FAILED_MS = 1_000


class Ownership:
    """The directory's cluster, as long as this process is its owner."""

    def __init__(
        self, runtime: Runtime, directory: SharedDirectory, open_cluster: Callable[[], Cluster]
    ) -> None:
        self._directory = directory
        self._open_cluster = open_cluster
        self._thread = runtime.scheduler.duty_thread(self, "embedlog-next-owner")
        self._is_closed = False
        self.cluster: Cluster | None = None
        """The open cluster; None while another process is the owner."""
        self.listener: BrokerListener | ClusterListener | None = None

    def take(self) -> None:
        """Open the directory and listen.

        Raises:
            DirectoryLocked: another process is the owner.
            ConfigError, CorruptRecord, OSError: see `embedlog.open`.
        """
        cluster = self._open_cluster()
        try:
            self.listener = _listen(cluster, self._directory.path)
        except BaseException:
            cluster.close()
            raise
        self.cluster = cluster
        if self._is_closed:  # during the opening, by a thread that did not see this cluster
            cluster.close()

    def watch(self) -> None:
        """Become the owner, in a thread, when the present one ends."""
        self._thread.notify()

    def run_once(self, now_ms: int) -> int | None:  # noqa: ARG002
        """Become the owner if there is none. Runs in a thread of its own, because it may wait."""
        try:
            if not self._directory.is_free():
                return _LOOK_MS
            as_caller(self.take)
        except DirectoryLocked:  # another process was faster
            return _LOOK_MS
        except (EmbedlogError, OSError) as error:
            _log.error("%s has no owner and cannot be opened: %s", self._directory.path, error)
            return _FAILED_MS
        if self.listener is not None:
            path, address = self._directory.path, self.listener.address
            _log.info("this process is the next owner of %s and listens on %s", path, address)
        return None

    def stop_watching(self) -> None:
        """End the thread; a second call does nothing."""
        self._is_closed = True
        self._thread.close()

    def close(self) -> None:
        """Close the cluster if this process is the owner, so that another process becomes it."""
        self.stop_watching()
        if self.cluster is not None:
            as_caller(self.cluster.close)


def _listen(cluster: Cluster, path: str) -> BrokerListener | ClusterListener:
    """Listen at the directory's port, or at another if that is taken."""
    if cluster.config.is_set("listeners"):
        return cluster.listen()
    for port in ports(cluster.cluster_id, path):
        try:
            return cluster.listen(LOOPBACK, port)
        except OSError as error:
            if error.errno != EADDRINUSE or not port:
                raise
            _log.info("port %d of %s is taken", port, path)
    raise AssertionError("the last port is 0")
