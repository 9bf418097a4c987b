"""Streams of every client over three brokers: what was acknowledged, read, and went wrong.

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
"""These producers are not idempotent: a record that is sent again may be there twice."""
BEGIN_S_MAX = 60
END_S_MAX = 90
READ_MS = 1_000

Read = dict[int, dict[int, int]]
"""Partition -> offset -> the number there."""


class Programs:
    """How each client's program is started; made once, as compiling takes a while."""

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
    """One running program, and the lines it has written."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as out, log.with_suffix(".err").open("wb") as err:
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=out, stderr=err
            )

    def lines(self, kind: str) -> list[list[str]]:
        """The words of the whole lines that begin so, without that word."""
        text = self._log.read_text(errors="replace")
        lines = text[: text.rfind("\n") + 1].splitlines()
        return [line.split()[1:] for line in lines if line.split()[0] == kind]

    def end(self) -> None:
        """Ask it to end; `wait` waits for that."""
        if self.process.stdin is not None:
            self.process.stdin.close()

    def wait(self) -> int:
        """Its status; -9 if it had to be killed."""
        try:
            return self.process.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            return -9

    def kill(self) -> None:
        """SIGKILL, if it runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Stream:
    """A client's topic, its producer and its member."""

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
        """What its user was told went wrong, and how its programs failed."""
        return [
            f"{self.name} {role}: {' '.join(words)}"
            for role, program in (("producer", self.producer), ("member", self.member))
            for words in program.lines("error")
        ]

    @property
    def acknowledged(self) -> list[tuple[int, int, int | None]]:
        """Number, partition, offset; None where the client was told only that it is there."""
        return [
            (int(number), int(partition), int(offset) if offset.isdecimal() else None)
            for number, partition, offset in self.producer.lines("acked")
        ]

    @property
    def seen(self) -> Read:
        """What its member has read."""
        found: Read = {partition: {} for partition in range(PARTITIONS)}
        for partition, offset, number in self.member.lines("read"):
            found[int(partition)][int(offset)] = int(number)
        return found

    @property
    def is_empty(self) -> bool:
        """Was nothing acknowledged?"""
        return not self.acknowledged

    def has_begun(self) -> bool:
        """Were records acknowledged and read?"""
        return bool(self.producer.lines("acked")) and bool(self.member.lines("read"))

    def finish(self) -> list[str]:
        """End the producer, let the member read what is there, end it; what was broken."""
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
        """End both at once."""
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
        """What is wrong with the log, after what was acknowledged."""
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
    """Is it there, or anywhere if nobody has told where?"""
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
    """Finish streams; what was broken."""
    return [text for stream in streams for text in stream.finish()]
