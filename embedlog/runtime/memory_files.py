"""`MemoryFiles`: a file system in memory, for a log without a path.

A file is a buffer that grows by doubling. Growth makes a new buffer; views keep the former buffer,
whose published bytes no longer change. A copy of a file shares the buffer until one of the two
changes a byte that both show. From 256 KiB on the buffer is a mapping. A mapping takes
memory only for written pages, so it can have much spare room and is seldom copied.

The mapping does not use large pages. A virtual machine that returns free memory to its host returns
large pages, and getting one back takes 5 ms, 2.7 us a KiB. Small pages take 0.5 us a KiB on such a
machine. On other machines they take hardly longer than large pages.
"""

from __future__ import annotations

import sys
from errno import EEXIST, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY
from os import strerror

from embedlog.errors import DirectoryLocked
from embedlog.runtime.clock import Clock
from embedlog.runtime.files import DirectoryLock, File, Files, FileStat, Volume

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from mmap import mmap

    from embedlog.runtime.files import Bytes

_SMALLEST = 4096
_MAPPED_MIN = 256 << 10
_MAPPED_SPARE = 31
"""Spare bytes of a mapping for each byte needed; at most `_MAPPED_SPARE_MAX` in all."""
_MAPPED_SPARE_MAX = 256 << 20
_POPULATED_MIN = 64 << 10
_POPULATE_WRITE = 23
"""MADV_POPULATE_WRITE (Linux 5.14), which `mmap` does not name."""
_JOINED_MAX = 4_096
"""The buffers of a write are joined first if the last one is smaller than this: one more copy costs
less than several stores."""


class MemoryNode:
    """The content of one file, shared by all its open handles."""

    __slots__ = ("_mapping", "_shared_size", "_views", "modified_ms", "size")

    def __init__(self) -> None:
        self._views = _EMPTY
        """The buffer as (writable view, read-only view), in one pair to replace both at once."""
        self._mapping: mmap | None = None
        """The mapping that backs the buffer; None for a plain buffer."""
        self._shared_size = 0
        """Bytes at the begin of the buffer that copies show: they must not change. `_WHOLE` if the
        buffer belongs to another node."""
        self.size = 0
        self.modified_ms = 0

    def copied(self) -> MemoryNode:
        """Return a node with the same content, in the same buffer until one of the two changes it.

        Requires: no thread writes to this node meanwhile.
        """
        other = MemoryNode()
        other.size, other.modified_ms = self.size, self.modified_ms
        other._views, other._mapping, other._shared_size = self._views, self._mapping, _WHOLE
        self._shared_size = max(self._shared_size, self.size)
        return other

    def view(self, position: int, end: int) -> memoryview:
        """Return a read-only view of [position, end)."""
        return self._views[1][position:end]

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        """Store the buffers from `position` on; a gap behind the present end becomes zeros."""
        if len(buffers[-1]) < _JOINED_MAX:
            joined = b"".join(buffers)
            size = len(joined)
            end = position + size
            room = self._views[0]
            if self._shared_size <= position and end <= len(room):
                room[position:end] = joined
                if end > self.size:  # noqa: PLR1730 - max() is a call more for each append
                    self.size = end
                return size
        size = sum(map(len, buffers))
        end = position + size
        if position < self._shared_size:
            self._unshare(end)
        if end > len(self._views[0]):
            self._make_room(end)
        if size >= _POPULATED_MIN and self._mapping is not None:
            _populate(self._mapping, position, end)
        target = self._views[0]
        for buffer in buffers:
            stop = position + len(buffer)
            target[position:stop] = buffer
            position = stop
        self.size = max(self.size, end)
        return size

    def resize(self, size: int) -> None:
        """Cut the content, or extend it with zeros.

        The buffer can stay in use, because no view shows the bytes that are cut off.
        """
        if size < self._shared_size and size < self.size:
            self._shared_size = _WHOLE  # copies show the bytes that are cut off
        elif size < self.size:
            self._views[0][size : self.size] = bytes(self.size - size)
        elif size > self.size and self._shared_size > self.size:
            self._unshare(size)
        elif size > len(self._views[0]):
            self._make_room(size)
        self.size = size

    def _make_room(self, size: int) -> None:
        self._move(max(size, 2 * len(self._views[0]), _SMALLEST))

    def _unshare(self, end: int) -> None:
        """Move to a buffer of this node alone, with room up to `end`."""
        self._move(max(end, self.size, _SMALLEST))
        self._shared_size = 0

    def _move(self, wanted: int) -> None:
        present = self._views[0]
        self._mapping = mapping = _mapped(wanted)
        grown = memoryview(bytearray(wanted) if mapping is None else mapping)
        grown[: self.size] = present[: self.size]
        self._views = grown, grown.toreadonly()


def _mapped(size: int) -> mmap | None:
    """Return a mapping of zeros of at least `size`; None if a plain buffer is better or needed."""
    if size < _MAPPED_MIN:
        return None
    try:
        from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
    except ImportError:
        return None  # Windows

    spare = min(size * _MAPPED_SPARE, _MAPPED_SPARE_MAX)
    try:
        return mmap(-1, size + spare, flags=MAP_PRIVATE | MAP_ANONYMOUS)
    except OSError:
        return None  # the system refuses more memory than it has


def _populate(mapping: mmap, start: int, end: int) -> None:
    """Make the pages of a large write in one call: 0.35 us a KiB; page by page it is 0.42."""
    if sys.platform == "linux":
        from mmap import PAGESIZE

        start -= start % PAGESIZE
        try:  # noqa: SIM105 - not worth the import of contextlib
            mapping.madvise(_POPULATE_WRITE, start, end - start)
        except OSError:
            pass  # an older system makes the pages at page faults


_EMPTY = memoryview(bytearray()), memoryview(b"")
_WHOLE = 1 << 62


class MemoryFile(File):
    """An open file of `MemoryFiles`. See `File`."""

    __slots__ = ("_files", "_node")

    def __init__(self, node: MemoryNode, files: MemoryFiles) -> None:
        self._node = node
        self._files = files

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        return self._node.write(buffers, position)

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
        return self._node.view(position, end)

    def size(self) -> int:
        return self._node.size

    def close(self) -> None:
        pass


class MemoryLock(DirectoryLock):
    """A lock: its path stays in the file system's set of locked paths until `close`."""

    __slots__ = ("_locks", "_name_owner", "_path")

    def __init__(self, path: str, locks: set[str], name_owner: Callable[[], None]) -> None:
        self._path = path
        self._locks = locks
        self._name_owner = name_owner
        if path in locks:
            raise DirectoryLocked(f"{path} is held by this process")
        locks.add(path)

    @property
    def is_held(self) -> bool:
        return self._path in self._locks

    def name_owner(self) -> None:
        self._name_owner()

    def note_addresses(self, addresses: Sequence[str]) -> None:
        """Do nothing: no other process can meet this lock."""

    def close(self) -> None:
        self._locks.discard(self._path)


class MemoryDirectory:
    """The entries of one directory, by name."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[str, MemoryNode | MemoryDirectory] = {}

    def copied(self) -> MemoryDirectory:
        """Return a copy of the directory and of everything below it: see `MemoryNode.copied`."""
        other = MemoryDirectory()
        other.entries = {name: entry.copied() for name, entry in self.entries.copy().items()}
        return other


class MemoryTree:
    """The directories and files of a file system."""

    __slots__ = ("_clock", "root")

    def __init__(self, clock: Clock) -> None:
        """`clock` gives the modification time of new files."""
        self._clock = clock
        self.root = self.new_directory()

    def copied(self, clock: Clock) -> MemoryTree:
        """Return a copy of the whole tree, which changes independently: see `MemoryNode.copied`."""
        other = MemoryTree(clock)
        other.root = self.root.copied()
        return other

    def find(self, path: str) -> MemoryNode | MemoryDirectory | None:
        """Return the file or directory at `path`, or None."""
        found: MemoryNode | MemoryDirectory | None = self.root
        for name in path.split("/"):
            if name:
                if not isinstance(found, MemoryDirectory):
                    return None
                found = found.entries.get(name)
        return found

    def directory(self, path: str) -> MemoryDirectory:
        """Return the directory at `path`.

        Raises:
            OSError: the path does not exist, or is a file.
        """
        found = self.find(path)
        if not isinstance(found, MemoryDirectory):
            raise _error(ENOENT if found is None else ENOTDIR, path)
        return found

    def split(self, path: str) -> tuple[MemoryDirectory, str]:
        """Return the directory of `path`, and the name in it.

        Raises:
            OSError: the directory does not exist.
        """
        parent, _, name = path.strip("/").rpartition("/")
        return self.directory(parent), name

    def node(self, path: str, *, create: bool = False) -> MemoryNode:
        """Return the file at `path`; `create` makes a missing file.

        Raises:
            OSError: the path does not exist, or is a directory.
        """
        directory, name = self.split(path)
        node = directory.entries.get(name)
        if isinstance(node, MemoryDirectory):
            raise _error(EISDIR, path)
        if node is None:
            if not create:
                raise _error(ENOENT, path)
            node = self.new_node()
            node.modified_ms = self._clock.wall_ms()
            self.change(directory, {name: node})
        return node

    # `embedlog.testing.sim_files.SimTree` overrides these methods

    def new_node(self) -> MemoryNode:
        """Return an empty file."""
        return MemoryNode()

    def new_directory(self) -> MemoryDirectory:
        """Return an empty directory."""
        return MemoryDirectory()

    def change(
        self, directory: MemoryDirectory, changes: dict[str, MemoryNode | MemoryDirectory | None]
    ) -> None:
        """Set entries of a directory; None removes an entry."""
        for name, entry in changes.items():
            if entry is None:
                del directory.entries[name]
            else:
                directory.entries[name] = entry


class MemoryFiles(Files):
    """A tree of directories and files in memory. See `Files`.

    Thread-safe as far as the storage layer needs. Requires: no two threads write one file, or
    change one directory, at the same time.
    """

    boot_id = "memory"
    descriptor_count_max = 1 << 20
    absolute = staticmethod(str)  # there is no working directory

    def __init__(self, clock: Clock | None = None, tree: MemoryTree | None = None) -> None:
        """`tree` is the initial content."""
        self.clock = clock if clock is not None else Clock()
        self.tree = tree if tree is not None else MemoryTree(self.clock)
        self._locks: set[str] = set()

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        return self._handle(self.tree.node(path, create=create), path)

    def read(self, path: str) -> bytes:
        node = self.tree.node(path)
        return bytes(node.view(0, node.size))

    def stat(self, path: str) -> FileStat | None:
        found = self.tree.find(path)
        if found is None:
            return None
        if isinstance(found, MemoryDirectory):
            return FileStat(size=0, modified_ms=0, is_directory=True)
        return FileStat(size=found.size, modified_ms=found.modified_ms, is_directory=False)

    def list(self, path: str) -> list[str]:
        return sorted(self.tree.directory(path).entries)

    def make_directory(self, path: str, mode: int = 0o777) -> None:
        directory = self.tree.root
        for name in _parts(path):
            entry = directory.entries.get(name)
            if entry is None:
                entry = self.tree.new_directory()
                self.tree.change(directory, {name: entry})
            if not isinstance(entry, MemoryDirectory):
                raise _error(EEXIST, path)
            directory = entry

    def rename(self, old: str, new: str) -> None:
        old_directory, old_name = self.tree.split(old)
        new_directory, new_name = self.tree.split(new)
        moved = old_directory.entries.get(old_name)
        if moved is None:
            raise _error(ENOENT, old)
        if isinstance(new_directory.entries.get(new_name), MemoryDirectory):
            raise _error(EISDIR if not isinstance(moved, MemoryDirectory) else ENOTEMPTY, new)
        if old_directory is new_directory:
            self.tree.change(old_directory, {old_name: None, new_name: moved})
        else:
            self.tree.change(new_directory, {new_name: moved})
            self.tree.change(old_directory, {old_name: None})

    def remove(self, path: str) -> None:
        directory, name = self.tree.split(path)
        entry = directory.entries.get(name)
        if entry is None:
            raise _error(ENOENT, path)
        if isinstance(entry, MemoryDirectory) and entry.entries:
            raise _error(ENOTEMPTY, path)
        self.tree.change(directory, {name: None})

    def volume(self, path: str) -> Volume:
        return Volume()

    def sync_directory(self, path: str) -> None:
        self.tree.directory(path)

    def lock(self, path: str, *, names_owner: bool = True) -> DirectoryLock:
        def name_owner() -> None:
            node.write([f"boot {self.boot_id}\n".encode()], 0)

        lock = MemoryLock("/".join(_parts(path)), self._locks, name_owner)
        node = self.tree.node(path, create=True)
        if names_owner:
            name_owner()
        return lock

    def _handle(self, node: MemoryNode, path: str) -> File:
        """Return an open file. `embedlog.testing.SimFiles` overrides this method."""
        return MemoryFile(node, self)


def _parts(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _error(code: int, path: str) -> OSError:
    return OSError(code, strerror(code), path)
