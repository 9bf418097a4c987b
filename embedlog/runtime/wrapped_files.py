"""`WrappedFiles`: files that pass each call to other files, with something done around it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.common import T
    from embedlog.runtime.files import Bytes, DirectoryLock, File, Files, FileStat, Volume


class WrappedFiles:
    """Passes calls to another `Files`, each through `run`, except `close` of a file."""

    __slots__ = ("_files", "absolute", "boot_id", "descriptor_count_max")

    def __init__(self, files: Files) -> None:
        self._files = files
        self.descriptor_count_max = files.descriptor_count_max
        self.boot_id = files.boot_id
        self.absolute = files.absolute

    def run(self, path: str, call: Callable[..., T], *arguments: object) -> T:
        """Make a call that concerns the file or directory at `path`."""
        return call(*arguments)

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        def call() -> File:
            return self._files.open(path, create=create, writable=writable)

        return WrappedFile(self, path, self.run(path, call))

    def read(self, path: str) -> bytes:
        return self.run(path, self._files.read, path)

    def stat(self, path: str) -> FileStat | None:
        return self.run(path, self._files.stat, path)

    def list(self, path: str) -> list[str]:
        return self.run(path, self._files.list, path)

    def make_directory(self, path: str, mode: int = 0o777) -> None:
        self.run(path, self._files.make_directory, path, mode)

    def rename(self, old: str, new: str) -> None:
        self.run(old, self._files.rename, old, new)

    def remove(self, path: str) -> None:
        self.run(path, self._files.remove, path)

    def volume(self, path: str) -> Volume:
        return self.run(path, self._files.volume, path)

    def sync_directory(self, path: str) -> None:
        self.run(path, self._files.sync_directory, path)

    def lock(self, path: str, *, names_owner: bool = True) -> DirectoryLock:
        return self.run(path, lambda: self._files.lock(path, names_owner=names_owner))


class WrappedFile:
    """An open file of `WrappedFiles`."""

    __slots__ = ("_file", "_path", "_wrapped")

    def __init__(self, wrapped: WrappedFiles, path: str, file: File) -> None:
        self._wrapped = wrapped
        self._path = path
        self._file = file

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        return self._wrapped.run(self._path, self._file.write, buffers, position)

    def truncate(self, size: int) -> None:
        self._wrapped.run(self._path, self._file.truncate, size)

    def reserve(self, size: int) -> None:
        self._wrapped.run(self._path, self._file.reserve, size)

    def sync(self) -> None:
        self._wrapped.run(self._path, self._file.sync)

    def view(self, position: int, size: int) -> memoryview:
        return self._wrapped.run(self._path, self._file.view, position, size)

    def size(self) -> int:
        return self._wrapped.run(self._path, self._file.size)

    def close(self) -> None:
        self._file.close()
