"""`embedlog serve --control`: a cluster that calls of the control door may replace by another one.

`restore` and `reset` close the cluster and its addresses, and go on at the same addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embedlog.cluster.cluster import Cluster
from embedlog.cluster.handles.cluster_listener import ClusterListener
from embedlog.runtime import Runtime, real_runtime
from embedlog.runtime.os_files import OsFiles
from embedlog.runtime.pending import Pending
from embedlog.server.addresses import BrokerListener
from embedlog.testing.kafka import Kafka
from embedlog.testing.time.runtimes import kit_runtime


def runtime_of(clock: str, *, on_disk: bool) -> Runtime:
    """Return the runtime for a clock of the test kit: see `Shape.clock`."""
    return kit_runtime(clock, OsFiles() if on_disk else None)


class ControlledListener:
    """Waits for the end of the process, whichever cluster serves the addresses meanwhile."""

    def __init__(
        self, kafka: Kafka, opened: BrokerListener | ClusterListener, *, is_remote: bool
    ) -> None:
        """`opened` has the first addresses. `is_remote`: other machines may connect."""
        self.address = opened.address
        self.signal_fd = opened.signal_fd
        self._stopped: Pending[object] = Pending()
        host = self.address.partition(",")[0].rpartition(":")[0].strip("[]")

        def listen_again(cluster: Cluster, ports: Mapping[int, int]) -> Any:
            return cluster.listen(host, ports, allow_remote_plaintext=is_remote)

        kafka.listen_again = listen_again

    def run(self) -> None:
        """Wait until `stop`. Each broker's listener has its own thread."""
        real_runtime().scheduler.wait(self._stopped, None)

    def stop(self) -> None:
        """Make `run` return soon. Callable from any thread and from a signal handler."""
        self._stopped.complete(None)

    def close(self) -> None:
        """Do nothing: the cluster closes its addresses."""
