"""Three brokers of this process as a target: connections without sockets, and simulated time."""

from __future__ import annotations

import time
from errno import ENOTDIR

from embedlog.cluster.cluster import Cluster
from embedlog.testing import SimFiles, sim_runtime
from tests.golden.simulated import LoopbackLink
from tests.golden.targets import Target
from tests.golden.three_brokers.clusters import RACKS, Kind


class SimulatedCluster:
    """Brokers in memory, in this thread, whose clock moves only during waits. Close it
    after use.
    """

    def __init__(self, kind: Kind) -> None:
        # The wall clock shows the present time, which answers are compared with.
        self._files = SimFiles()
        wall_ms = int(time.time() * 1000)
        self._runtime = sim_runtime(seed=1, wall_ms=wall_ms, files=self._files)
        first, *others = kind.directories or (None,)
        self._cluster = Cluster(
            first,
            config=kind.settings,
            brokers=len(RACKS),
            racks=RACKS,
            runtime=self._runtime,
            log_dirs=others,
        )

    def broker(self, node_id: int) -> Target:
        """Return one broker as a target."""
        return _Broker(self, node_id)

    def link(self, node_id: int) -> LoopbackLink:
        """Return a connection without a socket to one of the brokers."""
        return LoopbackLink(self._cluster, node_id)

    def let_pass(self, delay_ms: int) -> None:
        """Move the clock, and run due work."""
        self._runtime.scheduler.run_for(delay_ms)

    def stop(self, node_id: int) -> None:
        """Shut a broker down in an orderly way."""
        self._cluster.broker(node_id).stop()

    def kill(self, node_id: int) -> None:
        """End a broker at once."""
        self._cluster.broker(node_id).kill()

    def start(self, node_id: int) -> None:
        """Start a broker that was stopped or killed."""
        self._cluster.broker(node_id).start()

    def pause(self, node_id: int) -> None:
        """Suspend a broker."""
        self._cluster.broker(node_id).pause()

    def resume(self, node_id: int) -> None:
        """Resume a paused broker."""
        self._cluster.broker(node_id).resume()

    def take_away(self, node_id: int, directory: str) -> None:
        """Fail the disk of one of a broker's directories."""
        self._files.failing[f"{directory}/broker-{node_id}"] = ENOTDIR

    def give_back(self, node_id: int, directory: str) -> None:
        """Repair the disk."""
        del self._files.failing[f"{directory}/broker-{node_id}"]

    def close(self) -> None:
        self._cluster.close()


class _Broker:
    """One of the brokers, as the target of a `Run`."""

    is_patient = False

    def __init__(self, cluster: SimulatedCluster, node_id: int) -> None:
        self._cluster = cluster
        self._node_id = node_id

    def connect(self) -> LoopbackLink:
        """A connection without a socket."""
        return self._cluster.link(self._node_id)

    def let_pass(self, delay_ms: int) -> None:
        """Move the clock of all."""
        self._cluster.let_pass(delay_ms)
