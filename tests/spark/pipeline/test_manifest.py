"""The manifest of a Parquet table: a commit happens once, or not at all, even if interrupted."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from embedlog.errors import CorruptRecord
from embedlog.runtime.files import make_directory, parent
from embedlog.spark.pipeline.errors import TableConflict
from embedlog.spark.pipeline.tables.manifest import (
    CHECKPOINT_EVERY,
    DELETE_AFTER_MS,
    ONE_TIME,
    ManifestTable,
)
from embedlog.spark.pipeline.tables.table import DEAD_LETTERS, CommitKey, DataFile, sweep
from embedlog.testing import sim_runtime
from embedlog.testing.sim_files import SimulatedCrash


def staged(table: ManifestTable, key: CommitKey, name: str, part: str = "rows") -> DataFile:
    path = f"{table.path}/data/{key.directory}/{name}.parquet"
    make_directory(table.runtime.files, parent(path), sync=True)
    table.runtime.files.open(path, create=True).close()
    return DataFile(path, 1, 10, part)


def names(table: ManifestTable, part: str = "rows") -> list[str]:
    return [Path(each.path).stem for each in table.files(part)]


def test_a_batch_is_committed_once(tmp_path: Path) -> None:
    table = ManifestTable(str(tmp_path))
    assert table.version_of("q") == -1
    key = CommitKey("q", 0)
    assert table.commit(key, [staged(table, key, "a"), staged(table, key, "d", DEAD_LETTERS)])
    assert not table.commit(key, [staged(table, key, "again")])
    assert (names(table), names(table, DEAD_LETTERS)) == (["a"], ["d"])
    other = CommitKey("r", 0)
    assert table.commit(other, [staged(table, other, "b")])
    assert names(ManifestTable(str(tmp_path))) == ["a", "b"]
    assert [table.version_of(app) for app in "qrs"] == [0, 0, -1]


def test_files_are_replaced_in_one_commit_and_a_lost_race_is_told(tmp_path: Path) -> None:
    table = ManifestTable(str(tmp_path))
    key = CommitKey("q", 0)
    table.commit(key, [staged(table, key, "a"), staged(table, key, "b")])
    (first, _) = table.files()
    later = CommitKey("q", 1)
    table.commit(later, [staged(table, later, "c")], [first])
    assert names(table) == ["b", "c"]
    with pytest.raises(TableConflict, match="took .* away"):
        table.commit(CommitKey("q", 2), [], [first])
    assert table.version_of("q") == 1


@pytest.mark.slow
def test_the_log_stays_small_over_many_commits(tmp_path: Path) -> None:
    table = ManifestTable(str(tmp_path))
    for version in range(100):
        key = CommitKey("q", version)
        table.commit(key, [staged(table, key, str(version))])
        once = CommitKey(f"{ONE_TIME}{version}", 0)
        table.commit(once, [])
    assert names(table) == [str(version) for version in range(100)]
    assert table.version_of("q") == 99
    assert len(list((tmp_path / "_log").iterdir())) <= 2 * CHECKPOINT_EVERY + 4


def test_damage_is_told_and_never_read_around(tmp_path: Path) -> None:
    table = ManifestTable(str(tmp_path))
    for version in range(3):
        table.commit(CommitKey("q", version), [])
    second = tmp_path / "_log" / f"{1:020d}.json"
    content = second.read_bytes()
    second.write_bytes(content.replace(b'"version":1', b'"version":9'))
    with pytest.raises(CorruptRecord, match="CRC"):
        table.state()
    second.unlink()
    with pytest.raises(CorruptRecord, match="commit 1 before it is missing"):
        table.state()


@pytest.mark.slow
@pytest.mark.parametrize("version", [0, 1, CHECKPOINT_EVERY, 2 * CHECKPOINT_EVERY])
def test_a_crash_at_each_file_operation_leaves_all_of_a_commit_or_nothing(version: int) -> None:
    """After a kill or a loss of power, the next run makes the commit exactly once."""
    call, seen = 0, set()
    while True:
        runtime = sim_runtime(seed=call)
        table = ManifestTable("table", runtime)
        for earlier in range(version):
            assert table.commit(CommitKey("q", earlier), [staged_at(table, earlier)])
        before = [str(each) for each in range(version)]
        after = [*before, str(version)]
        first = runtime.files.calls
        runtime.files.crash(first + call, after=call % 2 == 1)
        try:
            table.commit(CommitKey("q", version), [staged_at(table, version)])
            is_done = True
        except SimulatedCrash:
            is_done = False
        images = [runtime.files.survivor(), *runtime.files.crash_images(runtime.random, 4)]
        for image in images:
            found = ManifestTable("table", sim_runtime(files=image))
            assert names(found) in ([after] if is_done else [before, after]), call
            seen.add(len(names(found)) - version)
            found.commit(CommitKey("q", version), [staged_at(found, version)])
            assert names(found) == after
        if is_done:
            break
        call += 1
    assert seen == {0, 1}
    assert call >= 5, "the commit did things on disk"


def staged_at(table: ManifestTable, version: int) -> DataFile:
    return staged(table, CommitKey("q", version), str(version))


def test_only_what_was_never_committed_is_swept(tmp_path: Path) -> None:
    for app, version in (("q", 3), ("q", 4), ("r", 9)):
        directory = tmp_path / "data" / CommitKey(app, version).directory / "p=1"
        directory.mkdir(parents=True)
        (directory / "x.parquet").write_bytes(b"")
    assert sweep(str(tmp_path), "q", after=3) == 1
    left = {each.name for each in (tmp_path / "data").iterdir()}
    assert left == {CommitKey("q", 3).directory, CommitKey("r", 9).directory}


def fill(table: ManifestTable, count: int, app: str = "other") -> None:
    """Make commits until one of them makes a checkpoint."""
    begin = table.version_of(app) + 1
    for version in range(begin, begin + count):
        table.commit(CommitKey(app, version), [])


def test_two_processes_that_commit_one_batch_commit_it_once() -> None:
    key = CommitKey("q", 0)

    class Overtaken(ManifestTable):
        """A table to which another process commits just before this one has the lock."""

        def locked(self) -> AbstractContextManager[object]:
            other = ManifestTable(self.path, self.runtime)
            assert other.commit(key, [staged(other, key, "first")])
            return super().locked()

    table = Overtaken("table", sim_runtime())
    assert not table.commit(key, [staged(table, key, "second")])
    assert names(table) == ["first"]


def test_a_checkpoint_has_all_of_the_state() -> None:
    table = ManifestTable("table", sim_runtime())
    key = CommitKey("q", 0)
    table.commit(key, [staged(table, key, "a"), staged(table, key, "b")], properties={"at": 7})
    table.commit(CommitKey("q", 1), [], [table.files()[0]])
    before = table.state()
    fill(table, CHECKPOINT_EVERY)
    after = table.state()
    assert names(table) == ["b"]
    assert after.properties == before.properties == {"at": 7}
    assert after.removed == before.removed != {}
    assert table.version_of("q") == 1


@pytest.mark.parametrize("commits", [1, CHECKPOINT_EVERY])
def test_a_removed_file_is_deleted_an_hour_later(commits: int) -> None:
    runtime = sim_runtime()
    table = ManifestTable("table", runtime)
    key = CommitKey("q", 0)
    table.commit(key, [staged(table, key, "a"), staged(table, key, "b")])
    (removed, _) = table.files()
    table.commit(CommitKey("q", 1), [], [removed])
    fill(table, commits)
    runtime.clock.advance(DELETE_AFTER_MS - 1)
    fill(table, 1)
    assert runtime.files.stat(removed.path) is not None
    runtime.clock.advance(1)
    fill(table, 1)
    assert runtime.files.stat(removed.path) is None
    assert table.state().removed == {}


def test_a_reader_that_listed_the_log_finds_the_commits_since_the_checkpoint_before() -> None:
    table = ManifestTable("table", sim_runtime())
    fill(table, 2 * CHECKPOINT_EVERY + 1)
    kept = set(table.runtime.files.list("table/_log"))
    assert f"{CHECKPOINT_EVERY:020d}.checkpoint.json" in kept
    for version in range(CHECKPOINT_EVERY + 1, 2 * CHECKPOINT_EVERY + 1):
        assert f"{version:020d}.json" in kept
    assert f"{CHECKPOINT_EVERY - 1:020d}.json" not in kept


def test_a_checkpoint_remembers_the_newest_one_time_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("embedlog.spark.pipeline.tables.manifest._ONE_TIME_APPS_MAX", 4)
    table = ManifestTable("table", sim_runtime())
    for number in range(CHECKPOINT_EVERY + 1):
        table.commit(CommitKey(f"{ONE_TIME}{number}", 0), [])
    known = [n for n in range(CHECKPOINT_EVERY + 1) if table.version_of(f"{ONE_TIME}{n}") == 0]
    assert known == list(range(CHECKPOINT_EVERY - 3, CHECKPOINT_EVERY + 1))


def test_a_commit_survives_a_loss_of_power() -> None:
    runtime = sim_runtime()
    table = ManifestTable("table", runtime)
    table.commit(CommitKey("q", 0), [staged_at(table, 0)])
    for image in runtime.files.crash_images(runtime.random, 4):
        found = ManifestTable("table", sim_runtime(files=image))
        assert (names(found), found.version_of("q")) == (["0"], 0)
