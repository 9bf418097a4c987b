"""`KafkaContainer`: the class of testcontainers over a cluster of this process.

    from embedlog.testing import KafkaContainer        # was: from testcontainers.kafka import ...

    with KafkaContainer() as kafka:
        my_service(kafka.get_bootstrap_server())

Nothing else of the test changes. A start takes milliseconds, and no Docker is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from embedlog.config.definitions import BROKER
from embedlog.errors import ConfigError, IllegalState
from embedlog.testing.kafka import Kafka

_PREFIX = "KAFKA_"
_NOT_SETTINGS = (
    "advertised.",
    "control.plane.",
    "controller.",
    "inter.broker.listener.name",
    "listener.",
    "listeners",
    "log.dir",
    "metadata.log.dir",
    "process.roles",
    "security.inter.broker.protocol",
    "zookeeper.",
)
"""Settings of a container's addresses, disks and other processes, which the cluster has not."""
_OF_THE_CLUSTER_ID = ("CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID")
_UNUSED = "Accepted, not used"
_STARTED = (
    "[KafkaServer id={node}] started (kafka.server.KafkaServer)\n"
    "[KafkaRaftServer nodeId={node}] Kafka Server started (kafka.server.KafkaRaftServer)\n"
)
"""The lines of a container's log that programs wait for, with and without ZooKeeper."""


class KafkaContainer:
    """Has the methods of `testcontainers.kafka.KafkaContainer`.

    The environment variables of Kafka's image become settings of the cluster. A `with_*` method
    without a meaning here (networks, ports, volumes, images) does nothing and returns the
    container. `kafka` is the cluster, with everything that the test kit can do.

    >>> with KafkaContainer().with_env("KAFKA_NUM_PARTITIONS", "3") as container:
    ...     container.kafka.create_topic("orders").partition_count
    3
    """

    def __init__(
        self, image: str = "confluentinc/cp-kafka:7.6.0", port: int = 9093, **_options: Any
    ) -> None:
        """Remember the image and the port; neither has an effect."""
        self.image = image
        self.port = port
        self.env: dict[str, str] = {}
        self._cluster_id: str | None = None
        self._kafka: Kafka | None = None

    kraft_enabled = True
    """There is never a ZooKeeper."""

    # Before the start

    def with_env(self, key: str, value: str) -> Self:
        """Set an environment variable of the image: KAFKA_NUM_PARTITIONS is num.partitions."""
        self.env[key] = str(value)
        return self

    def with_envs(self, **variables: str) -> Self:
        """Set several environment variables."""
        for key, value in variables.items():
            self.with_env(key, value)
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """Set the cluster's id."""
        self._cluster_id = cluster_id
        return self

    def with_kraft(self) -> Self:
        """Do nothing: the cluster has always a controller, and no ZooKeeper."""
        return self

    def __getattr__(self, name: str) -> Callable[..., Self]:
        if not name.startswith(("with_", "waiting_for", "maybe_")):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return lambda *_arguments, **_named: self

    # Life

    def start(self, timeout: float = 30) -> Self:
        """Start the cluster. It listens on return; `timeout` has no effect."""
        if self._kafka is None:
            self.configure()
            given = {name: self.env[name] for name in _OF_THE_CLUSTER_ID if name in self.env}
            cluster_id = self._cluster_id or next(iter(given.values()), None)
            self._kafka = Kafka(config=settings_of(self.env), cluster_id=cluster_id)
            _ = self._kafka.bootstrap_servers
        return self

    def configure(self) -> None:
        """Do nothing. A subclass may set variables here, as with testcontainers."""

    def tc_start(self) -> None:
        """Do nothing: there is no script to write."""

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Close the cluster. Idempotent."""
        kafka, self._kafka = self._kafka, None
        if kafka is not None:
            kafka.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    # After the start

    @property
    def kafka(self) -> Kafka:
        """The cluster, with the whole test kit.

        Raises:
            IllegalState: the container was not started.
        """
        if self._kafka is None:
            raise IllegalState("the container was not started: call start(), or use `with`")
        return self._kafka

    def get_bootstrap_server(self) -> str:
        """Return `host:port`."""
        return self.kafka.bootstrap_servers

    def get_container_host_ip(self) -> str:
        """Return the host of the address."""
        return self.get_bootstrap_server().rpartition(":")[0]

    def get_exposed_port(self, port: int) -> int:
        """Return the port of the address, for any port of the container."""
        return int(self.get_bootstrap_server().rpartition(":")[2])

    @property
    def status(self) -> str:
        """ "running" or "exited"."""
        return "exited" if self._kafka is None else "running"

    def reload(self) -> None:
        """Do nothing: `status` is always up to date."""

    def get_container_id(self) -> str:
        """Return the cluster's id."""
        return self.kafka.cluster.cluster_id

    def get_container_info(self) -> None:
        """Return None: there is no container to inspect."""

    def get_wrapped_container(self) -> Self:
        """Return this object, which also knows its `status`."""
        return self

    def get_logs(self) -> tuple[bytes, bytes]:
        """Return the lines that say that Kafka has started, for programs that wait for them.

        Everything else the cluster logs to the `logging` of this process.
        """
        if self._kafka is None:
            return b"", b""
        return _STARTED.format(node=self._kafka.brokers[0].node_id).encode(), b""

    def exec(self, command: str | list[str]) -> Any:
        """Raise ConfigError: there is no shell."""
        raise self._without(f"exec({command!r})")

    def wait(self) -> int:
        """Raise ConfigError: the cluster ends only with `stop`."""
        raise self._without("wait()")

    def get_docker_client(self) -> Any:
        """Raise ConfigError: there is no Docker."""
        raise self._without("get_docker_client()")

    def create_file(self, content: bytes, path: str) -> None:
        """Do nothing: there is no file system."""

    def copy_into_container(
        self, transferable: Any, destination_in_container: str, mode: int = 0o644
    ) -> None:
        """Do nothing: there is no file system."""

    def copy_from_container(self, source_in_container: str, destination_on_host: Any) -> None:
        """Raise ConfigError: there is no file to copy."""
        raise self._without(f"copy_from_container({source_in_container!r}, ...)")

    def _without(self, call: str) -> ConfigError:
        return ConfigError(
            f"{call} needs a container, and this cluster is in the process; use `kafka`, the "
            "cluster itself: container.kafka.create_topic(...), container.kafka.admin()"
        )


def settings_of(variables: Mapping[str, str]) -> dict[str, str]:
    """Return broker settings from the environment variables of Kafka's image.

    A single underscore stands for a dot, two for an underscore, and three for a dash. Variables
    without an effect here are left out.

    >>> settings_of({"KAFKA_NUM_PARTITIONS": "3", "KAFKA_LISTENERS": "PLAINTEXT://:9092"})
    {'num.partitions': '3'}
    """
    found = {}
    for key, value in variables.items():
        if key.startswith(_PREFIX):
            name = setting_name(key.removeprefix(_PREFIX))
            if name == "broker.id" and value == "-1":
                continue  # of ZooKeeper's time: let the cluster choose
            if _has_effect(name):
                found[name] = value
    return found


def setting_name(variable: str) -> str:
    """Return the setting's name for the end of a variable's name, as Kafka's image does.

    >>> setting_name("LOG_RETENTION_MS"), setting_name("A__B___C")
    ('log.retention.ms', 'a_b-c')
    """
    parts = variable.lower().split("___")
    return "-".join(part.replace("__", "\0").replace("_", ".").replace("\0", "_") for part in parts)


def _has_effect(name: str) -> bool:
    if name.startswith(_NOT_SETTINGS) or BROKER.find(name) is None:
        return False
    return _UNUSED not in BROKER.documentation(name)
