"""`Ownership`: opens a shared directory and listens, or waits until this process can do so.

A process that is not the owner tries the directory's lock every 50 ms, which costs 40 us. The
system releases the lock when the owner ends, however it ends.
"""

from __future__ import annotations

from _weakref import ref
from errno import EACCES, EADDRINUSE, EPERM, EROFS

from embedlog.cluster.processes.shared_directory import LOOPBACK, ports
from embedlog.errors import DirectoryLocked, EmbedlogError
from embedlog.runtime.at_exit import CLUSTERS
from embedlog.runtime.outer_call import as_caller
from embedlog.runtime.pending import Pending
from embedlog.storage.events import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.cluster.cluster import Cluster
    from embedlog.cluster.handles.cluster_listener import ClusterListener
    from embedlog.cluster.processes.shared_directory import SharedDirectory
    from embedlog.runtime import Runtime
    from embedlog.server.addresses import BrokerListener

_FORBIDDEN = (EACCES, EPERM, EROFS)
_START_MS = 20
_LOOK_MS = 50
_FAILED_MS = 1_000


class Ownership:
    """The directory's cluster, as long as this process is its owner."""

    def __init__(
        self, runtime: Runtime, directory: SharedDirectory, open_cluster: Callable[[], Cluster]
    ) -> None:
        self._runtime = runtime
        self._directory = directory
        self._open_cluster = open_cluster
        self._thread = runtime.scheduler.duty_thread(self, "embedlog-next-owner")
        self._is_closed = False
        self._forget: Callable[[], None] = _nothing
        self.cluster: Cluster | None = None
        """The open cluster; None while another process is the owner."""
        self.listener: BrokerListener | ClusterListener | None = None

    def begin(self, is_answered: Callable[[], bool], timeout_ms: int) -> None:
        """Become the owner; or, once `is_answered` by the owner, become the next one in its time.

        A process that may not write in the directory never becomes the owner.

        Raises:
            DirectoryLocked: another process is the owner, and did not answer in time.
            ConfigError, CorruptRecord, OSError: see `embedlog.open`.
        """
        clock = self._runtime.clock
        deadline_ms = clock.monotonic_ms() + timeout_ms
        while True:
            may_own = True
            try:
                self.take()
                return
            except DirectoryLocked as error:
                refusal: Exception = error
            except OSError as error:
                if error.errno not in _FORBIDDEN:
                    raise
                refusal, may_own = error, False
            if is_answered():
                if may_own:
                    self._watch()
                return
            has_owner = may_own or self._directory.addresses()
            if not has_owner or clock.monotonic_ms() >= deadline_ms:
                raise refusal
            self._runtime.scheduler.wait(Pending(), _START_MS)

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

    def _watch(self) -> None:
        reference = ref(self)

        def end() -> None:
            ownership = reference()
            if ownership is not None:
                ownership.stop_watching()

        self._forget = self._runtime.scheduler.at_exit(end, CLUSTERS)
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
            events.error("%s has no owner and cannot be opened: %s", self._directory.path, error)
            return _FAILED_MS
        assert self.listener is not None, self._directory.path
        path, address = self._directory.path, self.listener.address
        events.info("this process is the next owner of %s and listens on %s", path, address)
        self._thread.close()  # it would keep this object, and so the cluster, for a while
        return None

    def stop_watching(self) -> None:
        """End the thread; a second call does nothing."""
        self._is_closed = True
        self._forget()
        self._thread.close()

    def close(self) -> None:
        """Close the cluster if this process is the owner, so that another process becomes it."""
        self.stop_watching()
        if self.cluster is not None:
            as_caller(self.cluster.close)


def _nothing() -> None:
    """Stand for a registration that was not made."""


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
            events.info("port %d of %s is taken", port, path)
    raise AssertionError("the last port is 0")
