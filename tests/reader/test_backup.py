"""Backups of a closed directory, of a directory under load, and of a dying owner."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import embedlog
from embedlog.cli import main
from embedlog.errors import ConfigError, CorruptRecord, TimedOut
from embedlog.reader import backup as backups
from embedlog.reader.backup import backup
from tests.support.snapshots import snapshot

SMALL = {"internal.segment.bytes": "20000"}


def fill(cluster: embedlog.Cluster, count: int = 100) -> None:
    cluster.create_topic("t", 2)
    with cluster.producer() as producer:
        for number in range(count):
            producer.append("t", b"%d" % number, partition=number % 2)
    with cluster.consumer(group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["t"])
        seen = 0
        while seen < count:
            seen += len(list(consumer.poll(1000)))
        consumer.commit()
    with cluster.producer(transactional_id="open") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("t", b"committed", partition=0)


def values(path: Path, topic: str, partition: int = 0, **how: object) -> list[bytes]:
    with embedlog.open_reader(path) as reader:
        records = reader.partition(topic, partition).records(**how)  # type: ignore[arg-type]
        return [bytes(each.value or b"") for each in records]


def check(copy: Path, count: int = 100) -> None:
    assert main(["verify", str(copy)]) == 0
    assert values(copy, "t", 1) == [b"%d" % number for number in range(1, count, 2)]
    with embedlog.open(copy) as cluster:
        assert cluster.health() == []
        with cluster.consumer(group_id="g") as consumer:
            found = consumer.committed([("t", 0), ("t", 1)])
        assert [each.offset for each in found.values() if each] == [count // 2, count // 2]
        with cluster.admin() as admin:
            assert list(admin.list_transactions()) == ["open"]
        with cluster.producer() as producer:
            assert producer.send("t", b"new", partition=1).result().offset == count // 2
    assert main(["verify", str(copy)]) == 0


@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_a_closed_and_an_open_directory_are_copied(durability: str, tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "data", durability=durability) as cluster:
        fill(cluster)
        assert backup(tmp_path / "data", tmp_path / "live").missing == ()
        with cluster.producer() as producer:
            producer.append("t", b"later", partition=1)
        assert not (tmp_path / "data/.exchange").exists()
    before = snapshot(tmp_path / "data")
    backup(tmp_path / "data", tmp_path / "closed")
    assert snapshot(tmp_path / "data") == before
    check(tmp_path / "live")
    assert values(tmp_path / "closed", "t", 1)[-1] == b"later"


@pytest.mark.slow
def test_an_owner_that_answers_gives_the_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The logs never stand still in the eyes of the backup."""
    with embedlog.open(tmp_path / "data", durability="os", background=True) as cluster:
        fill(cluster)
        monkeypatch.setattr(backups.BackupRun, "look", _never_equal())
        backup(tmp_path / "data", tmp_path / "live")
    check(tmp_path / "live")


def _never_equal() -> object:
    counter = iter(range(10**9))
    return lambda self: {"": next(counter)}


def test_without_a_moment_it_times_out_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with embedlog.open(tmp_path / "data", durability="os") as cluster:
        fill(cluster)
        monkeypatch.setattr(backups.BackupRun, "look", _never_equal())
        monkeypatch.setattr(backups.BackupRun, "answer", lambda self, id: None)
        with pytest.raises(TimedOut, match="never stood still"):
            backup(tmp_path / "data", tmp_path / "copy", timeout_ms=100)
    assert not (tmp_path / "copy").exists()
    assert not (tmp_path / "data/.exchange").exists()


@pytest.mark.slow
def test_several_brokers_are_copied(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "data", brokers=3, durability="os") as cluster:
        cluster.create_topic("t", 2, replication_factor=3)
        with cluster.producer() as producer:
            for number in range(20):
                producer.append("t", b"%d" % number, partition=0)
        backup(tmp_path / "data", tmp_path / "live")
    backup(tmp_path / "data", tmp_path / "closed")
    for name in ("live", "closed"):
        for each in ("controller", "broker-1", "broker-2", "broker-3"):
            assert main(["verify", str(tmp_path / name / each)]) == 0
        with embedlog.open(tmp_path / name) as cluster, cluster.consumer() as consumer:
            assert len(cluster.brokers) == 3
            consumer.assign([("t", 0)])
            consumer.seek_to_beginning()
            seen = 0
            while seen < 20:
                seen += len(list(consumer.poll(1000)))


def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "data", durability="os") as cluster:
        cluster.create_topic("t", 1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for target in ("full", "file", "data", "data/inner"):
        with pytest.raises(ConfigError, match="exists already|lies in"):
            backup(tmp_path / "data", tmp_path / target)
    assert (tmp_path / "full/notes").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    backup(tmp_path / "data", tmp_path / "empty")
    with pytest.raises(ConfigError, match="exists already"):
        backup(tmp_path / "data", tmp_path / "empty")


def test_damage_ends_a_backup_and_leaves_none(tmp_path: Path) -> None:
    with embedlog.open(tmp_path / "data", durability="os") as cluster:
        fill(cluster)
    log = tmp_path / "data/t-0/00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    with pytest.raises(CorruptRecord, match="t-0"):
        backup(tmp_path / "data", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_compacted_logs_and_a_moved_start_are_copied(tmp_path: Path) -> None:
    with embedlog.open(
        tmp_path / "data", durability="os", log_cleaner_min_cleanable_ratio=0.01
    ) as cluster:
        cluster.create_topic("k", 1, config={**SMALL, "cleanup.policy": "compact"})
        cluster.create_topic("d", 1, config=SMALL)
        with cluster.producer() as producer:
            for number in range(600):
                producer.append("k", b"%d" % number + b"x" * 200, key=b"%d" % (number % 7))
                producer.append("d", b"%d" % number)
        with cluster.admin() as admin:
            admin.delete_records({("d", 0): 321}).check()
        cluster.maintain()
        before = values(tmp_path / "data", "k")
        assert len(before) < 600
        backup(tmp_path / "data", tmp_path / "copy")
    assert main(["verify", str(tmp_path / "copy")]) == 0
    assert values(tmp_path / "copy", "k") == before
    assert values(tmp_path / "copy", "d")[0] == b"321"
    with embedlog.open(tmp_path / "copy") as cluster, cluster.producer() as producer:
        assert cluster.health() == []
        assert producer.append("k", b"new", key=b"n").offset == 600
        assert producer.append("d", b"new").offset == 600


def test_the_command_prints_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with embedlog.open(tmp_path / "data", durability="os") as cluster:
        cluster.create_topic("t", 1)
    assert main(["backup", str(tmp_path / "data"), str(tmp_path / "copy"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["partitions"] == 2
    assert main(["backup", str(tmp_path / "data"), str(tmp_path / "copy")]) == 2
    assert "exists already" in capsys.readouterr().err


OWNER = """
import sys, threading
import embedlog
cluster = embedlog.open(sys.argv[1], durability=sys.argv[2], background=True,
                        log_cleaner_min_cleanable_ratio=0.01, log_cleaner_backoff_ms=50,
                        log_retention_check_interval_ms=200, log_initial_task_delay_ms=100)
small = {"internal.segment.bytes": "20000"}
for name in ("in", "a", "b"):
    cluster.create_topic(name, 1, config=small)
cluster.create_topic("k", 1, config={**small, "cleanup.policy": "compact"})
cluster.create_topic("d", 1, config={**small, "retention.bytes": "60000"})

def feed():
    number = 0
    with cluster.producer() as producer:
        while True:
            if number < 20_000:
                producer.append("in", b"%d" % number)
            producer.append("k", b"x" * 300, key=b"%d" % (number % 5))
            producer.append("d", b"x" * 300)
            number += 1

def delete():
    number = 0
    while True:
        number += 1
        cluster.create_topic(f"gone{number}", 1)
        with cluster.producer() as producer:
            producer.append(f"gone{number}", b"x")
        with cluster.admin() as admin:
            admin.delete_topics([f"gone{number}"])

for work in (feed, delete):
    threading.Thread(target=work, daemon=True).start()
consumer = cluster.consumer(group_id="g", enable_auto_commit=False,
                            auto_offset_reset="earliest")
consumer.subscribe(["in"])
producer = cluster.producer(transactional_id="x")
producer.init_transactions()
done = 0
while True:
    records = list(consumer.poll(1000))
    if not records:
        continue
    with producer.transaction() as transaction:
        for record in records:
            producer.send("a", record.value)
            producer.send("b", record.value)
        transaction.send_offsets(consumer)
    done = records[-1].offset + 1
    print(done, flush=True)
"""


@contextmanager
def owner(data: Path, durability: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(data), durability], stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def check_moment(copy: Path, acknowledged: int) -> None:
    """The transactions of the copy are whole, and agree with the group's offset."""
    assert main(["verify", str(copy)]) == 0
    with embedlog.open(copy) as cluster:
        assert cluster.health() == []
        with cluster.producer(transactional_id="x") as producer:
            producer.init_transactions()  # aborts the transaction that was open at the moment
        with cluster.consumer(group_id="g") as consumer:
            (found,) = consumer.committed([("in", 0)]).values()
            (end,) = consumer.end_offsets([("in", 0)]).values()
    assert found is not None
    assert acknowledged <= found.offset <= end
    numbers = [
        list(map(int, values(copy, name, isolation_level="read_committed"))) for name in ("a", "b")
    ]
    assert numbers[0] == numbers[1] == list(range(len(numbers[0])))
    assert len(numbers[0]) == found.offset  # the offsets are committed in the transactions
    assert main(["verify", str(copy)]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_backups_under_load_show_one_moment_each(durability: str, tmp_path: Path) -> None:
    with owner(tmp_path / "data", durability) as process:
        assert process.stdout is not None
        for number in range(3):
            acknowledged = [int(process.stdout.readline()) for _ in range(15)][-1]
            backup(tmp_path / "data", tmp_path / f"copy{number}")
            check_moment(tmp_path / f"copy{number}", acknowledged)


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["os", "fsync"])
def test_the_owner_may_be_killed_during_a_backup(
    durability: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with owner(tmp_path / "data", durability) as process:
        assert process.stdout is not None
        acknowledged = [int(process.stdout.readline()) for _ in range(15)][-1]
        copy_log, killed = backups.BackupRun.copy_log, []

        def copy(self: object, *arguments: object) -> None:
            if not killed:
                killed.append(process.kill())
                process.wait()
            copy_log(self, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(backups.BackupRun, "copy_log", copy)
        backup(tmp_path / "data", tmp_path / "copy")
        assert killed
        monkeypatch.undo()
        check_moment(tmp_path / "copy", acknowledged)
        backup(tmp_path / "data", tmp_path / "after")
        check_moment(tmp_path / "after", acknowledged)
