"""Commits of staged files, by the owner of a directory or by the committer itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import embedlog
from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.errors import ConfigError, DirectoryLocked, StorageFailed, TimedOut
from embedlog.runtime import real_runtime
from embedlog.spark.committer import commit
from embedlog.storage.staging import exchange
from embedlog.storage.staging.exchange import ALREADY_DONE, DONE, Answer
from embedlog.storage.staging.manifest import Manifest
from embedlog.storage.staging.writer import StagedWriter
from embedlog.storage.state_files import staged_layout
from wire.records.encode.builder import build_batch

FILES = real_runtime().files
NOW = 1_700_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A closed data directory with a topic of two partitions."""
    path = str(tmp_path / "data")
    with embedlog.open(path) as cluster:
        cluster.create_topic("t", 2)
    return path


def _manifest(path: str, name: str, *values: bytes, version: int = 0) -> Manifest:
    """Stage these values for both partitions; return the manifest."""
    files = []
    for partition in range(2):
        each = TopicPartition("t", partition)
        writer = StagedWriter(FILES, path, job=name, topic_partition=each, writer="w")
        writer.write(build_batch(list(values), timestamps=NOW))
        files += writer.finish()
    return Manifest(name, files, application="query" if version else "", version=version)


def _seen(path: str) -> list[list[bytes]]:
    with embedlog.open_reader(path) as reader:
        parts = reader.snapshot([("t", 0), ("t", 1)])
        return [[bytes(record.value or b"") for record in part.records()] for part in parts]


@contextmanager
def _owner(path: str, *, background: bool) -> Iterator[subprocess.Popen[bytes]]:
    program = (
        f"import embedlog, sys\nwith embedlog.open({path!r}, background={background}):\n"
        f"    print('ready', flush=True)\n    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    with process:
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.stdin.close()
    assert process.returncode == 0


def test_a_committer_is_the_owner_where_there_is_none(path: str) -> None:
    assert commit(path, _manifest(path, "one", b"a", b"b", version=1)).state == DONE
    answer = commit(path, _manifest(path, "two", b"c", version=2))
    assert answer.ranges == {("t", 0): (2, 3), ("t", 1): (2, 3)}
    assert commit(path, _manifest(path, "again", b"c", version=2)).state == ALREADY_DONE
    assert _seen(path) == [[b"a", b"b", b"c"]] * 2
    assert staged_layout.EXCHANGE not in FILES.list(path)


def test_a_committer_removes_nothing_that_the_owners_settings_would_keep(path: str) -> None:
    settings = {"log_retention_ms": -1, "log_segment_bytes": 1 << 20}
    with embedlog.open(path, **settings) as cluster, cluster.producer() as producer:
        for _ in range(3):
            producer.send("t", bytes(700_000), partition=0, timestamp_ms=NOW).result()
    first, *_ = sorted(Path(path, "t-0").glob("*.log"))
    os.utime(first, (NOW / 1000, NOW / 1000))
    assert commit(path, _manifest(path, "one", b"value")).state == DONE
    assert first.exists()
    assert len(_seen(path)[0]) == 4


def test_a_committer_is_the_node_that_the_directory_belongs_to(tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    with embedlog.open(path, node_id=7) as cluster:
        cluster.create_topic("t", 2)
    assert commit(path, _manifest(path, "one", b"value")).state == DONE
    with embedlog.open(path, node_id=7):
        assert _seen(path) == [[b"value"]] * 2


@pytest.mark.slow
def test_an_owner_in_another_process_adopts_what_is_left_for_it(path: str) -> None:
    with _owner(path, background=True):
        for version in range(1, 4):
            name = f"job{version}"
            answer = commit(path, _manifest(path, name, name.encode(), version=version))
            assert answer.state == DONE
    assert _seen(path) == [[b"job1", b"job2", b"job3"]] * 2


@pytest.mark.slow
def test_a_program_that_starts_beside_a_commit_waits_for_it(path: str) -> None:
    program = (
        f"import sys\nfrom embedlog.cluster.cluster import Cluster\n"
        f"with Cluster({path!r}):\n    print('ready', flush=True)\n    sys.stdin.readline()\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as committer:
        assert committer.stdout is not None
        assert committer.stdin is not None
        assert committer.stdout.readline() == b"ready\n"
        with pytest.raises(DirectoryLocked):
            embedlog.open(path)
        FILES.make_directory(staged_layout.exchange(path))
        committer.stdin.write(b"go\n")
        committer.stdin.flush()
        with embedlog.open(path) as cluster:
            assert cluster.topics == ["t"]


@pytest.mark.slow
def test_an_owner_without_time_for_its_duties_is_named_and_nothing_is_committed(path: str) -> None:
    with _owner(path, background=False) as owner:
        with pytest.raises(TimedOut, match=rf"withdrawn.*background=True.*pid {owner.pid} "):
            commit(path, _manifest(path, "one", b"never"), timeout_ms=50)
        assert staged_layout.names_in(FILES, path, staged_layout.INBOX) == []
    assert _seen(path) == [[], []]
    assert commit(path, _manifest(path, "two", b"now")).state == DONE
    assert _seen(path) == [[b"now"]] * 2


@pytest.mark.slow
def test_readers_that_wait_in_the_owners_process_get_a_commit(path: str) -> None:
    with embedlog.open(path) as cluster, cluster.consumer() as consumer:
        consumer.assign([("t", 0), ("t", 1)])
        consumer.seek_to_beginning()
        assert not consumer.poll(0)
        exchange.leave(FILES, path, _manifest(path, "one", b"value"))
        found = list(consumer.poll(20_000))
        while len(found) < 2:
            found += consumer.poll(20_000)
        assert [bytes(record.value) for record in found] == [b"value", b"value"]
    answer = exchange.read_answer(FILES, path, "one")
    assert answer is not None
    assert answer.state == DONE


def test_a_commit_whose_owner_died_before_its_answer_is_answered_and_not_made_again(
    path: str,
) -> None:
    commit(path, _manifest(path, "zz-made", b"once"))
    for name in ("aa-other", "zz-made"):
        exchange.leave(FILES, path, _manifest(path, name, b"other" if name < "b" else b"once"))
    exchange.take(FILES, path)
    with embedlog.open(path) as cluster:
        cluster.adopt_staged()
    answer = exchange.read_answer(FILES, path, "zz-made")
    assert answer is not None
    assert answer.ranges == {("t", 0): (0, 1), ("t", 1): (0, 1)}
    assert _seen(path) == [[b"once", b"other"]] * 2


def test_a_committer_gets_the_error_of_its_commit(path: str) -> None:
    manifest = _manifest(path, "one", b"value")
    with embedlog.open(path) as cluster, cluster.admin() as admin:
        admin.delete_topics(["t"])
    with pytest.raises(errors.UnknownTopicOrPartition, match="there is no such topic"):
        commit(path, manifest)
    with embedlog.open(path) as cluster:
        cluster.create_topic("t", 2, config={"max.message.bytes": 70})
    with pytest.raises(errors.MessageTooLarge):
        commit(path, _manifest(path, "two", b"v" * 100))
    damaged = _manifest(path, "three", b"v")
    staged = f"{staged_layout.part(path, staged_layout.STAGED)}/{damaged.files[0].path}"
    FILES.open(staged).write([b"??"], 66)
    with pytest.raises(StorageFailed, match="crc"):
        commit(path, damaged)
    assert _seen(path) == [[], []]
    with pytest.raises(ConfigError, match="not a directory"):
        commit(path + "/nowhere", damaged)


def test_a_manifest_is_withdrawn_when_the_directory_cannot_be_opened(path: str) -> None:
    manifest = _manifest(path, "one", b"value")
    properties = Path(path, "meta.properties")
    content = properties.read_text()
    properties.write_text(content.replace("version=1", "version=7"))
    with pytest.raises(ConfigError, match="version '7'"):
        commit(path, manifest)
    assert not staged_layout.has_manifests(FILES, path)
    properties.write_text(content)
    assert _seen(path) == [[], []]


def test_a_coordinators_topic_is_refused(path: str) -> None:
    each = TopicPartition("__consumer_offsets", 0)
    with embedlog.open(path) as cluster, cluster.consumer(group_id="g") as consumer:
        consumer.assign([("t", 0)])
        consumer.commit({("t", 0): 0})
    writer = StagedWriter(FILES, path, job="j", topic_partition=each, writer="w")
    writer.write(build_batch([b"value"], timestamps=NOW))
    with pytest.raises(errors.InvalidTopic, match="coordinator"):
        commit(path, Manifest("j", writer.finish()))


def test_a_manifest_that_was_taken_is_not_withdrawn(path: str) -> None:
    exchange.leave(FILES, path, _manifest(path, "one", b"value"))
    assert exchange.take(FILES, path) == ["one"]
    assert not exchange.withdraw(FILES, path, "one")
    exchange.answer(FILES, path, "one", Answer(DONE))
    assert exchange.take(FILES, path) == []


def test_what_jobs_have_left_and_nobody_asks_for_is_swept(path: str) -> None:
    _manifest(path, "old", b"value")
    wall_ms = real_runtime().clock.wall_ms()
    assert exchange.sweep(FILES, path, wall_ms) == []
    later_ms = wall_ms + exchange.STAGED_AGE_MAX_MS + 60_000
    assert exchange.sweep(FILES, path, later_ms) == [
        f"{staged_layout.part(path, staged_layout.STAGED)}/old"
    ]
