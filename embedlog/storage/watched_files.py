"""File calls in one of several data directories: after the first error of its disk all are refused.

This is Kafka's LogDirFailureChannel. Some errors do not mean that the disk has failed: a shortage
of space or descriptors, or a missing name. They are only passed on. After any other error the
directory is neither read nor written.
"""

from __future__ import annotations

from errno import (
    EAGAIN,
    EEXIST,
    EINTR,
    EIO,
    EISDIR,
    ENAMETOOLONG,
    ENOENT,
    ENOTDIR,
    ENOTEMPTY,
    EXDEV,
)

from embedlog.storage.log_health import HARMLESS_ERRORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.common import T
    from embedlog.runtime.files import Bytes, DirectoryLock, File, Files, FileStat, Volume

_HARMLESS = {*HARMLESS_ERRORS, EAGAIN, EEXIST, EINTR, EISDIR, ENAMETOOLONG, ENOTEMPTY, EXDEV}
_MISSING = (ENOENT, ENOTDIR)
"""Errors for a missing name: harmless unless the data directory itself is missing, because its disk
was unmounted."""


class WatchedFiles:
    """An `embedlog.runtime.files.Files` that passes calls to another one and watches their errors.

    `path` is the data directory.
    """

    def __init__(self, files: Files, path: str, on_failure: Callable[[str, OSError], None]) -> None:
        """`on_failure(path, error)` is called once, by a thread that may hold any lock."""
        self._files = files
        self._on_failure = on_failure
        self.path = path
        self.descriptor_count_max = files.descriptor_count_max
        self.boot_id = files.boot_id
        self.failure: OSError | None = None
        """The error of the disk; None while it works."""

    def run(self, call: Callable[..., T], *arguments: object) -> T:
        """Run a file call unless the disk has failed; record its error if the disk fails now."""
        if self.failure is not None:
            raise OSError(EIO, f"{self.path} is offline: {self.failure}")
        try:
            return call(*arguments)
        except OSError as error:
            self._note(error)
            raise

    def _note(self, error: OSError) -> None:
        if error.errno in _HARMLESS or self.failure is not None:
            return
        if error.errno in _MISSING:
            try:
                if self._files.stat(self.path) is not None:
                    return
            except OSError as why:
                error = why
        self.failure = error
        self._on_failure(self.path, error)

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        def call() -> File:
            return self._files.open(path, create=create, writable=writable)

        return _WatchedFile(self, self.run(call))

    def read(self, path: str) -> bytes:
        return self.run(self._files.read, path)

    def stat(self, path: str) -> FileStat | None:
        return self.run(self._files.stat, path)

    def list(self, path: str) -> list[str]:
        return self.run(self._files.list, path)

    def make_directory(self, path: str, mode: int = 0o777) -> None:
        self.run(self._files.make_directory, path, mode)

    def rename(self, old: str, new: str) -> None:
        self.run(self._files.rename, old, new)

    def remove(self, path: str) -> None:
        self.run(self._files.remove, path)

    def volume(self, path: str) -> Volume:
        return self.run(self._files.volume, path)

    def sync_directory(self, path: str) -> None:
        self.run(self._files.sync_directory, path)

    def lock(self, path: str) -> DirectoryLock:
        return self.run(self._files.lock, path)


class _WatchedFile:
    __slots__ = ("_file", "_watched")

    def __init__(self, watched: WatchedFiles, file: File) -> None:
        self._watched = watched
        self._file = file

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        return self._watched.run(self._file.write, buffers, position)

    def truncate(self, size: int) -> None:
        self._watched.run(self._file.truncate, size)

    def reserve(self, size: int) -> None:
        self._watched.run(self._file.reserve, size)

    def sync(self) -> None:
        self._watched.run(self._file.sync)

    def view(self, position: int, size: int) -> memoryview:
        return self._watched.run(self._file.view, position, size)

    def size(self) -> int:
        return self._watched.run(self._file.size)

    def close(self) -> None:
        self._file.close()
