"""`Disk`: the files of one broker, on a disk that a test can fill or break.

It wraps an `embedlog.runtime.files.Files`. On a full disk no file grows and none is created;
overwriting, renaming and removing still work. In a failing directory every call fails.
"""

from __future__ import annotations

from contextlib import contextmanager
from errno import EIO, ENOSPC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from embedlog.runtime.files import Bytes, DirectoryLock, File, Files, FileStat, Volume


class Disk:
    """One disk. A test changes `is_full` and `failing` (paths of directories) at any time."""

    __slots__ = ("_files", "boot_id", "descriptor_count_max", "failing", "is_full")

    def __init__(self, files: Files) -> None:
        self._files = files
        self.descriptor_count_max = files.descriptor_count_max
        self.boot_id = files.boot_id
        self.is_full = False
        self.failing: set[str] = set()

    def check(self, path: str) -> None:
        """Raise OSError if `path` lies in a failing directory."""
        for directory in self.failing:
            if path == directory or path.startswith(f"{directory}/"):
                raise OSError(EIO, f"Input/output error: {path}")

    @contextmanager
    def spared(self) -> Iterator[None]:
        """Suspend the faults while the caller, not the broker, works on the disk."""
        before = self.is_full, self.failing
        self.is_full, self.failing = False, set()
        try:
            yield
        finally:
            self.is_full, self.failing = before

    def check_room(self) -> None:
        """Raise OSError if the disk is full."""
        if self.is_full:
            raise OSError(ENOSPC, "No space left on device")

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        self.check(path)
        if create and self.is_full and self._files.stat(path) is None:
            self.check_room()
        return _DiskFile(self, path, self._files.open(path, create=create, writable=writable))

    def make_directory(self, path: str, mode: int = 0o777) -> None:
        self.check(path)
        if self._files.stat(path) is None:
            self.check_room()
        self._files.make_directory(path, mode)

    def read(self, path: str) -> bytes:
        self.check(path)
        return self._files.read(path)

    def stat(self, path: str) -> FileStat | None:
        self.check(path)
        return self._files.stat(path)

    def list(self, path: str) -> list[str]:
        self.check(path)
        return self._files.list(path)

    def rename(self, old: str, new: str) -> None:
        self.check(old)
        self.check(new)
        self._files.rename(old, new)

    def remove(self, path: str) -> None:
        self.check(path)
        self._files.remove(path)

    def volume(self, path: str) -> Volume:
        self.check(path)
        return self._files.volume(path)

    def sync_directory(self, path: str) -> None:
        self.check(path)
        self._files.sync_directory(path)

    def lock(self, path: str) -> DirectoryLock:
        self.check(path)
        return self._files.lock(path)


class _DiskFile:
    """An open file of the disk."""

    __slots__ = ("_disk", "_file", "_path")

    def __init__(self, disk: Disk, path: str, file: File) -> None:
        self._disk = disk
        self._path = path
        self._file = file

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        self._disk.check(self._path)
        if self._disk.is_full:
            size = sum(len(memoryview(buffer).cast("B")) for buffer in buffers)
            if position + size > self._file.size():
                self._disk.check_room()
        return self._file.write(buffers, position)

    def truncate(self, size: int) -> None:
        self._disk.check(self._path)
        self._file.truncate(size)

    def reserve(self, size: int) -> None:
        self._disk.check(self._path)
        if size > self._file.size():
            self._disk.check_room()
        self._file.reserve(size)

    def sync(self) -> None:
        self._disk.check(self._path)
        self._file.sync()

    def view(self, position: int, size: int) -> memoryview:
        self._disk.check(self._path)
        return self._file.view(position, size)

    def size(self) -> int:
        self._disk.check(self._path)
        return self._file.size()

    def close(self) -> None:
        self._file.close()
