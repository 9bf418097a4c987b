"""`MemoryFiles`: a file system in memory, for a log that was opened without a path.

A file is a buffer that grows by doubling. Growth makes a new buffer and leaves the former one to
the views that still use it: what they show was published and no longer changes.
"""

from __future__ import annotations

from errno import EEXIST, EISDIR, ENOENT, ENOTEMPTY
from os import strerror

from embedlog.errors import DirectoryLocked
from embedlog.runtime.clock import Clock
from embedlog.runtime.files import DirectoryLock, File, Files, FileStat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.common import Buffer

_SMALLEST = 4096


class MemoryNode:
    """The content of one file, shared by everyone who has it open."""

    __slots__ = ("_writable", "modified_ms", "readable", "size")

    def __init__(self) -> None:
        self._writable = memoryview(bytearray())
        self.readable = self._writable.toreadonly()
        self.size = 0
        self.modified_ms = 0

    def write(self, position: int, buffer: Buffer) -> int:
        """Store a buffer at `position`; what lies between the end and there reads as zeros."""
        with memoryview(buffer).cast("B") as source:
            end = position + len(source)
            if end > len(self._writable):
                self._grow(end)
            self._writable[position:end] = source
        self.size = max(self.size, end)
        return end - position

    def resize(self, size: int) -> None:
        """Cut or extend with zeros. No view shows what is cut off, so the buffer stays."""
        if size < self.size:
            self._writable[size : self.size] = bytes(self.size - size)
        elif size > len(self._writable):
            self._grow(size)
        self.size = size

    def _grow(self, size: int) -> None:
        former = self._writable[: self.size]
        grown = memoryview(bytearray(max(size, 2 * len(self._writable), _SMALLEST)))
        grown[: len(former)] = former
        self._writable = grown
        self.readable = grown.toreadonly()


class MemoryFile(File):
    """An open file of `MemoryFiles`. See `File`."""

    __slots__ = ("_files", "_node")

    def __init__(self, node: MemoryNode, files: MemoryFiles) -> None:
        self._node = node
        self._files = files

    def write(self, buffers: Sequence[Buffer], position: int) -> int:
        start = position
        for buffer in buffers:
            position += self._node.write(position, buffer)
        return position - start

    def sync(self) -> None:
        pass

    def truncate(self, size: int) -> None:
        self._node.resize(size)

    def reserve(self, size: int) -> None:
        if size > self._node.size:
            self._node.resize(size)

    def view(self, position: int, size: int) -> memoryview:
        end = position + size
        if end > self._node.size:
            raise ValueError(f"view to byte {end} of a file of {self._node.size}")
        return self._node.readable[position:end]

    def size(self) -> int:
        return self._node.size

    def close(self) -> None:
        pass


class MemoryLock(DirectoryLock):
    """A name taken in the file system's set of locks."""

    __slots__ = ("_locks", "_path")

    def __init__(self, path: str, locks: set[str]) -> None:
        self._path = path
        self._locks = locks
        if path in locks:
            raise DirectoryLocked(f"{path} is held by this process")
        locks.add(path)

    def close(self) -> None:
        self._locks.discard(self._path)


class MemoryFiles(Files):
    """A tree of directories and files in memory. See `Files`.

    Thread-safe as far as the storage layer needs: two threads never write one file, nor change
    one directory, at the same time.
    """

    boot_id = "memory"

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock if clock is not None else Clock()
        self._directories: dict[str, dict[str, MemoryNode | None]] = {"": {}}
        """Directory -> name -> file, or None for a directory."""
        self._locks: set[str] = set()

    def open(self, path: str, *, create: bool = False) -> File:
        return self._handle(self._node(path, create=create), path)

    def read(self, path: str) -> bytes:
        node = self._node(path)
        return bytes(node.readable[: node.size])

    def stat(self, path: str) -> FileStat | None:
        path = _clean(path)
        if path in self._directories:
            return FileStat(size=0, modified_ms=0, is_directory=True)
        parent, _, name = path.rpartition("/")
        node = self._directories.get(parent, {}).get(name)
        if node is None:
            return None
        return FileStat(size=node.size, modified_ms=node.modified_ms, is_directory=False)

    def list(self, path: str) -> list[str]:
        return sorted(self._directory(_clean(path)))

    def make_directory(self, path: str) -> None:
        path = _clean(path)
        if path in self._directories:
            return
        parent, _, name = path.rpartition("/")
        self.make_directory(parent)
        if name in self._directories[parent]:
            raise _error(EEXIST, path)
        self._link(parent, name, None)
        self._directories[path] = {}

    def rename(self, old: str, new: str) -> None:
        old, new = _clean(old), _clean(new)
        old_parent, _, old_name = old.rpartition("/")
        new_parent, _, new_name = new.rpartition("/")
        if old_name not in self._directory(old_parent):
            raise _error(ENOENT, old)
        node = self._directories[old_parent][old_name]
        self._check_replaceable(node, new)
        self._link(self._existing(new_parent), new_name, node)
        self._unlink(old_parent, old_name)
        if node is None:
            for path in [p for p in self._directories if p == old or p.startswith(old + "/")]:
                self._directories[new + path[len(old) :]] = self._directories.pop(path)

    def remove(self, path: str) -> None:
        path = _clean(path)
        parent, _, name = path.rpartition("/")
        if name not in self._directory(parent):
            raise _error(ENOENT, path)
        if self._directories.get(path):
            raise _error(ENOTEMPTY, path)
        self._directories.pop(path, None)
        self._unlink(parent, name)

    def sync_directory(self, path: str) -> None:
        self._directory(_clean(path))

    def lock(self, path: str) -> DirectoryLock:
        path = _clean(path)
        self._node(path, create=True)
        return MemoryLock(path, self._locks)

    # What the simulated twin watches

    def _handle(self, node: MemoryNode, path: str) -> File:
        return MemoryFile(node, self)

    def _new_node(self) -> MemoryNode:
        return MemoryNode()

    def _link(self, parent: str, name: str, node: MemoryNode | None) -> None:
        self._directories[parent][name] = node

    def _unlink(self, parent: str, name: str) -> None:
        del self._directories[parent][name]

    # Look-ups

    def _directory(self, path: str) -> dict[str, MemoryNode | None]:
        found = self._directories.get(path)
        if found is None:
            raise _error(ENOENT, path)
        return found

    def _existing(self, path: str) -> str:
        self._directory(path)
        return path

    def _node(self, path: str, *, create: bool = False) -> MemoryNode:
        path = _clean(path)
        if path in self._directories:
            raise _error(EISDIR, path)
        parent, _, name = path.rpartition("/")
        node = self._directory(parent).get(name)
        if node is None:
            if not create:
                raise _error(ENOENT, path)
            node = self._new_node()
            node.modified_ms = self.clock.wall_ms()
            self._link(parent, name, node)
        return node

    def _check_replaceable(self, node: MemoryNode | None, path: str) -> None:
        if path not in self._directories:
            return
        if node is not None:
            raise _error(EISDIR, path)
        if self._directories[path]:
            raise _error(ENOTEMPTY, path)


def _clean(path: str) -> str:
    return path.strip("/")


def _error(code: int, path: str) -> OSError:
    return OSError(code, strerror(code), path)
