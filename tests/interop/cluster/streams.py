"""Streams of every client over three brokers: acknowledged records, read records, and errors.

Each client has a topic of its own, a producer and a group of one member, in processes of their own
(`streamers.py`, `Stream.java`, `stream.js`, `franz/`).
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import embedlog
from embedlog import Cluster, NewTopic
from tests.interop.cluster.streamers import PARTITIONS, STREAMERS
from tests.support import jvm
from tests.support.tools import compiled_java, need_franz_go, need_kafkajs

HERE = Path(__file__).parent
REPEATS = {"aiokafka", "kafkajs"}
"""These producers are not idempotent: a retried record may be stored twice."""
BEGIN_S_MAX = 60
END_S_MAX = 90
READ_MS = 1_000

Read = dict[int, dict[int, int]]
"""Partition -> offset -> the number in that record."""


class Programs:
    """The command of each client's program, made once because compiling takes a while."""

    def __init__(self, folder: Path) -> None:
        self.environment = need_kafkajs()
        java = compiled_java(HERE / "Stream.java", folder)
        self.commands: dict[str, list[str]] = {
            name: [sys.executable, "-m", "tests.interop.cluster.streamers", name]
            for name in STREAMERS
        }
        self.commands["java"] = ["java", "-Xmx128m", *jvm.OPTIONS, "-cp", java, "Stream"]
        self.commands["kafkajs"] = ["node", str(HERE / "stream.js")]
        self.commands["franz-go"] = [need_franz_go("cluster")]


class Streamer:
    """One running program, and its output lines."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as out, log.with_suffix(".err").open("wb") as err:
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=out, stderr=err
            )

    def lines(self, kind: str) -> list[list[str]]:
        """Return the whole lines that begin with this word, split, without the word."""
        text = self._log.read_text(errors="replace")
        lines = text[: text.rfind("\n") + 1].splitlines()
        return [line.split()[1:] for line in lines if line.split()[0] == kind]

    def end(self) -> None:
        """Ask the program to end; `wait` waits for that."""
        if self.process.stdin is not None:
            self.process.stdin.close()

    def wait(self) -> int:
        """Return the exit status; -9 if it had to be killed."""
        try:
            return self.process.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            return -9

    def kill(self) -> None:
        """Send SIGKILL, if it runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Stream:
    """A client's topic, its producer and its group member."""

    def __init__(self, name: str, address: str, programs: Programs, folder: Path) -> None:
        self.name = name
        self.topic = f"stream-{name}"
        self._address = address
        self.producer, self.member = (
            Streamer(
                [*programs.commands[name], role, address, self.topic],
                programs.environment,
                folder / f"{self.topic}-{role}.log",
            )
            for role in ("produce", "consume")
        )

    @property
    def errors(self) -> list[str]:
        """Return the errors that reached the user, and failures of the programs."""
        return [
            f"{self.name} {role}: {' '.join(words)}"
            for role, program in (("producer", self.producer), ("member", self.member))
            for words in program.lines("error")
        ]

    @property
    def acknowledged(self) -> list[tuple[int, int, int | None]]:
        """Return (number, partition, offset); None for an offset that the client does
        not report.
        """
        return [
            (int(number), int(partition), int(offset) if offset.isdecimal() else None)
            for number, partition, offset in self.producer.lines("acked")
        ]

    @property
    def seen(self) -> Read:
        """Return the records that the member has read."""
        found: Read = {partition: {} for partition in range(PARTITIONS)}
        for partition, offset, number in self.member.lines("read"):
            found[int(partition)][int(offset)] = int(number)
        return found

    @property
    def is_empty(self) -> bool:
        """Return whether no record was acknowledged."""
        return not self.acknowledged

    def has_begun(self) -> bool:
        """Return whether records were acknowledged and read."""
        return bool(self.producer.lines("acked")) and bool(self.member.lines("read"))

    def finish(self) -> list[str]:
        """End the producer, let the member read everything, end it, and return the problems."""
        self.producer.end()
        status = self.producer.wait()
        broken = [f"{self.name}: the producer ended with {status}"] if status else []
        log = self._log()
        deadline = time.monotonic() + END_S_MAX
        while self.seen != log and time.monotonic() < deadline:
            time.sleep(0.1)
        seen = self.seen
        self.member.end()
        status = self.member.wait()
        broken += [f"{self.name}: the member ended with {status}"] if status else []
        if seen != log:
            missed = sum(len(log[each].keys() - seen[each].keys()) for each in log)
            broken.append(f"{self.name}: the group missed {missed} records, or read others")
        return broken + self._check(log)

    def kill(self) -> None:
        """Kill both programs."""
        self.producer.kill()
        self.member.kill()

    def _log(self) -> Read:
        found: Read = {partition: {} for partition in range(PARTITIONS)}
        with embedlog.Consumer(self._address, {"isolation.level": "read_committed"}) as reader:
            places = [embedlog.TopicPartition(self.topic, each) for each in found]
            reader.assign(places)
            ends = reader.end_offsets(places)
            reader.seek_to_beginning()
            deadline = time.monotonic() + END_S_MAX
            while time.monotonic() < deadline and any(
                reader.position(place) < ends[place] for place in places
            ):
                for record in reader.poll(READ_MS):
                    found[record.partition][record.offset] = int(record.value or b"-1")
        return found

    def _check(self, log: Read) -> list[str]:
        """Check the log against the acknowledgements; return the problems."""
        broken = []
        acknowledged = self.acknowledged
        lost = [
            number
            for number, partition, offset in acknowledged
            if not _has(log[partition], number, offset)
        ]
        if lost:
            broken.append(f"{self.name}: {len(lost)} of {len(acknowledged)} lost: {lost[:5]}")
        if self.name not in REPEATS:
            for partition, records in log.items():
                numbers = [records[offset] for offset in sorted(records)]
                if numbers != list(range(partition, partition + 3 * len(numbers), 3)):
                    broken.append(f"{self.name}: partition {partition} is out of order")
        return broken


def _has(records: dict[int, int], number: int, offset: int | None) -> bool:
    """Return whether the log has the record, anywhere if the offset is unknown."""
    return number in records.values() if offset is None else records.get(offset) == number


def begin(cluster: Cluster, names: Iterable[str], programs: Programs, folder: Path) -> list[Stream]:
    """Start streams, and wait until each has begun."""
    address = cluster.listen().address
    configs = {"min.insync.replicas": 2}
    with embedlog.Admin(address) as admin:
        topics = [NewTopic(f"stream-{name}", PARTITIONS, 3, configs=configs) for name in names]
        admin.create_topics(topics).check()
    streams = [Stream(name, address, programs, folder) for name in names]
    deadline = time.monotonic() + BEGIN_S_MAX
    while not all(stream.has_begun() for stream in streams) and time.monotonic() < deadline:
        time.sleep(0.1)
    return streams


def end(streams: Iterable[Stream]) -> list[str]:
    """Finish streams; return the problems."""
    return [text for stream in streams for text in stream.finish()]
