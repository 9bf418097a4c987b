"""The record of the last commit, through syncs and damage."""

from __future__ import annotations

import pytest

from embedlog.errors import CorruptRecord
from embedlog.runtime.files import make_directory
from embedlog.storage.state_files import staged_layout
from embedlog.storage.state_files.commit_file import DONE, PREPARED, UNDONE, CommitFile
from embedlog.testing import SimFiles
from tests.storage.logs import DATA

PATH = staged_layout.commit_file(DATA)


def _commits(version: int, state: str) -> SimFiles:
    disk = SimFiles()
    make_directory(disk, PATH.rpartition("/")[0], sync=True)
    commits = CommitFile(disk, DATA)
    commit = commits.prepare((), id="id", application="app", version=version)
    if state != PREPARED:
        commits.decide(commit, state)
    return disk


def _damage(disk: SimFiles, path: str) -> None:
    disk.open(path).write([b"X"], 20)


def test_a_decision_is_synced() -> None:
    disk = _commits(3, DONE)
    assert disk.trace[-1] == ("sync_directory", PATH.rpartition("/")[0])


@pytest.mark.parametrize(("state", "is_done"), [(PREPARED, False), (DONE, True), (UNDONE, False)])
def test_the_files_beside_a_damaged_one_tell_the_decision(state: str, is_done: bool) -> None:
    disk = _commits(3, state)
    _damage(disk, PATH)
    again = CommitFile(disk, DATA)
    assert again.last is not None
    assert again.last.state == state
    assert again.is_done("app", 3) == is_done
    assert again.is_done("app", 2) == (state != PREPARED)
    assert not again.is_done("app", 4)


def test_with_all_files_damaged_nothing_is_committed_twice() -> None:
    disk = _commits(3, PREPARED)
    for path in (PATH, f"{PATH}.{DONE}", f"{PATH}.{UNDONE}"):
        _damage(disk, path)
    with pytest.raises(CorruptRecord):
        CommitFile(disk, DATA)
