"""A refused `open` leaves the directory as it was: every byte, name and time of a change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import embedlog
from embedlog.controller.metadata_log import LOG_SETTINGS, METADATA_PARTITION
from embedlog.errors import ConfigError, CorruptRecord, DirectoryLocked, EmbedlogError
from embedlog.runtime import real_runtime
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log_config import LogConfig
from embedlog.storage.validation.origin import AppendOrigin
from tests.support.snapshots import snapshot
from wire.records import build_batch

Made = dict[str, Any]
"""Arguments of the refused `open`."""


def make(place: Path, **how: Any) -> None:
    with embedlog.open(place, durability="os", **how) as cluster:
        cluster.create_topic("t", 2)
        with cluster.producer() as producer:
            for number in range(20):
                producer.append("t", b"%d" % number)


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def damage(log: Path) -> None:
    content = bytearray(log.read_bytes())
    content[70] ^= 1
    log.write_bytes(content)


def foreign(base: Path) -> Made:
    (base / "data/dbus-1").mkdir(parents=True)
    (base / "data/dbus-1/session.conf").write_text("no log")
    (base / "data/passwd").write_text("of others")
    return {}


def kraft(base: Path, *, is_clean: bool = True) -> Made:
    """A stopped broker and controller of Kafka: the names are real, the segments are ours."""
    data = base / "data"
    make(data)
    for name in (".embedlog_log_dirs", "recovery-point-offset-checkpoint.sealed"):
        (data / name).unlink(missing_ok=True)
    (data / ".lock").write_bytes(b"")
    (data / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":12}')
    if not is_clean:
        (data / ".kafka_cleanshutdown").unlink()
    (data / "__cluster_metadata-0/quorum-state").write_text('{"leaderId":1}')
    return {}


def damaged(base: Path, *, is_clean: bool = True) -> Made:
    make(base / "data")
    damage(base / "data/__cluster_metadata-0/00000000000000000000.log")
    if not is_clean:
        (base / "data/.kafka_cleanshutdown").unlink()
    return {}


def newer_record(base: Path) -> Made:
    make(base / "data")
    manager = LogManager(real_runtime(), str(base / "data"), LogConfig(durability="fsync"))
    log = manager.get_or_create(METADATA_PARTITION, LogConfig(**LOG_SETTINGS, durability="fsync"))
    batch = build_batch([b"\x01\xff\x7f\x00"], timestamps=1)
    with log.lock:
        log.append_as_leader(batch, leader_epoch=0, origin=AppendOrigin.COORDINATOR, now_ms=1)
    manager.close()
    return {}


def with_meta(old: str, new: str) -> Callable[[Path], Made]:
    def made(base: Path) -> Made:
        make(base / "data")
        edit(base / "data/meta.properties", old, new)
        return {}

    return made


def wrong_id(base: Path) -> Made:
    make(base / "data")
    return {"cluster_id": "A" * 22}


def other_id(base: Path) -> Made:
    make(base / "data", cluster_id="B" * 21 + "A")
    edit(base / "data/meta.properties", "B" * 21 + "A", "A" * 22)
    return {}


def two_of_one(base: Path) -> Made:
    make(base / "data")
    return {"brokers": 2}


def one_of_two(base: Path) -> Made:
    make(base / "data", brokers=2)
    return {"brokers": 1}


def fewer(base: Path) -> Made:
    make(base / "data", brokers=3)
    return {"brokers": 2}


def one_alone(base: Path) -> Made:
    make(base / "data", brokers=2)
    return {"path": base / "data/broker-1"}


def newer_cluster(base: Path) -> Made:
    make(base / "data", brokers=2)
    edit(base / "data/cluster.properties", "version=1", "version=2")
    return {}


def swapped(base: Path) -> Made:
    make(base / "data", brokers=2)
    (base / "data/broker-1").rename(base / "data/x")
    (base / "data/broker-2").rename(base / "data/broker-1")
    (base / "data/x").rename(base / "data/broker-2")
    return {}


def damaged_controller(base: Path) -> Made:
    make(base / "data", brokers=2)
    damage(base / "data/controller/__cluster_metadata-0/00000000000000000000.log")
    return {}


def duplicates(base: Path) -> Made:
    both = {"log_dirs": [base / "more"]}
    make(base / "data", **both)
    here, there = base / "data", base / "more"
    for name in ("t-0", "t-1"):
        source, target = (here, there) if (here / name).is_dir() else (there, here)
        shutil.copytree(source / name, target / name)
    return both


def copied(base: Path) -> Made:
    make(base / "data", log_dirs=[base / "more"])
    shutil.copytree(base / "more", base / "again")
    return {"log_dirs": [base / "more", base / "again"]}


def of_others(base: Path) -> Made:
    make(base / "data", log_dirs=[base / "x"])
    make(base / "other", log_dirs=[base / "more"])
    return {"log_dirs": [base / "x", base / "more"]}


def first_of_others(base: Path) -> Made:
    make(base / "data")
    make(base / "other")
    return {"log_dirs": [base / "other"]}


def foreign_beside(base: Path) -> Made:
    make(base / "data")
    (base / "more").mkdir()
    (base / "more/notes").write_text("of others")
    return {"log_dirs": [base / "more"]}


CASES: dict[str, tuple[Callable[[Path], Made], type[EmbedlogError], str]] = {
    "foreign": (foreign, ConfigError, "is no data directory: it holds dbus-1, passwd"),
    "kraft": (kraft, ConfigError, "of Apache Kafka.*open_reader, verify, dump and tail"),
    "kraft, killed": (lambda base: kraft(base, is_clean=False), ConfigError, "of Apache Kafka"),
    "damaged": (damaged, CorruptRecord, "__cluster_metadata-0/0+.log"),
    "damaged, killed": (
        lambda base: damaged(base, is_clean=False),
        CorruptRecord,
        "__cluster_metadata-0/0+.log",
    ),
    "newer record": (newer_record, CorruptRecord, "record type 16383"),
    "newer version": (with_meta("version=1", "version=2"), ConfigError, "version '2', expected 1"),
    "node": (with_meta("node.id=1", "node.id=7"), ConfigError, "belongs to node '7', this is 1"),
    "directory id": (with_meta("directory.id=", "directory.id=!"), ConfigError, "directory.id: "),
    "wrong id": (wrong_id, ConfigError, f"expected was {'A' * 22}"),
    "other id": (other_id, ConfigError, "meta.properties names"),
    "two of one": (two_of_one, ConfigError, "belongs to one broker"),
    "one of two": (one_of_two, ConfigError, "belongs to 2 brokers"),
    "fewer": (
        fewer,
        ConfigError,
        r"belongs to 3 brokers, \[1, 2, 3\], .* with 2",
    ),
    "one alone": (one_alone, ConfigError, "belongs to one broker of several"),
    "newer cluster": (newer_cluster, ConfigError, "version '2', expected 1"),
    "swapped": (swapped, ConfigError, "belongs to node '2', this is 1"),
    "damaged controller": (damaged_controller, CorruptRecord, "controller/__cluster_metadata-0"),
    "duplicates": (duplicates, ConfigError, "Duplicate log directories found"),
    "copied": (copied, ConfigError, "one is a copy of another"),
    "of others": (of_others, ConfigError, "is a further log directory|belongs to cluster"),
    "first of others": (first_of_others, ConfigError, "is the first log directory of a broker"),
    "foreign beside": (foreign_beside, ConfigError, "is no data directory: it holds notes"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_changes_nothing(name: str, tmp_path: Path) -> None:
    prepare, kind, said = CASES[name]
    how = {"path": tmp_path / "data", **prepare(tmp_path)}
    before = snapshot(tmp_path)
    for _ in range(2):  # the refusal leaves no lock
        with pytest.raises(kind, match=said):
            embedlog.open(how["path"], **{k: v for k, v in how.items() if k != "path"})
        assert snapshot(tmp_path) == before


@pytest.mark.slow
def test_a_held_directory_stays_as_it_is(tmp_path: Path) -> None:
    make(tmp_path / "data")
    script = (
        f"import embedlog; c = embedlog.open({str(tmp_path / 'data')!r}); print('open'); input()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        before = snapshot(tmp_path)
        with pytest.raises(DirectoryLocked, match=f"held by pid {owner.pid}"):
            embedlog.open(tmp_path / "data")
        assert snapshot(tmp_path) == before
    finally:
        owner.kill()
        owner.wait()


def test_a_running_kafka_that_lost_power_before_gets_no_file(tmp_path: Path) -> None:
    """Kafka leaves the lock file empty, and takes its marker away while it runs."""
    import fcntl

    kraft(tmp_path, is_clean=False)
    (tmp_path / "data/__cluster_metadata-0/quorum-state").unlink()
    with open(tmp_path / "data/.lock", "r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        before = snapshot(tmp_path)
        with pytest.raises(DirectoryLocked):
            embedlog.open(tmp_path / "data")
        assert snapshot(tmp_path) == before


def test_the_lock_names_its_owner_once_the_directory_is_accepted(tmp_path: Path) -> None:
    make(tmp_path / "data")
    with embedlog.open(tmp_path / "data"):
        assert (tmp_path / "data/.lock").read_text().startswith(f"pid {os.getpid()} ")
        assert not (tmp_path / "data/.kafka_cleanshutdown").exists()


@pytest.mark.interop
@pytest.mark.slow
def test_a_directory_of_a_real_kafka_is_refused_untouched_and_read(tmp_path: Path) -> None:
    from embedlog.cli import main
    from tests.support.kafka import real_kafka

    with real_kafka(tmp_path) as address, embedlog.Producer(address) as producer:
        producer.send("events", b"theirs", partition=0).result()
    before = snapshot(tmp_path)
    with pytest.raises(ConfigError, match="is a data directory of Apache Kafka"):
        embedlog.open(tmp_path / "data")
    assert main(["verify", str(tmp_path / "data")]) == 0
    with embedlog.open_reader(tmp_path / "data") as reader:
        assert [bytes(each.value or b"") for each in reader.partition("events", 0).records()] == [
            b"theirs"
        ]
    assert snapshot(tmp_path) == before
