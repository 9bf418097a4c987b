"""Committing staged files: offsets, once per version, topics' rules, refusals without effects."""

from __future__ import annotations

import pytest

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.errors import CorruptRecord
from embedlog.storage.staging.manifest import Manifest, StagedFile, decode
from embedlog.storage.staging.writer import StagedWriter
from embedlog.storage.state_files import commit_file, staged_layout
from embedlog.storage.state_files.commit_file import APPLICATIONS_MAX, DONE, CommitFile
from embedlog.storage.verification.directory import DirectoryCheck
from embedlog.testing import SimFiles
from tests.storage.logs import DATA, NOW, append, batch, batches, check, values
from tests.storage.staging.adoption import EVERYTHING, NOTHING, A, B, C, Owner, stage

both = pytest.mark.parametrize("smallest", [EVERYTHING, NOTHING], ids=["renamed", "appended"])


@both
def test_records_get_the_offsets_behind_the_logs_ends_in_the_order_of_the_files(
    smallest: int,
) -> None:
    owner = Owner(renamed_size_min=smallest)
    append(owner.logs[A], b"0", b"1")
    parts = {A: [[b"2", b"3"], [b"4"], [b"5"]], B: [[b"x"]]}
    commit = owner.adopt("one", stage(owner.disk, "one", parts, size_max=100))
    assert commit.ranges == {A: (2, 6), B: (0, 1)}
    assert append(owner.logs[A], b"6") == 6
    assert values(owner.logs[A]) == [b"0", b"1", b"2", b"3", b"4", b"5", b"6"]
    assert values(owner.logs[B]) == [b"x"]
    for log in owner.logs.values():
        check(log)
    assert owner.logs[A].durability.synced_offset >= 6


@both
def test_a_version_of_an_application_is_committed_once(smallest: int) -> None:
    owner = Owner(renamed_size_min=smallest)
    for version, job in ((3, "one"), (3, "again"), (2, "older")):
        files = stage(owner.disk, job, {A: [[b"v%d" % version]]})
        commit = owner.adopt(job, files, application="query", version=version)
        assert (commit is None) == (job != "one")
    other = stage(owner.disk, "other", {A: [[b"other"]]})
    assert owner.adopt("other", other, application="another query", version=1) is not None
    assert values(owner.logs[A]) == [b"v3", b"other"]
    owner.manager.close()
    reopened = Owner(owner.disk.survivor())
    assert reopened.adopter.is_done("query", 3)
    assert not reopened.adopter.is_done("query", 4)


def test_commits_without_an_application_are_all_made() -> None:
    owner = Owner()
    for job in ("one", "two"):
        assert owner.adopt(job, stage(owner.disk, job, {A: [[b"same"]]})) is not None
    assert values(owner.logs[A]) == [b"same", b"same"]


@pytest.mark.parametrize("most", [20, pytest.param(APPLICATIONS_MAX, marks=pytest.mark.slow)])
def test_the_oldest_applications_are_forgotten(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_file, "APPLICATIONS_MAX", most)
    disk = SimFiles()
    disk.make_directory(DATA)
    commits = CommitFile(disk, DATA)
    for number in range(most):
        commit = commits.prepare([], id=f"job-{number}", application=f"query-{number}", version=1)
        commits.decide(commit, DONE)
    assert commits.is_done("query-0", 1)
    owner = Owner(disk)
    owner.adopt("m", stage(owner.disk, "m", {A: [[b"1"]]}), application="newest", version=1)
    assert owner.adopter.is_done("newest", 1)
    assert not owner.adopter.is_done("query-0", 1)
    assert owner.adopter.is_done("query-1", 1)


@both
def test_a_look_up_by_offset_and_time_finds_adopted_records(smallest: int) -> None:
    owner = Owner(renamed_size_min=smallest, index_interval_bytes=200)
    writer = StagedWriter(owner.disk, DATA, job="j", topic_partition=A, writer="w")
    for number in range(50):
        writer.write(batch(b"%d" % number, timestamps=NOW - 50 + number))
    owner.adopt("m", writer.finish())
    log = owner.logs[A]
    assert values(log, 37)[0] == b"37"
    assert log.reader.fetch_offset(NOW - 50 + 20) == (NOW - 30, 20, 0)
    check(log)
    owner.manager.close()
    check(Owner(owner.disk.survivor()).logs[A])


@both
def test_a_topics_rules_hold_for_what_is_adopted(smallest: int) -> None:
    owner = Owner(renamed_size_min=smallest, message_timestamp_type="LogAppendTime")
    owner.adopt("m", stage(owner.disk, "m", {A: [[b"1"]]}))
    assert [one.attributes & 8 for one in batches(owner.logs[A])] == [8]
    owner = Owner(renamed_size_min=smallest, compression_type="gzip")
    owner.adopt("m", stage(owner.disk, "m", {A: [[b"1" * 500]]}))
    assert [one.attributes & 7 for one in batches(owner.logs[A])] == [1]
    assert values(owner.logs[A]) == [b"1" * 500]


REFUSED = [
    ({"max_message_bytes": 100}, {A: [[b"1"]], B: [[b"x" * 200]]}, errors.MessageTooLarge),
    ({"cleanup_policy": "compact"}, {A: [[b"no key"]]}, errors.InvalidRecord),
    ({"message_timestamp_after_max_ms": -1}, {A: [[b"1"]], B: [[b"2"]]}, errors.InvalidTimestamp),
]


@both
@pytest.mark.parametrize(("settings", "parts", "error"), REFUSED, ids=["size", "key", "time"])
def test_a_refusal_leaves_every_log_as_it_was(smallest, settings, parts, error) -> None:
    owner = Owner(renamed_size_min=smallest)
    append(owner.logs[A], b"before", keys=[b"k"])
    for log in owner.logs.values():
        log.configure(log.config.replace(**settings))
    with pytest.raises(error):
        owner.adopt("m", stage(owner.disk, "m", parts), application="query", version=1)
    assert values(owner.logs[A]) == [b"before"]
    assert owner.logs[B].log_end_offset == 0
    assert not owner.adopter.is_done("query", 1)
    for log in owner.logs.values():
        log.configure(log.config.replace(message_timestamp_after_max_ms=1000))
        append(log, b"after", keys=[b"k"])
        check(log)


DAMAGES = {
    "missing": lambda disk, path: disk.remove(path),
    "short": lambda disk, path: disk.open(path).truncate(40),
    "flipped": lambda disk, path: disk.open(path).write([b"?"], 66),
    "zeros": lambda disk, path: disk.open(path).write([bytes(30)], 0),
    "offsets": lambda disk, path: disk.open(path).write([b"\0" * 7 + b"\5"], 0),
}


@both
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_staged_file_that_is_not_what_was_written_is_refused(smallest, damage) -> None:
    owner = Owner(renamed_size_min=smallest)
    files = stage(owner.disk, "m", {A: [[b"good"]], B: [[b"value"]]})
    path = f"{staged_layout.part(DATA, staged_layout.STAGED)}/{files[1].path}"
    DAMAGES[damage](owner.disk, path)
    with pytest.raises((CorruptRecord, errors.KafkaStorageError), match="events-1-task-0"):
        owner.adopt("m", files)
    assert [log.log_end_offset for log in owner.logs.values()] == [0, 0, 0]


@both
@pytest.mark.parametrize(
    "fields", [{"control": True}, {"transactional": True}, {"producer": (5, 0, 0)}]
)
def test_staged_batches_of_producers_and_transactions_are_refused(smallest, fields) -> None:
    owner = Owner(renamed_size_min=smallest)
    writer = StagedWriter(owner.disk, DATA, job="j", topic_partition=A, writer="w")
    writer.write(batch(b"value", **fields))
    with pytest.raises(CorruptRecord, match="attributes"):
        owner.adopt("m", writer.finish())
    assert owner.logs[A].log_end_offset == 0


def test_a_manifest_cannot_name_files_outside_of_the_staging_area() -> None:
    for path in ("../events-0/00000000000000000000.log", "/etc/passwd", "job/../../x"):
        staged = StagedFile(A, path, size=1, count=1)
        content = Manifest("id", [staged]).encode()
        with pytest.raises(CorruptRecord, match="staging area"):
            decode(content, "manifest")


@both
def test_producers_that_were_there_before_are_known_behind_a_commit(smallest: int) -> None:
    owner = Owner(renamed_size_min=smallest)
    log = owner.logs[A]
    append(log, b"1", producer=(7, 0, 0))
    owner.adopt("m", stage(owner.disk, "m", {A: [[b"2"]]}))
    append(log, b"3", producer=(7, 0, 1))
    again = batch(b"3", producer=(7, 0, 1))
    assert log.append_as_leader(again, leader_epoch=0, now_ms=NOW).duplicate
    survivor = Owner(owner.disk.survivor()).logs[A]
    assert survivor.append_as_leader(again, leader_epoch=0, now_ms=NOW).duplicate
    assert values(survivor) == [b"1", b"2", b"3"]


def test_the_high_watermark_ends_before_a_commit_until_it_is_done() -> None:
    owner = Owner()
    seen = []
    begin = owner.disk.begin

    def watched(call: str, path: str) -> int | None:
        seen.append([log.offsets.high_watermark for log in owner.logs.values()])
        return begin(call, path)

    owner.disk.begin = watched
    files = stage(owner.disk, "m", {A: [[b"1"], [b"2"]], B: [[b"3"]], C: [[b"4"]]})
    owner.adopt("m", files)
    assert [each for n, each in enumerate(seen) if n == 0 or each != seen[n - 1]] == [
        [0, 0, 0],
        [2, 1, 1],
    ]


def test_a_staged_writer_begins_another_file_before_one_gets_too_large() -> None:
    owner = Owner()
    files = stage(owner.disk, "m", {A: [[b"x" * 100]] * 5}, size_max=400)
    assert [file.count for file in files] == [2, 2, 1]
    assert all(file.size <= 400 for file in files)
    owner.adopt("m", files)
    assert len(values(owner.logs[A])) == 5
    assert staged_layout.EXCHANGE in owner.disk.list(DATA)
    assert owner.disk.list(staged_layout.part(DATA, staged_layout.STAGED)) == []


def test_the_longest_name_of_a_topic_can_be_staged_for() -> None:
    owner = Owner()
    for name in ("a" * 249, "a" * 248 + "b"):
        each = TopicPartition(name, 99_999)
        writer = StagedWriter(owner.disk, DATA, job="m", topic_partition=each, writer="w" * 40)
        writer.write(batch(name[-1:].encode()))
        (staged,) = writer.finish()
        assert len(staged.path.rpartition("/")[2]) < 200


def test_a_directory_that_is_removed_while_it_is_made_is_made_again() -> None:
    owner = Owner()
    removed = []
    make_directory = owner.disk.make_directory

    def vanishing(path: str, mode: int = 0o777) -> None:
        make_directory(path, mode)
        if len(removed) < 3:
            removed.append(path)
            owner.disk.remove(path)
            if len(removed) == 2:
                raise FileExistsError(17, "File exists", path)

    owner.disk.make_directory = vanishing
    (staged,) = stage(owner.disk, "m", {A: [[b"1"]]})
    assert len(removed) == 3
    owner.adopt("m", [staged])
    assert values(owner.logs[A]) == [b"1"]


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_every_flipped_bit_of_the_record_of_commits_is_found(step: int) -> None:
    owner = Owner()
    owner.adopt("one", stage(owner.disk, "one", {A: [[b"x"]]}), application="query", version=1)
    owner.manager.close()
    disk = owner.disk
    path = staged_layout.commit_file(DATA)
    content = disk.read(path)
    assert not list(DirectoryCheck(disk, DATA, lambda _: None).findings())
    for bit in range(0, 8 * len(content), step):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        disk.open(path).write([bytes(flipped)], 0)
        found = DirectoryCheck(disk, DATA, lambda _: None).findings()
        assert path in [each.path for each in found], bit
