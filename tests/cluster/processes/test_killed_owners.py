"""Processes that share a directory are killed, the owner first of all; the others go on."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import embedlog
from tests.cluster.processes.roles import (
    TOPIC,
    Work,
    administering,
    consuming,
    idling,
    opened,
    producing,
)
from tests.crash.child import Child, Gate, Say
from tests.support.sizes import size

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WAIT_S = 60.0
SEEDS = range(size(3, full=40))
KILLS = 6
NOBODY = 65_534


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "data")


def owner_pid(path: str) -> int:
    """Return the pid in the lock file, 0 for none."""
    words = Path(path, ".lock").read_text().split()
    return int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0


class Cast:
    """The processes of a story by role, and the lines that each has said."""

    def __init__(self) -> None:
        self.running: dict[str, Child] = {}
        self.lines: dict[str, list[bytes]] = {}

    def start(self, role: str, work: Work) -> None:
        """Start a process in a role that no process has."""
        self.running[role] = Child(work)

    def kill(self, role: str) -> None:
        """Kill a process, and take its last lines."""
        child = self.running.pop(role)
        child.kill()
        self._take(role, child.rest())
        child.close()

    def listen(self, until: Callable[[], bool]) -> None:
        """Take the lines of all processes until a condition holds. No process may end."""
        deadline = time.monotonic() + WAIT_S
        while not until():
            assert time.monotonic() < deadline, {role: len(self.of(role)) for role in self.lines}
            for role, child in self.running.items():
                self._take(role, child.read(0.002))
                assert not child.is_ended, f"{role} ended {child.end()}"

    def listen_for(self, seconds: float) -> None:
        """Take lines for a while."""
        end = time.monotonic() + seconds
        self.listen(lambda: time.monotonic() >= end)

    def goes_on(self, role: str) -> Callable[[], bool]:
        """Return a function that returns whether the role has said something since this call."""
        count = len(self.of(role))
        return lambda: len(self.of(role)) > count

    def of(self, role: str) -> list[bytes]:
        """Return the lines of a role, of all its processes."""
        return self.lines.setdefault(role, [])

    def _take(self, role: str, lines: list[bytes]) -> None:
        self.of(role).extend(line for line in lines if line != b"ready")

    def close(self) -> None:
        """Kill everybody."""
        for child in self.running.values():
            child.close()


@contextmanager
def cast() -> Iterator[Cast]:
    """Return an empty cast; kill it at the end."""
    made = Cast()
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_clients_go_on_when_owners_are_killed(path: str, seed: int) -> None:
    chance = random.Random(seed)
    with embedlog.open(path, durability="os") as made:
        made.create_topic(TOPIC, 1)
    roles = {
        "idler": lambda: idling(path),
        "producer": lambda: producing(path, len(players.of("producer"))),
        "classic consumer": lambda: consuming(path, "classic"),
        "modern consumer": lambda: consuming(path, "consumer"),
        "admin": lambda: administering(path),
    }
    with cast() as players:
        for role, work in roles.items():
            players.start(role, work())
        for _ in range(KILLS):
            players.listen_for(chance.random())
            pid = owner_pid(path)
            role = next((each for each, one in players.running.items() if one.pid == pid), "idler")
            players.kill(role)
            players.start(role, roles[role]())
            going = [players.goes_on(each) for each in players.running if each != "idler"]
            players.listen(lambda going=going: all(each() for each in going))  # type: ignore[misc]
        players.kill("producer")
        sent = [int(line.split()[1]) for line in players.of("producer")]
        players.listen(lambda: _last_number(_read(players, "classic consumer")) >= sent[-1])
        assert sent == list(range(len(sent)))
        numbers = _numbers(_read(players, "classic consumer"))
    _check_numbers(numbers, len(sent))
    with embedlog.open_reader(path) as reader:
        records = list(reader.partition(TOPIC, 0).records())
    _check_numbers([int(bytes(record.value)) for record in records], len(sent))


def _read(players: Cast, role: str) -> list[bytes]:
    return [line for line in players.of(role) if line.startswith(b"read")]


def _last_number(lines: list[bytes]) -> int:
    return int(lines[-1].split()[2]) if lines else -1


def _numbers(lines: list[bytes]) -> list[int]:
    """Return the numbers in order of their offsets; a record may be read again after a change."""
    found = {int(line.split()[1]): int(line.split()[2]) for line in lines}
    return [found[offset] for offset in sorted(found)]


def _check_numbers(numbers: list[int], count: int) -> None:
    """Check that all `count` numbers are there in order.

    A killed producer may have sent a number without learning of its acknowledgement. Its successor
    sends this number again. There are no other duplicates.
    """
    assert sorted(set(numbers))[:count] == list(range(count))
    assert numbers == sorted(numbers)
    assert len(numbers) <= count + KILLS + 1


def _reporting(path: str, gate: Gate | None = None) -> Work:
    """Open, make a topic, say whether this process is the owner, and stay."""

    def work(say: Say) -> None:
        with opened(path) as cluster:
            with suppress(embedlog.errors.TopicAlreadyExists):  # the owner died before its answer
                cluster.create_topic(f"of-{os.getpid()}", 1)
            say(b"owner" if cluster.is_owner else b"guest")
            while True:
                time.sleep(60)

    return work


@pytest.mark.parametrize("seed", SEEDS)
def test_of_processes_that_start_together_one_is_the_owner(path: str, seed: int) -> None:
    gate = Gate()
    children = [Child(_reporting(path), gate=gate) for _ in range(4)]
    try:
        gate.open()
        said = [child.line() for child in children]
        assert sorted(said) == [b"guest"] * 3 + [b"owner"], said
        with opened(path) as cluster:
            assert cluster.topics == sorted(f"of-{child.pid}" for child in children)
    finally:
        for child in children:
            child.close()


@pytest.mark.parametrize("seed", range(size(10, full=200)))
def test_an_owner_that_is_killed_while_it_opens_holds_nobody_up(path: str, seed: int) -> None:
    chance = random.Random(seed)
    if chance.random() < 0.5:
        with embedlog.open(path, durability="os") as made:
            made.create_topic(TOPIC, 1)
    gate = Gate()
    children = [Child(_reporting(path), gate=gate) for _ in range(3)]
    try:
        gate.open()
        deadline = time.monotonic() + chance.random() * 0.08
        pid = 0
        while time.monotonic() < deadline or pid not in [child.pid for child in children]:
            pid = owner_pid(path) if Path(path, ".lock").exists() else 0
        victim = next(child for child in children if child.pid == pid)
        victim.kill()
        others = [child for child in children if child is not victim]
        for child in others:
            assert child.line() in (b"owner", b"guest"), child.end(0)
        with opened(path) as cluster:
            assert {f"of-{child.pid}" for child in others} <= set(cluster.topics)
    finally:
        for child in children:
            child.close()


def test_a_forked_child_of_the_owner_holds_neither_the_directory_nor_the_port(path: str) -> None:
    def forking(say: Say) -> None:
        with opened(path) as cluster, cluster.producer() as producer:
            producer.send(TOPIC, b"a", partition=0).result()
            child = os.fork()
            if not child:
                for call in (lambda: cluster.topics, cluster.admin, producer.flush):
                    try:
                        call()
                    except embedlog.ClosedError:
                        continue
                    os._exit(1)
                cluster.close()
                say(b"child %d" % os.getpid())
            while True:
                time.sleep(60)

    owner = Child(forking)
    grandchild = 0
    try:
        grandchild = int(owner.line().split()[1])
        with opened(path) as cluster, cluster.producer() as producer:
            producer.send(TOPIC, b"b", partition=0).result(WAIT_S)
            address = cluster.address
            owner.kill()
            started = time.monotonic()
            producer.send(TOPIC, b"c", partition=0).result(WAIT_S)
            assert time.monotonic() - started < WAIT_S / 2
            assert cluster.is_owner
            assert cluster.address == address
    finally:
        owner.close()
        if grandchild:
            os.kill(grandchild, 9)


@pytest.mark.skipif(
    not hasattr(os, "seteuid") or os.geteuid() != 0, reason="only root can become another user"
)
def test_a_process_that_may_only_read_connects_and_never_owns(tmp_path: Path) -> None:
    for each in (tmp_path, *tmp_path.parents[:3]):
        each.chmod(0o755)
    path = str(tmp_path / "data")

    def reading(say: Say) -> None:
        os.seteuid(NOBODY)
        try:
            opened(path)
        except PermissionError:
            say(b"refused")
        with open(gate_path, "rb"):
            pass
        with opened(path) as cluster:
            say(b"owner" if cluster.is_owner else b"guest")
            with open(gate_path, "rb"):
                pass
            say(b"owner" if cluster.is_owner else b"guest")

    gate_path = str(tmp_path / "gate")
    os.mkfifo(gate_path, 0o666)
    Path(gate_path).chmod(0o666)
    embedlog.open(path, durability="os", embedlog_data_dir_mode="0755").close()
    child = Child(reading)
    try:
        assert child.line() == b"refused"
        with opened(path):
            with open(gate_path, "wb"):
                pass
            assert child.line() == b"guest"
        with open(gate_path, "wb"):
            pass
        assert child.line() == b"guest"
    finally:
        child.close()
