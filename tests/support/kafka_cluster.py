"""A real Apache Kafka cluster of three KRaft brokers on loopback; each can be stopped and started.

    with kafka_cluster(directory) as cluster:
        cluster.kill(2)
        cluster.start(2)

The nodes of `controllers` are the voters of the quorum: combined nodes, or dedicated controllers if
their ids are not 1, 2 or 3. Two of three brokers can be down at once only if the remaining nodes
hold the majority of the voters.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.support.jvm import options
from tests.support.kafka import free_port
from tests.support.kafka_format import format_data
from tests.support.tools import need_jars

BROKERS = (1, 2, 3)
RACKS = {1: "a", 2: "b", 3: "c"}
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60
_CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"

_COMMON = """node.id={node}
process.roles={roles}
controller.quorum.voters={voters}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
listeners={listeners}
log.dirs={directory}/data
"""
_BROKER = """advertised.listeners=PLAINTEXT://127.0.0.1:{port}
broker.rack={rack}
group.initial.rebalance.delay.ms=0
"""


class KafkaCluster:
    """The nodes of one cluster, by id. Close it after use."""

    def __init__(
        self,
        directory: Path,
        *,
        settings: Mapping[str, str] | None = None,
        controllers: Sequence[int] = BROKERS,
        heap: str = "384m",
    ) -> None:
        """Format a folder for each node, and start none. `settings` are for all nodes; "{folder}"
        in one stands for the folder of the node.
        """
        self._java = ["java", *options("broker"), f"-Xmx{heap}"]
        self._java += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", need_jars("broker")]
        self._directory = directory
        self._settings = dict(settings or {})
        self._controllers = tuple(controllers)
        self.nodes = tuple(dict.fromkeys((*self._controllers, *BROKERS)))
        """Node ids, dedicated controllers first."""
        self._ports = {node: free_port() for node in BROKERS}
        self._controller_ports = {node: free_port() for node in self._controllers}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for node in self.nodes:
            self._format(node)

    def address(self, node: int) -> str:
        """Return the address of a broker, which stays the same over restarts."""
        return f"127.0.0.1:{self._ports[node]}"

    @property
    def addresses(self) -> list[str]:
        """Return the addresses of all brokers."""
        return [self.address(node) for node in BROKERS]

    @property
    def bootstrap(self) -> str:
        """All addresses as a client's bootstrap servers."""
        return ",".join(self.addresses)

    def start_all(self) -> None:
        """Start every node, and return when all listen."""
        for node in self.nodes:
            self._launch(node)
        for node in self.nodes:
            self._wait_until_it_listens(node)

    def start(self, node: int) -> None:
        """Start a stopped node, and return when it listens."""
        self._launch(node)
        self._wait_until_it_listens(node)

    restart = start

    def stop(self, node: int) -> None:
        """Shut a node down in an orderly way: it hands its partitions over first."""
        process = self._processes.pop(node)
        process.terminate()
        process.wait(STOP_SECONDS_MAX)

    def kill(self, node: int) -> None:
        """End a node at once."""
        process = self._processes.pop(node)
        process.kill()
        process.wait()

    def pause(self, node: int) -> None:
        """Suspend the process of a node until `resume`."""
        self._processes[node].send_signal(signal.SIGSTOP)

    def resume(self, node: int) -> None:
        """Resume a paused node."""
        self._processes[node].send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End every node."""
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        self._processes.clear()

    def log_of(self, node: int) -> Path:
        """Return the output of a node over all its starts."""
        return self.folder(node) / "out.log"

    def folder(self, node: int) -> Path:
        """Return the folder of a node's files."""
        return self._directory / f"node-{node}"

    def _format(self, node: int) -> None:
        folder = self.folder(node)
        folder.mkdir(parents=True, exist_ok=True)
        roles, listeners, more = [], [], ""
        if node in self._ports:
            roles.append("broker")
            listeners.append(f"PLAINTEXT://127.0.0.1:{self._ports[node]}")
            more = _BROKER.format(port=self._ports[node], rack=RACKS[node])
        if node in self._controller_ports:
            roles.append("controller")
            listeners.append(f"CONTROLLER://127.0.0.1:{self._controller_ports[node]}")
        voters = (f"{voter}@127.0.0.1:{port}" for voter, port in self._controller_ports.items())
        text = _COMMON.format(
            node=node,
            roles=",".join(roles),
            voters=",".join(voters),
            listeners=",".join(listeners),
            directory=folder,
        )
        # Java takes the last value of a setting that occurs twice.
        settings = {name: value.format(folder=folder) for name, value in self._settings.items()}
        text += more + "".join(f"{name}={value}\n" for name, value in settings.items())
        (folder / "server.properties").write_text(text)
        command = [*self._java, "kafka.tools.StorageTool", "format", "--ignore-formatted"]
        command += ["-t", _CLUSTER_ID, "-c", str(folder / "server.properties")]
        format_data(
            folder / "data",
            lambda: subprocess.run(command, check=True, capture_output=True),
            kind=(_CLUSTER_ID, *roles),
            node=node,
            settings=self._settings,
        )

    def _launch(self, node: int) -> None:
        assert node not in self._processes, f"node {node} runs"
        properties = self.folder(node) / "server.properties"
        with self.log_of(node).open("ab") as log:
            self._processes[node] = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(properties)], stdout=log, stderr=subprocess.STDOUT
            )

    def _wait_until_it_listens(self, node: int) -> None:
        port = self._ports.get(node) or self._controller_ports[node]
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            status = self._processes[node].poll()
            if status is not None:
                raise RuntimeError(f"node {node} ended with status {status}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.1)
        raise RuntimeError(f"node {node} did not listen in {START_SECONDS_MAX} s")


@contextlib.contextmanager
def kafka_cluster(
    directory: Path,
    *,
    settings: Mapping[str, str] | None = None,
    controllers: Sequence[int] = BROKERS,
    heap: str = "384m",
) -> Iterator[KafkaCluster]:
    """Run a cluster, and end its nodes after the block."""
    cluster = KafkaCluster(directory, settings=settings, controllers=controllers, heap=heap)
    try:
        cluster.start_all()
        yield cluster
    finally:
        cluster.close()
