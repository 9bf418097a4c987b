"""A member of a share group in a process of its own, which works until it is killed or closed.

Its output is a journal, one event a line, with the time in milliseconds:

    got TIME PARTITION OFFSET DELIVERIES VALUE     a record was delivered
    try TIME PARTITION OFFSET TYPE                 it is about to be acknowledged
    did TIME PARTITION OFFSET TYPE                 the broker has taken the acknowledgement
    failed TIME PARTITION OFFSET TYPE ERROR        it has not, or the client does not know

`python -m tests.interop.share.worker ASKED` is such a program with confluent-kafka.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import AcknowledgeType, Message, ShareConsumer, TopicPartition

from tests.interop.java_tools import CLASSES, java
from tests.support.tools import need_franz_go

CLIENTS = ("confluent", "franz-go", "java")
CLOSE_SECONDS_MAX = 30


@dataclass(frozen=True, slots=True)
class Asked:
    """The argument of a worker, as JSON."""

    address: str
    topic: str
    group: str
    seed: int = 0
    obeys: bool = False
    records_max: int = 20
    is_strict: bool = False
    reject_every: int = 25
    """Records with a multiple of this number are rejected; the Java tool accepts them."""


class Event(NamedTuple):
    """One line of a journal."""

    kind: str
    time: int
    partition: int
    offset: int
    rest: str


class Worker:
    """A running worker, and its journal."""

    def __init__(self, name: str, client: str, asked: Asked, folder: Path) -> None:
        self.name = name
        self.client = client
        self._journal = folder / f"{name}.out"
        self._errors = folder / f"{name}.err"
        command = _command(client, asked, folder / f"{name}.properties")
        with self._journal.open("wb") as out, self._errors.open("wb") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err)

    def events(self) -> list[Event]:
        """Return the events so far."""
        text = self._journal.read_text(errors="replace")
        lines = text[: text.rfind("\n") + 1].splitlines()
        if self.client == "java":
            return [event for line in lines for event in _java_events(json.loads(line))]
        found = []
        for line in lines:
            kind, *words = line.split(" ", 4)
            if kind in ("got", "try", "did", "failed"):
                when, partition, offset, rest = words
                found.append(Event(kind, int(when), int(partition), int(offset), rest))
        return found

    def said(self) -> str:
        """Return its errors, for the message of a failed test."""
        errors = [line for line in self._journal.read_text().splitlines() if "error" in line]
        return self._errors.read_text(errors="replace")[-2000:] + "\n".join(errors[-5:])

    def kill(self) -> None:
        """Send SIGKILL."""
        self.process.kill()
        self.process.communicate()

    def close(self) -> None:
        """Let it leave the group, and wait for its end."""
        if self.client == "java":
            self.process.terminate()
        self.process.communicate(timeout=CLOSE_SECONDS_MAX)


def _java_events(found: dict) -> list[Event]:  # type: ignore[type-arg]
    if found["name"] == "record_data":
        place = found["partition"], found["offset"]
        return [
            Event("got", found["timestamp"], *place, f"0 {found['value']}"),
            Event("try", found["timestamp"], *place, "accept"),
        ]
    if found["name"] == "offsets_acknowledged":
        kind = "did" if found["success"] else "failed"
        return [
            Event(kind, found["timestamp"], partition["partition"], offset, "accept")
            for partition in found["partitions"]
            for offset in partition["offsets"]
        ]
    return []


def _command(client: str, asked: Asked, properties: Path) -> list[str]:
    if client == "confluent":
        return [sys.executable, "-m", __name__, json.dumps(asdict(asked))]
    if client == "franz-go":
        return [need_franz_go("share"), json.dumps(asdict(asked))]
    properties.write_text(f"max.poll.records={asked.records_max}\n")
    return [*java(), CLASSES["verifiable-share-consumer"], "--bootstrap-server", asked.address,
            "--topic", asked.topic, "--group-id", asked.group, "--verbose",
            "--acknowledgement-mode", "sync",
            "--command-config", os.fspath(properties)]  # fmt: skip


def _say(kind: str, message: Message, rest: object) -> None:
    now = time.time_ns() // 1_000_000
    print(kind, now, message.partition(), message.offset(), rest, flush=True)


def main() -> None:
    """Work with confluent-kafka until standard input ends."""
    asked = Asked(**json.loads(sys.argv[1]))
    chance = random.Random(asked.seed)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    consumer = ShareConsumer(
        {
            "bootstrap.servers": asked.address,
            "group.id": asked.group,
            "share.acknowledgement.mode": "explicit",
            "max.poll.records": asked.records_max,
            "topic.metadata.refresh.interval.ms": 1000,
            "reconnect.backoff.max.ms": 500,
        }
    )
    consumer.subscribe([asked.topic])
    while not ended.is_set():
        messages = []
        for each in consumer.poll(0.5):
            if each.error() is None:
                messages.append(each)
                _say("got", each, f"{each.delivery_count()} {(each.value() or b'').decode()}")
            else:
                print("error", each.error(), flush=True)
        if not messages:
            continue
        time.sleep(chance.uniform(0, 0.06))
        types = {}
        for each in messages:
            number = int(each.value() or b"")
            kind = "accept" if chance.randrange(12) else "release"
            kind = kind if number % asked.reject_every else "reject"
            types[each.partition(), each.offset()] = kind
            _say("try", each, kind)
            consumer.acknowledge(each, AcknowledgeType[kind.upper()])
        done = consumer.commit_sync(60)
        for each in messages:
            kind = types[each.partition(), each.offset()]
            place = TopicPartition(asked.topic, each.partition())
            error = done.get(place, "unknown")
            _say("failed" if error else "did", each, f"{kind} {error}" if error else kind)
    consumer.close()


if __name__ == "__main__":
    main()
