"""Replicas move between the directories of their brokers, under load, and when brokers stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import embedlog
from embedlog import ConfigResource, TopicPartition, TopicPartitionReplica
from embedlog.broker.directory_keeper import MOVE_RATE
from embedlog.cluster.cluster import Cluster
from embedlog.errors import KafkaStorageError, ReplicaNotAvailable
from embedlog.testing import SimFiles, SimulatedCrash, sim_runtime
from tests.storage.logs import values

SECONDS_MAX = 60
TOPIC = {"segment.bytes": "1048576"}
SIZE = 1000
"""Size of a value."""
PLAIN_COUNT, TRANSACTIONAL_COUNT = 1000, 100
"""Records of each wave."""


def move(cluster: Cluster, topic: str, path: object, *, node_id: int = 1, index: int = 0) -> None:
    """Request the move of a replica."""
    with cluster.admin() as admin:
        replica = TopicPartitionReplica(topic, index, node_id)
        admin.alter_replica_log_dirs({replica: str(path)}).check()


def place(cluster: Cluster, topic: str, *, node_id: int = 1, index: int = 0) -> tuple[str, str]:
    """Return the directory of a replica, and the target of its move; "" for none."""
    replica = TopicPartitionReplica(topic, index, node_id)
    with cluster.admin() as admin:
        found = admin.describe_replica_log_dirs([replica])[replica]
    return found.path or "", found.future_path or ""


def until_there(cluster: Cluster, topic: str, path: object, *, node_id: int = 1) -> None:
    """Wait for the end of a move."""
    clock = cluster.runtime.clock
    end_ms = clock.monotonic_ms() + SECONDS_MAX * 1000
    while place(cluster, topic, node_id=node_id) != (str(path), ""):
        assert clock.monotonic_ms() < end_ms, (place(cluster, topic, node_id=node_id), path)


def slow(cluster: Cluster, rate: int | None) -> None:
    """Slow the moves of every broker down, or end this."""
    change = (1, None) if rate is None else (0, str(rate))
    with cluster.admin() as admin:
        admin.incremental_alter_configs({ConfigResource("broker", ""): {MOVE_RATE: change}}).check()


class Load:
    """Threads that write to a topic and read it; each `wave` lets them write some more records."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._is_over = False
        self._allowed = threading.Condition()
        self._waves = 0
        self.sent: dict[str, list[bytes]] = {"idempotent": [], "transactional": []}
        self.read: list[bytes] = []
        self._failures: list[BaseException] = []
        jobs = (self._write, self._write_transactions, self._read)
        self._threads = [threading.Thread(target=self._run, args=(job,)) for job in jobs]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._allowed:
            self._is_over = True
            self._allowed.notify_all()
        for thread in self._threads:
            thread.join(SECONDS_MAX)
            assert not thread.is_alive()
        assert not self._failures, self._failures

    @contextmanager
    def wave(self) -> Iterator[None]:
        """Let the threads write while the `with` block runs; at its end wait for all of the
        records.
        """
        with self._allowed:
            self._waves += 1
            self._allowed.notify_all()
        yield
        with self._allowed:
            assert self._allowed.wait_for(
                lambda: (
                    self._failures
                    or (
                        len(self.sent["idempotent"]) == self._waves * PLAIN_COUNT
                        and len(self.sent["transactional"]) == self._waves * TRANSACTIONAL_COUNT
                    )
                ),
                SECONDS_MAX,
            )

    def _goes_on(self, kind: str, count: int) -> bool:
        with self._allowed:
            self._allowed.notify_all()
            self._allowed.wait_for(
                lambda: self._is_over or len(self.sent[kind]) < self._waves * count
            )
            return len(self.sent[kind]) < self._waves * count

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            with self._allowed:
                self._failures.append(error)
                self._allowed.notify_all()

    def _write(self) -> None:
        sent = self.sent["idempotent"]
        with self._cluster.producer(acks="all", enable_idempotence=True, linger_ms=1) as producer:
            while self._goes_on("idempotent", PLAIN_COUNT):
                batch = [_value(b"i%d" % (len(sent) + number)) for number in range(20)]
                for future in [producer.send(self._topic, value) for value in batch]:
                    future.result()
                sent += batch

    def _write_transactions(self) -> None:
        sent = self.sent["transactional"]
        with self._cluster.producer(transactional_id="moved") as producer:
            producer.init_transactions()
            while self._goes_on("transactional", TRANSACTIONAL_COUNT):
                batch = [_value(b"t%d" % (len(sent) + number)) for number in range(10)]
                with producer.transaction():
                    for value in batch:
                        producer.send(self._topic, value)
                sent += batch
                with suppress(_Aborted), producer.transaction():
                    producer.send(self._topic, b"aborted")
                    raise _Aborted

    def _read(self) -> None:
        with self._cluster.consumer(
            isolation_level="read_committed", auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign([TopicPartition(self._topic, 0)])
            while True:
                is_over = self._is_over and not any(each.is_alive() for each in self._threads[:2])
                found = [record.value for record in consumer.poll(timeout_ms=100)]
                self.read += found
                if is_over and not found:
                    return

    def check(self) -> None:
        """Check that every acknowledged record was read once, in the order of the sends."""
        for kind, first in (("idempotent", b"i"), ("transactional", b"t")):
            assert [value for value in self.read if value.startswith(first)] == self.sent[kind]
        assert len(self.read) == sum(map(len, self.sent.values()))


class _Aborted(Exception):
    pass


def _value(name: bytes) -> bytes:
    return name.ljust(SIZE, b".")


@pytest.fixture(params=["os", "fsync"])
def alone(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    with embedlog.open(
        tmp_path / "a", log_dirs=[tmp_path / "b", tmp_path / "c"], durability=request.param
    ) as cluster:
        cluster.create_topic("t", 1, config=TOPIC)
        yield cluster


@pytest.mark.slow
def test_a_leader_moves_under_load(alone: Cluster, tmp_path: Path) -> None:
    with Load(alone, "t") as load:
        for name in "bcabca":
            with load.wave():
                move(alone, "t", tmp_path / name)
                until_there(alone, "t", tmp_path / name)
    load.check()
    assert alone.health() == []
    log = alone.broker().core.replica_manager.partition("t", 0).log
    found = values(log)
    assert len(log.segments) > 1
    alone.close()
    with embedlog.open(tmp_path / "a", log_dirs=[tmp_path / "b", tmp_path / "c"]) as again:
        assert place(again, "t") == (str(tmp_path / "a"), "")
        assert values(again.broker().core.replica_manager.partition("t", 0).log) == found


@pytest.mark.slow
def test_replicas_of_three_brokers_move_under_load(tmp_path: Path) -> None:
    disks = [tmp_path / "disk"]
    with embedlog.open(tmp_path / "brokers", brokers=3, log_dirs=disks) as cluster:
        cluster.create_topic("t", 1, replication_factor=3, config=TOPIC)
        here = [
            Path(cluster.broker(node).core.log_manager.first.directory.path) for node in (1, 2, 3)
        ]
        there = [disks[0] / path.name for path in here]
        with Load(cluster, "t") as load:
            for places in (there, here, there):
                with load.wave():
                    for node_id, path in enumerate(places, 1):
                        move(cluster, "t", path, node_id=node_id)
                    for node_id, path in enumerate(places, 1):
                        until_there(cluster, "t", path, node_id=node_id)
        load.check()
        clock = cluster.runtime.clock
        end_ms = clock.monotonic_ms() + SECONDS_MAX * 1000
        partition = cluster.partition("t", 0)
        while (
            len(set(partition.high_watermarks.values()) | set(partition.end_offsets.values())) > 1
        ):
            assert clock.monotonic_ms() < end_ms, partition
            place(cluster, "t")
        logs = [node.core.replica_manager.partition("t", 0).log for node in cluster.brokers]
        assert [log.directory for log in logs] == [str(path / "t-0") for path in there]
        assert values(logs[0]) == values(logs[1]) == values(logs[2])
        assert cluster.health() == []


# The end of a broker, and of a directory


def fill(cluster: Cluster, topic: str, count: int = 300) -> None:
    with cluster.producer(acks="all") as producer:
        for number in range(count):
            producer.send(topic, _value(b"%d" % number))


def begin(cluster: Cluster, topic: str, path: object, *, node_id: int = 1) -> None:
    """Begin a move, and copy a part of the log."""
    slow(cluster, 100_000)
    move(cluster, topic, path, node_id=node_id)
    relocations = cluster.broker(node_id).core.log_manager.relocations
    assert relocations is not None
    while not relocations.futures()[TopicPartition(topic, 0)].size:
        place(cluster, topic, node_id=node_id)
    assert place(cluster, topic, node_id=node_id)[1] == str(path)


def rows(cluster: Cluster, topic: str, node_id: int = 1) -> list[bytes | None]:
    return values(cluster.broker(node_id).core.replica_manager.partition(topic, 0).log)


def test_a_move_interrupted_by_a_close_continues(tmp_path: Path) -> None:
    here, there = tmp_path / "a", tmp_path / "b"
    with embedlog.open(here, log_dirs=[there]) as cluster:
        cluster.create_topic("t", 1)
        fill(cluster, "t")
        begin(cluster, "t", there)
        written = rows(cluster, "t")
    assert (here / "t-0").is_dir()
    assert [each.name.startswith("t-0.") for each in there.glob("t-0*")] == [True]
    with embedlog.open(here, log_dirs=[there]) as cluster:
        slow(cluster, None)
        until_there(cluster, "t", there)
        assert rows(cluster, "t") == written
    assert not list(here.glob("t-0*"))
    assert [each.name for each in there.glob("t-0*")] == ["t-0"]


def test_a_move_interrupted_by_a_kill_continues(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "brokers", brokers=3, log_dirs=[tmp_path / "disk"]) as cluster:
        cluster.create_topic("t", 1, replication_factor=3)
        fill(cluster, "t")
        leader = cluster.partition("t", 0).leader
        follower = next(each for each in (1, 2, 3) if each != leader)
        for node_id in (leader, follower):
            begin(cluster, "t", tmp_path / "disk" / f"broker-{node_id}", node_id=node_id)
        slow(cluster, None)
        for node_id in (leader, follower):
            cluster.broker(node_id).kill()
            cluster.broker(node_id).start()
        for node_id in (leader, follower):
            until_there(cluster, "t", tmp_path / "disk" / f"broker-{node_id}", node_id=node_id)
        fill(cluster, "t", 10)
        assert rows(cluster, "t", leader) == rows(cluster, "t", follower)
        assert len(rows(cluster, "t", leader)) == 310


def test_a_moved_replica_is_offline_without_its_new_directory(tmp_path: Path) -> None:
    here, there = tmp_path / "a", tmp_path / "b"
    with embedlog.open(here, log_dirs=[there]) as cluster:
        cluster.create_topic("t", 1)
        fill(cluster, "t", 10)
        move(cluster, "t", there)
        until_there(cluster, "t", there)
        [state] = cluster.broker().core.image.topics_by_name["t"].partitions
        assert state.directories == {1: cluster.broker().core.log_manager.managers[1].directory.id}
    with embedlog.open(here) as cluster:
        with pytest.raises(KafkaStorageError):
            cluster.broker().core.replica_manager.partition("t", 0)
        assert not (here / "t-0").exists()
    with embedlog.open(here, log_dirs=[there]) as cluster:
        assert len(rows(cluster, "t")) == 10


def test_a_target_that_fails_ends_the_move(tmp_path: Path) -> None:
    here, there = tmp_path / "a", tmp_path / "b"
    with embedlog.open(here, log_dirs=[there]) as cluster:
        cluster.create_topic("t", 1)
        fill(cluster, "t")
        begin(cluster, "t", there)
        core = cluster.broker().core
        core.log_manager.keeper.note_failure(str(there), OSError(5, "broken"))
        slow(cluster, None)
        while core.log_manager.relocations.futures():
            assert place(cluster, "t") == (str(here), "")
        fill(cluster, "t", 5)
        assert len(rows(cluster, "t")) == 305
        assert [each.kind for each in cluster.health()] == ["offline"]


def test_a_reassignment_uses_the_requested_directory_of_a_new_replica(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with embedlog.open(tmp_path / "brokers", brokers=2, log_dirs=[disk]) as cluster:
        cluster.create_topic("t", 1, replication_factor=1)
        [former] = cluster.partition("t", 0).replicas
        other = 3 - former
        fill(cluster, "t", 10)
        replica = TopicPartitionReplica("t", 0, other)
        with cluster.admin() as admin:
            with pytest.raises(ReplicaNotAvailable):
                admin.alter_replica_log_dirs({replica: str(disk / f"broker-{other}")}).check()
            admin.alter_partition_reassignments({("t", 0): [other]}).check()
            while admin.list_partition_reassignments():
                pass
        assert place(cluster, "t", node_id=other) == (str(disk / f"broker-{other}"), "")
        assert len(rows(cluster, "t", other)) == 10


def begun(files: SimFiles) -> Cluster:
    """A topic in "a" whose move to "b" is about to be committed."""
    runtime = sim_runtime(1, files=files)
    cluster = Cluster("a", runtime=runtime, is_embedded=True, log_dirs=["b"])
    cluster.create_topic("t", 1)
    fill(cluster, "t", 3)
    move(cluster, "t", "b")
    return cluster


@pytest.mark.parametrize("alone", ["a", ""])
def test_of_two_copies_left_by_a_crash_one_is_served(alone: str) -> None:
    probe = SimFiles()
    until_there(begun(probe), "t", "b")
    removal = max(
        number for number, call in enumerate(probe.trace) if call[:2] == ("rename", "a/t-0")
    )
    files = SimFiles()
    files.crash(removal)
    with pytest.raises(SimulatedCrash):
        until_there(begun(files), "t", "b")
    left = files.survivor()
    assert left.stat("a/t-0/00000000000000000000.log")
    assert left.stat("b/t-0/00000000000000000000.log")
    if alone == "a":
        # The topic continues without the other directory, and keeps its records when that returns.
        with Cluster("a", runtime=sim_runtime(2, files=left), is_embedded=True) as cluster:
            fill(cluster, "t", 2)
    with Cluster(
        "a", runtime=sim_runtime(3, files=left), is_embedded=True, log_dirs=["b"]
    ) as cluster:
        assert len(rows(cluster, "t")) == (5 if alone == "a" else 3)
        assert place(cluster, "t") == ("a", "")
        assert not left.stat("b/t-0")
        move(cluster, "t", "b")
        until_there(cluster, "t", "b")
        fill(cluster, "t", 1)
    with Cluster(
        "a", runtime=sim_runtime(4, files=left), is_embedded=True, log_dirs=["b"]
    ) as cluster:
        assert place(cluster, "t") == ("b", "")
        assert len(rows(cluster, "t")) == (6 if alone == "a" else 4)
