"""Files that another process owns or writes, and copies of files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from embedlog.errors import ClosedError
from embedlog.runtime import descriptors
from embedlog.runtime.copied_file import CopiedFile
from embedlog.runtime.os_files import OsFiles


@pytest.mark.parametrize(
    "call",
    [
        lambda files, path: files.open(path, create=True),
        lambda files, path: files.open(path),
        lambda files, path: files.make_directory(f"{path}-directory"),
        lambda files, path: files.rename(path, f"{path}-new"),
        lambda files, path: files.remove(path),
        lambda files, path: files.lock(f"{path}-lock"),
    ],
    ids=["create", "open", "make_directory", "rename", "remove", "lock"],
)
def test_another_process_changes_nothing(
    call: Callable[[OsFiles, str], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, path = OsFiles(), tmp_path / "file"
    path.write_bytes(b"content")
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(ClosedError, match="before the process forked"):
        call(files, str(path))
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_lock_file_ends_with_its_present_addresses(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    lock = OsFiles().lock(str(path))
    alone = path.stat().st_size
    lock.note_addresses(["127.0.0.1:9092", "127.0.0.1:9093"])
    assert path.stat().st_size > alone
    lock.note_addresses([])
    assert path.stat().st_size == alone
    lock.close()


def test_a_file_that_another_process_has_cut_is_not_read_to_its_former_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    file = OsFiles().open(str(path), writable=False)
    assert file.view(0, 7) == b"content"
    os.truncate(path, 5)
    with pytest.raises(ValueError, match="view to byte 7, 5 are there"):
        file.view(0, 7)
    file.close()


def test_a_copy_follows_writes_and_cuts_and_its_views_do_not(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    file = CopiedFile(descriptors.open_descriptor(path, create=True))
    file.write([b"content"], 0)
    before = file.view(0, 7)
    file.write([b"XY"], 2)
    assert (before, file.view(0, 7)) == (b"content", b"coXYent")
    file.truncate(3)
    file.write([b"-"], 3)
    assert file.view(0, 4) == b"coX-"
    file.close()
