"""`Disk`: the files of one broker, on a disk that a test can fill or break.

On a full disk no file grows and none is created; overwriting, renaming and removing still work. In
a failing directory every call fails.
"""

from __future__ import annotations

from contextlib import contextmanager
from errno import EIO, ENOSPC

from embedlog.runtime.wrapped_files import WrappedFile, WrappedFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from embedlog.common import T
    from embedlog.runtime.files import Bytes, File, Files


class Disk(WrappedFiles):
    """One disk. A test changes `is_full` and `failing` (paths of directories) at any time."""

    __slots__ = ("failing", "is_full")

    def __init__(self, files: Files) -> None:
        super().__init__(files)
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
        if self.is_full:
            raise OSError(ENOSPC, "No space left on device")

    def run(self, path: str, call: Callable[..., T], *arguments: object) -> T:
        self.check(path)
        return call(*arguments)

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

    def rename(self, old: str, new: str) -> None:
        self.check(new)
        super().rename(old, new)


class _DiskFile(WrappedFile):
    __slots__ = ()

    _wrapped: Disk

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        self._wrapped.check(self._path)
        if self._wrapped.is_full:
            size = sum(len(memoryview(buffer).cast("B")) for buffer in buffers)
            if position + size > self._file.size():
                self._wrapped.check_room()
        return self._file.write(buffers, position)

    def reserve(self, size: int) -> None:
        self._wrapped.check(self._path)
        if size > self._file.size():
            self._wrapped.check_room()
        self._file.reserve(size)

    def view(self, position: int, size: int) -> memoryview:
        self._wrapped.check(self._path)
        return self._file.view(position, size)
