"""`OsFiles`: the operating system's file system.

Writes go by position, reads through read-only mappings of the whole file; the page cache keeps the
two coherent. Nothing is ever stored through a mapping: on a full disk that is SIGBUS, which kills
the host program. A mapping is never closed or resized, only forgotten: a view that is still in use
keeps it alive. Where a mapped file could be neither cut nor removed, what is read is copied
instead; see `embedlog.runtime.descriptors`.

After `fork` the child owns nothing: locks, files and descriptors of the parent are closed in it
and every call on them fails, because two writers would ruin the log. Views stay readable in the
child: their mappings are inherited on purpose (not MADV_DONTFORK), as touching a missing one would
kill it.
"""

from __future__ import annotations

import os
from _weakref import ref
from stat import S_ISDIR, S_ISLNK

from embedlog.errors import ClosedError, DirectoryLocked
from embedlog.runtime import descriptors
from embedlog.runtime.files import DirectoryLock, File, Files, FileStat, Volume
from embedlog.runtime.forks import FORKED
from embedlog.runtime.lock_owner import why_locked
from embedlog.runtime.locks import Rank, process_wide, ranked_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.runtime.files import Bytes

_OWNER_SIZE_MAX = 4096
_write, _sync = descriptors.write, descriptors.sync
_NOTHING = memoryview(b"")

_open: dict[int, ref[OsFile | OsLock]] = {}
"""Everything open in this process, by descriptor: what a child must let go of after fork."""

_locks: dict[tuple[int, int], ref[OsLock]] = {}
"""The lock files that this process holds, by device and number of the file."""
_locking = process_wide(ranked_lock(Rank.LOCK_FILE))


class OsFile(File):
    """One descriptor, and a mapping once it is read. See `File`."""

    __slots__ = ("__weakref__", "_descriptor", "_mapped")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._mapped = _NOTHING
        _open[descriptor] = ref(self)

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        return _write(self._descriptor, buffers, position)

    def sync(self) -> None:
        _sync(self._descriptor)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def reserve(self, size: int) -> None:
        descriptors.reserve(self._descriptor, size)

    def view(self, position: int, size: int) -> memoryview:
        end = position + size
        mapped = self._mapped
        if end > len(mapped):
            mapped = self._map(end)
        return mapped[position:end]

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        self._mapped = _NOTHING
        _close(descriptor)

    def __del__(self) -> None:
        self.close()

    def _map(self, end: int) -> memoryview:
        """Map the file as long as it is; the former mapping lives on in its views.

        Another thread may cut off what was reserved at any moment, so the size of the mapping is
        the one that the file has when it is mapped, not one that was asked for before.
        """
        size = os.fstat(self._descriptor).st_size
        if end <= size:
            self._mapped = mapped = memoryview(descriptors.map_read_only(self._descriptor))
            size = len(mapped)
            if end <= size:
                return mapped
        raise ValueError(f"view to byte {end} of a file of {size}")


class ForeignFile(OsFile):
    """A file that another process writes, opened to be read.

    Nothing of it is mapped: that process may cut the file, and to touch a page of a mapping that
    lies behind the end is SIGBUS.
    """

    __slots__ = ()

    def view(self, position: int, size: int) -> memoryview:
        content = descriptors.read_at(self._descriptor, size, position)
        if len(content) < size:
            raise ValueError(f"view to byte {position + size}, {position + len(content)} are there")
        return memoryview(content)


class OsLock(DirectoryLock):
    """A lock on a file that names its owner.

    On POSIX systems it is an flock, and not a POSIX lock alone, because that one vanishes as soon
    as this process closes any descriptor of the file. The POSIX lock is taken too: it is the one
    that a Java broker looks at. So that it is kept, nobody in this process opens the file as long
    as the lock is held, neither to ask for it again nor to read who has it.

        pid 4711 since 2026-01-31T12:00:00+0000 boot 6e0b2a5c-...
        at 127.0.0.1:9092 ...                                       while it listens
    """

    __slots__ = ("__weakref__", "_descriptor", "_file", "_owner", "content")

    def __init__(self, path: str, owner: str) -> None:
        self._descriptor = -1
        self._owner = owner
        self.content = owner
        """What the file says."""
        with _locking:
            held = _lock_of_this_process(path)
            if held is not None:
                raise DirectoryLocked(why_locked(path, held.content, os.getpid()))
            self._take(path)

    def _take(self, path: str) -> None:
        descriptor = descriptors.open_descriptor(path, create=True)
        try:
            if not descriptors.lock(descriptor):
                raise DirectoryLocked(why_locked(path, _holder(descriptor), os.getpid()))
            _replace(descriptor, self._owner)
            self._file = _identity(os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        _open[descriptor] = ref(self)
        _locks[self._file] = ref(self)

    @property
    def is_held(self) -> bool:
        return self._descriptor >= 0

    def note_addresses(self, addresses: Sequence[str]) -> None:
        if self._descriptor >= 0:
            listed = f"at {' '.join(addresses)}\n" if addresses else ""
            _replace(self._descriptor, self._owner + listed)
            self.content = self._owner + listed

    def close(self, _close: Callable[[int], None] = os.close) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            # A KeyboardInterrupt must not leave the directory locked to this process.
            try:
                _open.pop(descriptor, None)
                _locks.pop(self._file, None)
            finally:
                _close(descriptor)

    def __del__(self) -> None:
        self.close()


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _lock_of_this_process(path: str) -> OsLock | None:
    """Who of this process has the file at `path` locked."""
    try:
        reference = _locks.get(_identity(os.stat(path)))
    except OSError:
        return None
    held = None if reference is None else reference()
    return None if held is None or not held.is_held else held


def _holder(descriptor: int) -> str:
    """What the owner of a lock says of itself; its pid alone if it had no time to say it yet."""
    text = descriptors.read(descriptor, _OWNER_SIZE_MAX, 0).decode("utf-8", "replace")
    pid = descriptors.lock_holder(descriptor)
    if pid is None or text.startswith(f"pid {pid} "):
        return text
    return f"pid {pid}\n" if pid else ""


def _replace(descriptor: int, text: str) -> None:
    """Replace the content of a small file; a reader in between sees no empty one."""
    content = text.encode()
    _write(descriptor, [content], 0)
    os.ftruncate(descriptor, len(content))


class OsFiles(Files):
    """The operating system's file system. See `Files`.

    Calls that could change something raise `ClosedError` in a process forked since.
    """

    __slots__ = ("_file_type", "_made_in", "boot_id", "descriptor_count_max")

    def __init__(self) -> None:
        self._made_in = os.getpid()
        self._file_type = OsFile
        if not descriptors.CAN_MAP:
            from embedlog.runtime.copied_file import CopiedFile

            self._file_type = CopiedFile
        self.descriptor_count_max = descriptors.descriptor_count_max()
        try:
            with open("/proc/sys/kernel/random/boot_id", "rb", buffering=0) as file:
                self.boot_id = file.read(64).decode().strip()
        except OSError:
            # Without one nothing proves that the machine kept running: every boot is another.
            self.boot_id = ""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> OsFile:
        self._check_process()
        if not writable:
            return ForeignFile(descriptors.open_to_read(path))
        return self._file_type(descriptors.open_descriptor(path, create=create))

    def read(self, path: str) -> bytes:
        held = _lock_of_this_process(path) if _locks else None
        if held is not None:
            return held.content.encode()
        with open(path, "rb", buffering=0) as file:
            return file.readall()

    def stat(self, path: str) -> FileStat | None:
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if S_ISLNK(found.st_mode):
            return _stat_behind(path, found)
        return FileStat(
            size=found.st_size,
            modified_ms=found.st_mtime_ns // 1_000_000,
            is_directory=S_ISDIR(found.st_mode),
        )

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: str, mode: int = 0o777) -> None:
        self._check_process()
        os.makedirs(path, mode, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        self._check_process()
        os.replace(old, new)

    def remove(self, path: str) -> None:
        self._check_process()
        try:
            os.unlink(path)
        except (IsADirectoryError, PermissionError):
            os.rmdir(path)

    def volume(self, path: str) -> Volume:
        if not hasattr(os, "statvfs"):
            return descriptors.volume(path)
        found = os.statvfs(path)
        return Volume(size=found.f_blocks * found.f_frsize, usable=found.f_bavail * found.f_frsize)

    def sync_directory(self, path: str) -> None:
        descriptors.sync_directory(path)

    def lock(self, path: str) -> OsLock:
        from time import strftime

        self._check_process()
        owner = f"pid {os.getpid()} since {strftime('%Y-%m-%dT%H:%M:%S%z')} boot {self.boot_id}\n"
        return OsLock(path, owner)

    def _check_process(self) -> None:
        if self._made_in != os.getpid():
            raise ClosedError(f"the directory cannot be used: {FORKED}")


def _stat_behind(path: str, link: os.stat_result) -> FileStat:
    try:
        found = os.stat(path)
    except OSError:
        found = link  # it leads nowhere
    modified_ms = found.st_mtime_ns // 1_000_000
    return FileStat(size=found.st_size, modified_ms=modified_ms, is_directory=False)


def expand_home(path: str) -> str:
    """`path` with a leading "~" or "~user" replaced by that user's home directory, if known."""
    return with_slashes(os.path.expanduser(path))


def with_slashes(path: str) -> str:
    """`path` with "/" between its parts, as `Files` takes it, whatever the system has there."""
    return path if os.sep == "/" else path.replace(os.sep, "/")


def _close(descriptor: int, _close: Callable[[int], None] = os.close) -> None:
    """Close a descriptor once; bound early, for objects that die after this module."""
    if descriptor >= 0:
        _open.pop(descriptor, None)
        _close(descriptor)


def _let_go_after_fork() -> None:
    """Close in a child what belongs to its parent; the parent's locks and files are untouched."""
    for reference in list(_open.values()):
        held = reference()
        if held is not None:
            held.close()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_after_fork)
