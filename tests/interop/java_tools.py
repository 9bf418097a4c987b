"""Kafka's own command-line tools, each a JVM of its own."""

from __future__ import annotations

import subprocess

from tests.support.tools import need_jars

TOOLS = "org.apache.kafka.tools"
CLASSES = {
    "topics": f"{TOOLS}.TopicCommand",
    "console-producer": f"{TOOLS}.ConsoleProducer",
    "console-consumer": f"{TOOLS}.consumer.ConsoleConsumer",
    "configs": "kafka.admin.ConfigCommand",
    "consumer-groups": f"{TOOLS}.consumer.group.ConsumerGroupCommand",
    "groups": f"{TOOLS}.GroupsCommand",
    "get-offsets": f"{TOOLS}.GetOffsetShell",
    "delete-records": f"{TOOLS}.DeleteRecordsCommand",
    "log-dirs": f"{TOOLS}.LogDirsCommand",
    "broker-api-versions": f"{TOOLS}.BrokerApiVersionsCommand",
    "producer-perf": f"{TOOLS}.ProducerPerformance",
    "dump-log": f"{TOOLS}.DumpLogSegments",
    "features": f"{TOOLS}.FeatureCommand",
    "transactions": f"{TOOLS}.TransactionsCommand",
}
JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
SECONDS_MAX = 60


def run(tool: str, *arguments: str, data: str = "", check: bool = True) -> str:
    """Run a tool to its end; what it printed, both streams together."""
    done = subprocess.run(
        ["java", *JVM, "-cp", need_jars("tools"), CLASSES[tool], *arguments],
        input=data, text=True, timeout=SECONDS_MAX, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stdout
    return done.stdout
