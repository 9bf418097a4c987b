"""Kafka's own command-line tools, each a JVM of its own."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence

from embedlog.cluster.cluster import Cluster
from tests.support.jvm import options
from tests.support.tools import need_jars

TOOLS = "org.apache.kafka.tools"
CLASSES = {
    "topics": f"{TOOLS}.TopicCommand",
    "console-producer": f"{TOOLS}.ConsoleProducer",
    "console-consumer": f"{TOOLS}.consumer.ConsoleConsumer",
    "configs": "kafka.admin.ConfigCommand",
    "consumer-groups": f"{TOOLS}.consumer.group.ConsumerGroupCommand",
    "groups": f"{TOOLS}.GroupsCommand",
    "share-groups": f"{TOOLS}.consumer.group.ShareGroupCommand",
    "console-share-consumer": f"{TOOLS}.consumer.ConsoleShareConsumer",
    "verifiable-share-consumer": f"{TOOLS}.VerifiableShareConsumer",
    "get-offsets": f"{TOOLS}.GetOffsetShell",
    "delete-records": f"{TOOLS}.DeleteRecordsCommand",
    "log-dirs": f"{TOOLS}.LogDirsCommand",
    "broker-api-versions": f"{TOOLS}.BrokerApiVersionsCommand",
    "producer-perf": f"{TOOLS}.ProducerPerformance",
    "dump-log": f"{TOOLS}.DumpLogSegments",
    "features": f"{TOOLS}.FeatureCommand",
    "transactions": f"{TOOLS}.TransactionsCommand",
    "reassign-partitions": f"{TOOLS}.reassign.ReassignPartitionsCommand",
    "leader-election": f"{TOOLS}.LeaderElectionCommand",
    "metadata-quorum": f"{TOOLS}.MetadataQuorumCommand",
    "replica-verification": f"{TOOLS}.ReplicaVerificationTool",
}
SECONDS_MAX = 60


def bootstrap(cluster: Cluster) -> tuple[str, str]:
    """Return the options that give a tool the addresses of a cluster."""
    return "--bootstrap-server", ",".join(filter(None, (e.address for e in cluster.brokers)))


def run(tool: str, *arguments: str, data: str = "", check: bool = True) -> str:
    """Run a tool to its end; return standard output and standard error together."""
    done = subprocess.run(
        _command(tool, arguments),
        input=data, text=True, timeout=SECONDS_MAX, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stdout
    return done.stdout


def run_until(wanted: str, tool: str, *arguments: str) -> bool:
    """Run an endless tool until it prints a line with `wanted`; return whether it did."""
    with subprocess.Popen(
        _command(tool, arguments), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as running:
        assert running.stdout is not None
        late = threading.Timer(SECONDS_MAX, running.kill)
        late.start()
        try:
            return any(wanted in line for line in running.stdout)
        finally:
            late.cancel()
            running.kill()


def _command(tool: str, arguments: Sequence[str]) -> list[str]:
    return [*java(), CLASSES[tool], *arguments]


def java() -> list[str]:
    """Return the beginning of a command that runs one of Kafka's classes."""
    return ["java", "-Xmx256m", *options("tools"), "-cp", need_jars("tools")]
