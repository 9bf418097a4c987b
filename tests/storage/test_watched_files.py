"""`storage.watched_files`: the errors of a disk that end the use of a directory."""

from __future__ import annotations

from errno import EACCES, EEXIST, EINTR, EIO, EMFILE, ENODEV, ENOENT, ENOSPC, EROFS

import pytest

from embedlog.storage.watched_files import WatchedFiles
from embedlog.testing import SimFiles


class Watched:
    """A directory with one file, and the reported failures."""

    def __init__(self) -> None:
        self.disk = SimFiles()
        self.disk.make_directory("d/sub")
        self.told: list[tuple[str, OSError]] = []
        self.files = WatchedFiles(
            self.disk, "d", lambda path, error: self.told.append((path, error))
        )
        self.file = self.files.open("d/f", create=True)
        self.file.write([b"abc"], 0)

    def fail(self, errno: int) -> None:
        """Let the next call fail."""
        self.disk.fail(self.disk.calls, errno)


@pytest.fixture
def watched() -> Watched:
    return Watched()


CALLS = {
    "open": lambda w: w.files.open("d/f"),
    "read": lambda w: w.files.read("d/f"),
    "stat": lambda w: w.files.stat("d/f"),
    "list": lambda w: w.files.list("d"),
    "make_directory": lambda w: w.files.make_directory("d/e"),
    "rename": lambda w: w.files.rename("d/f", "d/g"),
    "remove": lambda w: w.files.remove("d/f"),
    "volume": lambda w: w.files.volume("d"),
    "sync_directory": lambda w: w.files.sync_directory("d"),
    "lock": lambda w: w.files.lock("d/.lock"),
    "write": lambda w: w.file.write([b"d"], 3),
    "truncate": lambda w: w.file.truncate(2),
    "reserve": lambda w: w.file.reserve(10),
    "sync": lambda w: w.file.sync(),
    "view": lambda w: w.file.view(0, 3),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_disk_that_fails_in_any_call_is_told_of_and_called_no_more(
    watched: Watched, call: str
) -> None:
    watched.fail(EIO)
    with pytest.raises(OSError, match="simulated") as told:
        CALLS[call](watched)
    assert watched.told == [("d", told.value)]
    calls = watched.disk.calls
    for each in CALLS.values():
        with pytest.raises(OSError, match="d is offline") as refused:
            each(watched)
        assert refused.value.errno == EIO
    watched.file.close()
    assert watched.disk.calls <= calls + 1
    assert len(watched.told) == 1


@pytest.mark.parametrize("errno", [EROFS, ENODEV, EACCES])
def test_so_does_one_that_is_read_only_or_gone(watched: Watched, errno: int) -> None:
    watched.fail(errno)
    with pytest.raises(OSError, match="simulated"):
        watched.file.sync()
    assert watched.files.failure is not None


@pytest.mark.parametrize("errno", [ENOSPC, EMFILE, EEXIST, EINTR, ENOENT])
def test_what_says_nothing_of_the_disk_is_passed_on(watched: Watched, errno: int) -> None:
    watched.fail(errno)
    with pytest.raises(OSError, match="simulated") as told:
        watched.files.open("d/f")
    assert told.value.errno == errno
    assert watched.told == []
    assert bytes(watched.files.open("d/f").view(0, 3)) == b"abc"


def test_a_directory_that_is_not_there_any_more_has_failed(watched: Watched) -> None:
    with pytest.raises(FileNotFoundError):
        watched.files.read("d/none")
    assert watched.told == []
    watched.disk.rename("d", "elsewhere")
    with pytest.raises(FileNotFoundError):
        watched.files.read("d/f")
    assert [path for path, _ in watched.told] == ["d"]
