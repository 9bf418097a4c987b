"""One story: all copiers run, SIGKILLs follow from a seed, and the final copies are checked."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import embedlog
from embedlog import NewTopic, OffsetSpec, TopicPartition
from tests.interop.chains.workers import WORKERS
from tests.support import jvm
from tests.support.kafka import free_port
from tests.support.tools import compiled_java, need_franz_go, need_kafkajs

HERE = Path(__file__).parent
SOURCE = "source"
COUNT = 2_000
KILLING_S = 12.0
PAUSES_S = (0.15, 0.9)
BROKER_SHARE = 0.25
STUCK_S = 25.0
"""A copier without progress for this time is killed and restarted, at most this often:"""
STUCK_MAX = 3
READ_MS = 5_000


SETTINGS = (
    "group.initial.rebalance.delay.ms=0",
    "group.min.session.timeout.ms=500",
    "group.consumer.min.session.timeout.ms=1000",
    "group.consumer.session.timeout.ms=1000",
    "group.consumer.min.heartbeat.interval.ms=200",
    "group.consumer.heartbeat.interval.ms=200",
)
"""A group notices a killed member after a second."""


class Story(NamedTuple):
    """The outcome of one story."""

    killed_brokers: int
    killed_copiers: int
    failed_copiers: int
    """Copiers that ended with an error, mostly because the broker was killed."""
    stuck_copiers: Counter[str]
    """Copiers that made no progress after the last kill, and were killed."""
    broken: list[str]


class Commands:
    """The command of each copier, made once because compiling takes a while."""

    def __init__(self, folder: Path) -> None:
        self.environment = need_kafkajs()
        java = compiled_java(HERE / "Copy.java", folder)
        self.copiers: dict[str, list[str]] = {
            name: [sys.executable, "-m", "tests.interop.chains.workers", name] for name in WORKERS
        }
        self.copiers["java"] = ["java", "-Xmx128m", *jvm.OPTIONS, "-cp", java, "Copy"]
        self.copiers["kafkajs"] = ["node", str(HERE / "copy.js")]
        self.copiers["franz-go"] = [need_franz_go("chains")]


class Program:
    """A program that is restarted until it ends with success."""

    def __init__(self, command: list[str], environment: dict[str, str] | None, log: Path) -> None:
        self._command = command
        self._environment = environment
        self._log = log
        self.failures = 0
        self.start()

    def start(self) -> None:
        """Start or restart it."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        """Send SIGKILL, and wait for its end."""
        self.process.kill()
        self.process.wait()

    @property
    def is_done(self) -> bool:
        """Return whether it has ended with success; restart it after a failure."""
        status = self.process.poll()
        if status:
            self.failures += 1
            time.sleep(0.05)
            self.start()
        return status == 0


def tell(seed: int, folder: Path, commands: Commands, names: Sequence[str] = ()) -> Story:
    """Play the story of `seed` with the copiers `names`, by default all."""
    chance = random.Random(seed)
    address, broker = served(folder)
    copiers: dict[str, Program] = {}
    try:
        wanted = names or list(commands.copiers)
        fill(address, wanted)
        copiers = {
            name: Program(
                [*commands.copiers[name], address, SOURCE, name, str(COUNT)],
                commands.environment,
                folder / f"{name}.log",
            )
            for name in wanted
        }
        killed_brokers, killed_copiers = _kill(chance, broker, copiers)
        broken, stuck = wait_for(address, copiers)
        failed = sum(copier.failures for copier in copiers.values())
        broken += [text for name in wanted for text in check(address, name)]
        return Story(killed_brokers, killed_copiers, failed, stuck, broken)
    finally:
        for program in (*copiers.values(), broker):
            program.kill()


def served(folder: Path) -> tuple[str, Program]:
    """Yield the address of a broker that may be killed, and the broker."""
    port = free_port()
    command = [sys.executable, "-m", "embedlog", "serve", "--data", str(folder / "data")]
    command += ["--port", str(port)]
    for setting in SETTINGS:
        command += ["--config", setting]
    return f"127.0.0.1:{port}", Program(command, None, folder / "broker.log")


def fill(address: str, names: Sequence[str], *, replicas: int = 1) -> None:
    """Create the topics of a story, and fill the source."""
    configs = {"min.insync.replicas": max(1, replicas - 1)}
    topics = [NewTopic(name, 1, replicas, configs=configs) for name in (SOURCE, *names)]
    with embedlog.Admin(address) as admin:
        admin.create_topics(topics).check()
    with embedlog.Producer(address) as producer:
        for number in range(COUNT):
            producer.send(SOURCE, b"%d" % number, partition=0)


def _kill(chance: random.Random, broker: Program, copiers: dict[str, Program]) -> tuple[int, int]:
    killed_brokers = killed_copiers = 0
    deadline = time.monotonic() + KILLING_S
    while time.monotonic() < deadline:
        time.sleep(chance.uniform(*PAUSES_S))
        running = [copier for copier in copiers.values() if not copier.is_done]
        if chance.random() < BROKER_SHARE:
            broker.kill()
            broker.start()
            killed_brokers += 1
        elif running:
            copier = chance.choice(running)
            copier.kill()
            copier.start()
            killed_copiers += 1
    return killed_brokers, killed_copiers


def wait_for(address: str, copiers: dict[str, Program]) -> tuple[list[str], Counter[str]]:
    """Wait for the ends without further kills. Return copiers that never end, and how often stuck
    ones were killed.
    """
    late, ends = dict(copiers), dict.fromkeys(copiers, -1)
    moved = dict.fromkeys(copiers, time.monotonic())
    kills: Counter[str] = Counter()
    broken = []
    with embedlog.Admin(address) as admin:
        while late := {name: copier for name, copier in late.items() if not copier.is_done}:
            places = {TopicPartition(name, 0): OffsetSpec.LATEST for name in late}
            for place, found in admin.list_offsets(places).items():
                name, now = place.topic, time.monotonic()
                if found is not None and found.offset != ends[name]:
                    ends[name], moved[name] = found.offset, now
                elif now > moved[name] + STUCK_S:
                    late[name].kill()
                    if kills[name] == STUCK_MAX:
                        broken.append(f"{name} does not end")
                        del late[name]
                        continue
                    late[name].start()
                    kills[name] += 1
                    moved[name] = now
            time.sleep(0.5)
    return broken, kills


def check(address: str, name: str) -> list[str]:
    """Check a copy, and the position that was committed with it; return the problems."""
    settings = {
        "isolation.level": "read_committed", "group.id": name, "enable.auto.commit": False
    }  # fmt: skip
    with embedlog.Consumer(address, settings) as consumer:
        consumer.assign([(name, 0)])
        consumer.seek_to_beginning()
        copied: list[bytes | None] = []
        while records := consumer.poll(READ_MS if len(copied) < COUNT else 500):
            copied += [record.value for record in records]
        (position,) = consumer.committed([(SOURCE, 0)]).values()
    wanted: list[bytes | None] = [b"%d" % number for number in range(COUNT)]
    broken = []
    if copied != wanted:
        doubled = len(copied) - len(set(copied))
        lost = len(set(wanted) - set(copied))
        broken.append(f"{name}: {lost} lost, {doubled} doubled of {len(copied)}")
    if position is None or position.offset != COUNT:
        broken.append(f"{name}: the position is {position}")
    return broken
