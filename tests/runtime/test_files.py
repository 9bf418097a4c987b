"""The contract of `Files`, tested on the real, the in-memory and the simulated implementation."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from embedlog.errors import DirectoryLocked
from embedlog.runtime.files import (
    Files,
    NotOpened,
    read_view,
    remove_tree,
    write_fully,
    write_whole,
)
from embedlog.runtime.memory_files import MemoryFiles
from embedlog.runtime.os_files import OsFiles
from embedlog.testing import SimFiles
from tests.support import left_over

KINDS: dict[str, Callable[[], Files]] = {
    "os": OsFiles,
    "memory": MemoryFiles,
    "sim": SimFiles,
}


@pytest.fixture(params=KINDS)
def files(request: pytest.FixtureRequest) -> Files:
    return KINDS[request.param]()


@pytest.fixture
def root(files: Files, tmp_path: Path) -> str:
    directory = f"{tmp_path}/data"
    files.make_directory(directory)
    return directory


def test_a_file_returns_the_written_bytes_at_their_positions(files: Files, root: str) -> None:
    file = files.open(f"{root}/f", create=True)
    assert file.write([b"abc", bytearray(b"de"), memoryview(b"f")], 2) == 6
    assert bytes(file.view(0, 8)) == b"\0\0abcdef"
    assert file.write([b"XY"], 3) == 2
    assert files.read(f"{root}/f") == b"\0\0aXYdef"
    assert file.size() == 8
    stat = files.stat(f"{root}/f")
    assert stat is not None
    assert (stat.size, stat.is_directory) == (8, False)


@pytest.mark.slow
def test_a_file_that_grows_in_large_steps_keeps_every_byte_and_every_view(
    files: Files, root: str
) -> None:
    file = files.open(f"{root}/f", create=True)
    expected = bytearray()
    views = []
    # The writes pass through every kind of buffer of an in-memory file, and through several
    # mappings.
    for number, size in enumerate([5_000, 70_001, 300_000, 65_536, 9_000_000, 1, 20_000_000]):
        pieces = [bytes([number + 1]) * 21, bytes([number + 101]) * size]
        assert write_fully(file.write, pieces, len(expected)) == 21 + size
        expected += b"".join(pieces)
        views.append((len(expected), file.view(0, len(expected))))
    for size, view in views:
        assert view == memoryview(expected)[:size]


def test_a_view_is_read_only_and_outlives_growth_removal_and_close(files: Files, root: str) -> None:
    file = files.open(f"{root}/f", create=True)
    file.write([b"first"], 0)
    view = file.view(0, 5)
    assert view.readonly
    for size in (5000, 100_000, 3_000_000):
        file.write([b"x" * size], file.size())
    later = file.view(5, 5000)
    files.remove(f"{root}/f")
    file.close()
    del file
    assert bytes(view) == b"first"
    assert bytes(later) == b"x" * 5000


def test_a_view_beyond_the_end_is_refused(files: Files, root: str) -> None:
    file = files.open(f"{root}/f", create=True)
    file.write([b"abc"], 0)
    with pytest.raises(ValueError, match="of a file of 3"):
        file.view(1, 3)
    file.write([b"d"], 3)
    assert bytes(file.view(1, 3)) == b"bcd"


def test_a_file_truncated_while_it_is_mapped_is_read_up_to_its_new_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OsFiles().open(f"{tmp_path}/f", create=True)
    file.write([b"abc"], 0)
    file.reserve(1 << 20)
    real_mmap = mmap.mmap

    def cut_first(*arguments: int, **named: int) -> mmap.mmap:
        file.truncate(3)  # like another thread that rolls the segment
        return real_mmap(*arguments, **named)

    monkeypatch.setattr("mmap.mmap", cut_first)
    assert bytes(file.view(0, 3)) == b"abc"
    with pytest.raises(ValueError, match="of a file of 3"):
        file.view(0, 4)
    file.reserve(1 << 20)
    with pytest.raises(ValueError, match="of a file of 3"):
        file.view(0, 4)  # the file had room for four bytes when the size was read


def test_reserve_extends_with_zeros_and_never_shrinks(files: Files, root: str) -> None:
    file = files.open(f"{root}/f", create=True)
    file.write([b"abc"], 0)
    file.reserve(10_000)
    assert file.size() == 10_000
    assert bytes(file.view(0, 10_000)) == b"abc" + bytes(9_997)
    file.reserve(5)
    assert file.size() == 10_000


def test_truncate_cuts_and_later_growth_is_zeros(files: Files, root: str) -> None:
    file = files.open(f"{root}/f", create=True)
    file.write([b"abcdef"], 0)
    file.truncate(2)
    assert files.read(f"{root}/f") == b"ab"
    file.truncate(4)
    assert files.read(f"{root}/f") == b"ab\0\0"


def test_two_handles_see_one_file(files: Files, root: str) -> None:
    one = files.open(f"{root}/f", create=True)
    other = files.open(f"{root}/f")
    one.write([b"abc"], 0)
    other.write([b"d"], 3)
    assert bytes(one.view(0, 4)) == b"abcd"
    assert bytes(other.view(0, 4)) == b"abcd"


def test_a_missing_file_or_directory_is_an_error_with_errno(files: Files, root: str) -> None:
    for call in (
        lambda: files.open(f"{root}/missing"),
        lambda: files.read(f"{root}/missing"),
        lambda: files.remove(f"{root}/missing"),
        lambda: files.rename(f"{root}/missing", f"{root}/x"),
        lambda: files.list(f"{root}/missing"),
        lambda: files.open(f"{root}/no/where", create=True),
        lambda: files.sync_directory(f"{root}/missing"),
    ):
        with pytest.raises(FileNotFoundError):
            call()
    assert files.stat(f"{root}/missing") is None


def test_directories_are_made_listed_and_removed(files: Files, root: str) -> None:
    files.make_directory(f"{root}/a/b")
    files.make_directory(f"{root}/a/b")
    files.open(f"{root}/a/z", create=True).close()
    files.open(f"{root}/a/c", create=True).close()
    assert files.list(f"{root}/a") == ["b", "c", "z"]
    stat = files.stat(f"{root}/a/b")
    assert stat is not None
    assert stat.is_directory
    with pytest.raises(OSError) as caught:
        files.remove(f"{root}/a")
    assert caught.value.errno == errno.ENOTEMPTY
    files.remove(f"{root}/a/b")
    remove_tree(files, f"{root}/a")
    remove_tree(files, f"{root}/a")
    assert files.list(root) == []


def test_rename_replaces_files_and_moves_whole_directories(files: Files, root: str) -> None:
    files.open(f"{root}/new", create=True).write([b"new"], 0)
    files.open(f"{root}/old", create=True).write([b"old"], 0)
    files.rename(f"{root}/new", f"{root}/old")
    assert files.list(root) == ["old"]
    assert files.read(f"{root}/old") == b"new"
    files.make_directory(f"{root}/d/e")
    files.open(f"{root}/d/e/f", create=True).write([b"deep"], 0)
    files.rename(f"{root}/d", f"{root}/moved")
    assert files.read(f"{root}/moved/e/f") == b"deep"
    assert files.stat(f"{root}/d") is None


def test_a_second_owner_is_refused_until_the_first_unlocks(files: Files, root: str) -> None:
    lock = files.lock(f"{root}/.lock")
    with pytest.raises(DirectoryLocked, match="held by"):
        files.lock(f"{root}/.lock")
    lock.close()
    lock.close()
    files.lock(f"{root}/.lock").close()


def test_write_whole_replaces_and_leaves_no_other_file(files: Files, root: str) -> None:
    for content in (b"a long first content", b"short", b""):
        write_whole(files, f"{root}/state", content, sync=True)
        assert files.read(f"{root}/state") == content
        assert bytes(read_view(files, f"{root}/state")) == content
    assert files.list(root) == ["state"]


def test_a_file_may_be_closed_twice(files: Files, root: str) -> None:
    file = files.open(f"{root}/f", create=True)
    file.close()
    file.close()


def test_write_fully_continues_after_short_writes() -> None:
    disk = SimFiles()
    file = disk.open("f", create=True)
    for call, size in ((1, 3), (2, 1), (3, 4)):
        disk.write_short(call, size)
    assert write_fully(file.write, [b"abcd", b"", b"efghij"], 5) == 10
    assert disk.read("f") == bytes(5) + b"abcdefghij"


def test_write_fully_reports_a_full_disk_when_nothing_is_written() -> None:
    with pytest.raises(OSError) as caught:
        write_fully(lambda _buffers, _position: 0, [b"a"], 0)
    assert caught.value.errno == errno.ENOSPC


# The real one


def test_the_lock_names_the_process_that_holds_it(tmp_path: Path) -> None:
    lock = OsFiles().lock(f"{tmp_path}/.lock")
    code = (
        "import sys\n"
        "from embedlog.runtime.os_files import OsFiles\n"
        "from embedlog.errors import DirectoryLocked\n"
        "try:\n    OsFiles().lock(sys.argv[1])\n"
        "except DirectoryLocked as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, f"{tmp_path}/.lock"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert f"pid {os.getpid()} " in done.stdout
    lock.close()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="POSIX locks")
def test_a_java_broker_stays_locked_out_after_this_process_reads_its_lock(tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(tmp_path)
    path, other = f"{tmp_path}/.lock", f"{tmp_path}/linked/.lock"
    lock = OsFiles().lock(path)

    def posix_lock() -> str:
        code = (
            "import fcntl, sys\n"
            "file = open(sys.argv[1], 'r+')\n"
            "try:\n    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
            "except OSError:\n    print('held')\n"
            "else:\n    print('free')\n"
        )
        command = [sys.executable, "-c", code, path]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert posix_lock() == "held"
    for name in (path, other):
        with pytest.raises(DirectoryLocked, match=f"pid {os.getpid()}, this process"):
            OsFiles().lock(name)
        assert b"pid " in OsFiles().read(name)
        assert posix_lock() == "held"
    lock.note_addresses(["127.0.0.1:9092"])
    assert OsFiles().read(other).endswith(b"at 127.0.0.1:9092\n")
    assert posix_lock() == "held"
    lock.close()
    assert posix_lock() == "free"
    again = OsFiles().lock(other)
    assert posix_lock() == "held"
    again.close()


def test_one_of_many_threads_gets_the_lock_and_keeps_it(tmp_path: Path) -> None:
    held: list[object] = []
    refused: list[BaseException] = []

    def take() -> None:
        try:
            held.append(OsFiles().lock(f"{tmp_path}/.lock"))
        except DirectoryLocked as error:
            refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (1, 15)


def test_a_forked_child_loses_lock_and_handles_and_the_parent_keeps_them(tmp_path: Path) -> None:
    files = OsFiles()
    lock = files.lock(f"{tmp_path}/.lock")
    file = files.open(f"{tmp_path}/f", create=True)
    file.write([b"parent"], 0)
    view = file.view(0, 6)
    child = os.fork()
    if child == 0:
        outcome = 0
        try:
            file.write([b"child!"], 0)
            outcome = 1
        except OSError:
            if bytes(view) != b"parent":
                outcome = 2
        os._exit(outcome)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert files.read(f"{tmp_path}/f") == b"parent"
    with pytest.raises(DirectoryLocked):
        files.lock(f"{tmp_path}/.lock")
    assert file.write([b"!"], 6) == 1
    lock.close()


def test_a_directory_reports_the_size_of_its_volume(tmp_path: Path) -> None:
    volume = OsFiles().volume(f"{tmp_path}")
    assert 0 <= volume.usable <= volume.size
    assert volume.size == shutil.disk_usage(tmp_path).total


def test_memory_reports_no_volume() -> None:
    volume = MemoryFiles().volume("data")
    assert (volume.size, volume.usable) == (-1, -1)


@pytest.mark.slow
@pytest.mark.parametrize("can_map", [True, False])
def test_memory_that_grows_keeps_its_content_and_its_views(
    can_map: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not can_map:

        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")

        monkeypatch.setattr("mmap.mmap", refuse)
    file = MemoryFiles().open("f", create=True)
    views, written = [], b""
    for number in range(40):
        chunk = bytes([number]) * 300_001
        assert file.write([chunk], len(written)) == len(chunk)
        views.append((file.view(len(written), len(chunk)), chunk))
        written += chunk
    assert file.size() == len(written)
    assert file.view(0, len(written)) == written
    assert all(view == chunk for view, chunk in views)
    file.truncate(2_000_000)
    file.truncate(9_000_000)
    assert file.view(0, 9_000_000) == written[:2_000_000] + bytes(7_000_000)


def test_a_dropped_handle_closes_its_descriptor(tmp_path: Path) -> None:
    files = OsFiles()
    before = left_over.descriptors()
    for number in range(50):
        file = files.open(f"{tmp_path}/{number}", create=True)
        file.write([b"x"], 0)
        file.view(0, 1)
        del file
    assert left_over.descriptors() <= before


# The simulated one


def test_a_planned_failure_hits_one_call_or_all_later_ones() -> None:
    disk = SimFiles()
    file = disk.open("f", create=True)
    disk.fail(1, errno.EIO)
    with pytest.raises(OSError, match="simulated") as caught:
        file.write([b"a"], 0)
    assert caught.value.errno == errno.EIO
    file.write([b"a"], 0)
    disk.fail(disk.calls, errno.ENOSPC, forever=True)
    for _ in range(3):
        with pytest.raises(OSError, match="simulated"):
            file.write([b"b"], 1)
    assert disk.trace[0] == ("open", "f")


def test_a_sync_fails_if_its_directory_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, *_: object, **__: object) -> int:
        raise OSError(errno.ENOMEM, "Cannot allocate memory", path)

    with monkeypatch.context() as patches:
        patches.setattr("os.open", refuse)
        with pytest.raises(NotOpened) as refusal:
            OsFiles().sync_directory(f"{tmp_path}")
    assert (refusal.value.errno, refusal.value.filename) == (errno.ENOMEM, f"{tmp_path}")
    with pytest.raises(FileNotFoundError):
        OsFiles().sync_directory(f"{tmp_path}/none")
