"""A group member in a process of its own, and the faults that tests inflict on it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.interop.groups.history import Event, Partition, VerifiableConsumerJournal, parse
from tests.interop.java_tools import java
from tests.support.tools import ROOT, need_kafkajs

WORKERS = Path(__file__).with_name("workers")
CLASSIC = ("confluent", "kafka_python", "aio_kafka", "kafkajs", "java", "embedlog_consumer")
CONSUMER = ("confluent", "java", "embedlog_consumer")
"""The clients that speak each protocol."""
CLOSE_SECONDS_MAX = 30


@dataclass(frozen=True, slots=True)
class Membership:
    """The membership of a member, in the words of `tests/interop/groups/journal.py`."""

    address: str
    group: str
    topics: tuple[str, ...]
    protocol: str = "classic"
    instance: str | None = None
    session_ms: int = 6000
    heartbeat_ms: int = 300


class Member:
    """A running member. `events` is the part of its history that was read."""

    def __init__(self, name: str, client: str, asked: Membership, folder: Path) -> None:
        self.name = name
        self.client = client
        self.asked = asked
        self.events: list[Event] = []
        self.is_alive = True
        """Whether it runs and can act: false once it was killed, frozen, fenced or closed."""
        self._journal = folder / f"{name}.jsonl"
        self._position = 0
        self._parse: Callable[[str], Iterable[Event]] = lambda line: [parse(name, line)]
        if client == "java":
            shift = (time.time() - time.monotonic()) * 1000
            self._parse = VerifiableConsumerJournal(name, wall_minus_monotonic_ms=shift).parse
        environment = need_kafkajs() if client == "kafkajs" else None
        errors = folder / f"{name}.err"
        with self._journal.open("wb") as out, errors.open("wb") as err:
            self._process = subprocess.Popen(
                _command(client, asked, folder / f"{name}.properties"),
                stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=ROOT, env=environment,
            )  # fmt: skip
        self._errors = errors

    def read(self) -> list[Event]:
        """Read on in the journal, and return all events so far. A torn last line waits for its
        rest.
        """
        with self._journal.open("rb") as file:
            file.seek(self._position)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._position += len(whole)
        for line in whole.decode().splitlines():
            self.events += self._parse(line)
        if self.events and self.events[-1].kind in ("closed", "fenced"):
            self.is_alive = False
        return self.events

    def owned(self) -> set[Partition]:
        """Return its partitions by its own journal."""
        found: set[Partition] = set()
        for event in self.read():
            if event.kind == "assigned":
                found.update(event.partitions)
            elif event.kind in ("revoked", "lost"):
                found.difference_update(event.partitions)
            elif event.kind in ("killed", "fenced", "closed"):
                found.clear()
        return found

    def close(self) -> None:
        """Ask it to leave, and wait until it has left."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(CLOSE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.client} {self.name} does not close") from None
        self.is_alive = False
        self.read()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()
        self._process.wait()
        self.is_alive = False
        self.read()
        self._happened("killed")

    def freeze(self) -> None:
        """Send SIGSTOP: the group takes it for dead, and the member does not notice."""
        self._process.send_signal(signal.SIGSTOP)
        self.is_alive = False

    def thaw(self) -> None:
        """Send SIGCONT: it continues where it stopped."""
        self._process.send_signal(signal.SIGCONT)
        self.is_alive = True

    def is_running(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def said(self) -> str:
        """Return its standard error, for the message of a failed test."""
        return self._errors.read_text(errors="replace")[-2000:]

    def discard(self) -> None:
        """End the process at once; its history is not needed any more."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _happened(self, kind: str) -> None:
        self.events.append(Event(time.monotonic() * 1000, self.name, kind))

    def __repr__(self) -> str:
        return f"<{self.client} {self.name}{'' if self.is_alive else ', dead'}>"


def _command(client: str, asked: Membership, properties: Path) -> list[str]:
    if client == "kafkajs":
        return ["node", str(WORKERS / "kafkajs.js"), json.dumps(asdict(asked))]
    if client == "java":
        return _verifiable_consumer(asked, properties)
    module = f"tests.interop.groups.workers.{client}"
    return [sys.executable, "-m", module, json.dumps(asdict(asked))]


def _verifiable_consumer(asked: Membership, properties: Path) -> list[str]:
    (topic,) = asked.topics  # it reads only one topic
    lines = {
        "fetch.max.wait.ms": 100,
        "metadata.max.age.ms": 1000,
        "max.poll.interval.ms": 3 * asked.session_ms,
        "reconnect.backoff.max.ms": 500,
    }
    arguments = ["--bootstrap-server", asked.address, "--topic", topic, "--group-id", asked.group,
                 "--group-protocol", asked.protocol, "--reset-policy", "earliest",
                 "--command-config", os.fspath(properties)]  # fmt: skip
    if asked.instance:
        arguments += ["--group-instance-id", asked.instance]
    if asked.protocol == "classic":
        lines["heartbeat.interval.ms"] = asked.heartbeat_ms
        arguments += ["--session-timeout", str(asked.session_ms)]
    properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    tool = "org.apache.kafka.tools.VerifiableConsumer"
    return [*java(), tool, *arguments]
