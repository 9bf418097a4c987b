"""A real Apache Kafka broker: one KRaft node on loopback, started from Maven packages."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.support.jvm import options
from tests.support.kafka_format import format_data
from tests.support.tools import need_jars

PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{listeners}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}{listeners}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT{protocols}
log.dirs={directory}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""
START_SECONDS_MAX = 60


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def real_kafka(
    directory: Path,
    *,
    heap: str = "512m",
    settings: Mapping[str, str] | None = None,
    listeners: Mapping[str, tuple[str, int]] | None = None,
    scram_users: Mapping[str, str] | None = None,
    features: Mapping[str, int] | None = None,
    java: Sequence[str] | None = None,
    class_path: str | None = None,
) -> Iterator[str]:
    """Format `directory` if needed, run a broker in it, yield its address, and stop it at the end.

    `settings` override the default settings of the broker. `listeners` are additional ones on
    localhost, (security protocol, port) by name; `scram_users` passwords by user, for both SCRAMs;
    `features` the levels of features, by name, that are not the newest; `java` the options of the
    broker's JVM; `class_path` its classes with additional ones.
    """
    command = [f"-Xmx{heap}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    command += ["-cp", class_path or need_jars("broker")]
    port, controller = free_port(), free_port()
    properties = directory / "server.properties"
    more = (listeners or {}).items()
    text = PROPERTIES.format(
        port=port,
        controller=controller,
        directory=directory,
        listeners="".join(f",{name}://localhost:{at}" for name, (_, at) in more),
        protocols="".join(f",{name}:{protocol}" for name, (protocol, _) in more),
    )
    # Java takes the last value of a setting that occurs twice.
    text += "".join(f"{name}={value}\n" for name, value in (settings or {}).items())
    properties.write_text(text)
    storage = ["kafka.tools.StorageTool", "format", "--ignore-formatted"]
    storage += ["-t", "AAAAAAAAAAAAAAAAAAAAAQ"]
    for user, password in (scram_users or {}).items():
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            storage += ["--add-scram", f"{mechanism}=[name={user},password={password}]"]
    for feature, level in (features or {}).items():
        storage += ["--feature", f"{feature}={level}"]
    format_command = ["java", *options("broker"), *command, *storage, "-c", str(properties)]
    is_plain = not scram_users and not features
    format_data(
        directory / "data",
        lambda: subprocess.run(format_command, check=True, capture_output=True),
        kind=("alone", *(() if is_plain else storage)),
        node=1,
        settings=settings or (),
    )
    with (directory / "out.log").open("wb") as log:
        broker = subprocess.Popen(
            ["java", *(java or options("broker")), *command, "kafka.Kafka", str(properties)],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_until_it_listens(broker, port)
            yield f"127.0.0.1:{port}"
        finally:
            broker.terminate()
            broker.wait(30)


def _wait_until_it_listens(broker: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline:
        if broker.poll() is not None:
            raise RuntimeError(f"the broker ended with status {broker.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"the broker did not listen on port {port} in {START_SECONDS_MAX} s")
