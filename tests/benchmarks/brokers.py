"""Brokers in processes of their own: embedlog, librdkafka's mock cluster, real Apache Kafka."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.machine import memory_folder
from tests.support.kafka import real_kafka
from tests.support.tools import TOOLS

PROCESSES: dict[str, int] = {}
"""The process of each broker in Python, by its address."""

MOCK = """
import sys
from confluent_kafka import Producer
producer = Producer({"test.mock.num.brokers": 1})
(broker,) = producer.list_topics(timeout=10).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def embedlog_broker(*options: str) -> Iterator[str]:
    """`embedlog serve` on a free port."""
    command = [sys.executable, "-m", "embedlog", "serve", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        address = ""
        for line in broker.stdout:
            words = [word for word in line.split() if ":" in word and word[-1].isdigit()]
            if words:
                address = words[0]
                break
        PROCESSES[address] = broker.pid
        try:
            yield address
        finally:
            broker.terminate()


@contextlib.contextmanager
def mock_broker() -> Iterator[str]:
    """librdkafka's mock cluster: written in C, in memory, keeps 5 MB a partition."""
    with subprocess.Popen(
        [sys.executable, "-c", MOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as broker:
        assert broker.stdout is not None
        address = broker.stdout.readline().strip()
        PROCESSES[address] = broker.pid
        try:
            yield address
        finally:
            broker.kill()


def processor_seconds(address: str) -> float:
    """Return the CPU seconds of the broker at `address`; Linux only."""
    fields = Path(f"/proc/{PROCESSES[address]}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


OURS = "embedlog"
OURS_IN_MEMORY = "embedlog, no files"
MOCK_NAME = "librdkafka mock (C)"
KAFKA = "Apache Kafka 4.4.0"


def names() -> list[str]:
    """Return the names of brokers that this machine can start."""
    found = [OURS, OURS_IN_MEMORY, MOCK_NAME]
    if (TOOLS / "broker" / ".complete").exists():
        found.append(KAFKA)
    else:
        print("no JVM with Kafka's broker: `python -m tests.support.tools broker`")
    return found


@contextlib.contextmanager
def broker(name: str) -> Iterator[str]:
    """Start a broker by name on a free port, and yield its address. Files are in memory if there is
    space.
    """
    if name in {MOCK_NAME, OURS_IN_MEMORY}:
        with mock_broker() if name == MOCK_NAME else embedlog_broker() as address:
            yield address
        return
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        if name == OURS:
            with embedlog_broker("--data", str(Path(folder) / "data")) as address:
                yield address
        else:
            with real_kafka(Path(folder), heap="1g") as address:
                yield address


@contextlib.contextmanager
def brokers() -> Iterator[dict[str, str]]:
    """Start all of them, and yield their addresses by name."""
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(broker(name)) for name in names()}
