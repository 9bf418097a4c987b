"""`OsFiles`: the operating system's file system.

After `fork` the child owns nothing: it closes its parent's files and locks, and every call on them
fails, because two writers would ruin the log. See `os_file` for the files.
"""

from __future__ import annotations

import os
from _weakref import ref
from stat import S_ISDIR, S_ISLNK, S_ISREG

from embedlog.errors import ClosedError, DirectoryLocked
from embedlog.runtime import descriptors
from embedlog.runtime.files import DirectoryLock, Files, FileStat, Volume
from embedlog.runtime.forks import FORKED
from embedlog.runtime.lock_owner import why_locked
from embedlog.runtime.locks import Rank, process_wide, ranked_lock
from embedlog.runtime.os_file import OPEN, ForeignFile, OsFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_OWNER_SIZE_MAX = 4096

_locks: dict[tuple[int, int], ref[OsLock]] = {}
"""Lock files that this process holds, by (device, inode)."""
_locking = process_wide(ranked_lock(Rank.LOCK_FILE))


class OsLock(DirectoryLock):
    """A locked file that names its owner.

    On POSIX systems the lock is an flock and a POSIX lock. A Java broker looks at the POSIX lock,
    but that lock vanishes as soon as this process closes any descriptor of the file. Therefore no
    code in this process opens the file while the lock is held.

        pid 4711 since 2026-01-31T12:00:00+0000 boot 6e0b2a5c-...
        at 127.0.0.1:9092 ...                                       while it listens
    """

    __slots__ = ("__weakref__", "_descriptor", "_file", "_owner", "content")

    def __init__(self, path: str, owner: str, *, names_owner: bool) -> None:
        self._descriptor = -1
        self._owner = owner
        self.content = ""
        """The content of the file."""
        with _locking:
            held = _lock_of_this_process(path)
            if held is not None:
                raise DirectoryLocked(why_locked(path, held.content, os.getpid()))
            self._take(path, names_owner=names_owner)

    def _take(self, path: str, *, names_owner: bool) -> None:
        descriptor = descriptors.open_descriptor(path, create=True)
        try:
            if not descriptors.lock(descriptor):
                raise DirectoryLocked(why_locked(path, _holder(descriptor), os.getpid()))
            if names_owner:
                _replace(descriptor, self._owner)
                self.content = self._owner
            else:
                self.content = descriptors.read(descriptor, _OWNER_SIZE_MAX, 0).decode(
                    "utf-8", "replace"
                )
            self._file = _identity(os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        OPEN[descriptor] = ref(self)
        _locks[self._file] = ref(self)

    @property
    def is_held(self) -> bool:
        return self._descriptor >= 0

    def name_owner(self) -> None:
        if self._descriptor >= 0 and not self.content.startswith(self._owner):
            _replace(self._descriptor, self._owner)
            self.content = self._owner

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
                OPEN.pop(descriptor, None)
                _locks.pop(self._file, None)
            finally:
                _close(descriptor)

    def __del__(self) -> None:
        self.close()


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _lock_of_this_process(path: str) -> OsLock | None:
    """Return the lock that this process holds on the file at `path`, or None."""
    try:
        reference = _locks.get(_identity(os.stat(path)))
    except OSError:
        return None
    held = None if reference is None else reference()
    return None if held is None or not held.is_held else held


def _holder(descriptor: int) -> str:
    """Return the owner's text in a lock file; only its pid if the owner has not written yet."""
    text = descriptors.read(descriptor, _OWNER_SIZE_MAX, 0).decode("utf-8", "replace")
    pid = descriptors.lock_holder(descriptor)
    if pid is None or text.startswith(f"pid {pid} "):
        return text
    return f"pid {pid}\n" if pid else ""


def _replace(descriptor: int, text: str) -> None:
    """Replace the content of a small file; no reader sees it empty."""
    content = text.encode()
    descriptors.write(descriptor, [content], 0)
    os.ftruncate(descriptor, len(content))


def absolute(path: str) -> str:
    """Return the absolute path, without "." and ".." parts.

    Symbolic links are followed only if a ".." part may come after one.
    """
    find = os.path.realpath if ".." in with_slashes(path).split("/") else os.path.abspath
    return with_slashes(find(path))


def with_slashes(path: str) -> str:
    """Return `path` with "/" between its parts, as `Files` takes it."""
    return path if os.sep == "/" else path.replace(os.sep, "/")


class OsFiles(Files):
    """The operating system's file system. See `Files`.

    In a forked child, calls that could change a file raise `ClosedError`.
    """

    __slots__ = ("_file_type", "_made_in", "boot_id", "descriptor_count_max")

    absolute = staticmethod(absolute)

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
            # Without an id nothing proves that the machine has not restarted.
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
            is_file=S_ISREG(found.st_mode),
            name_count=found.st_nlink,
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

    def lock(self, path: str, *, names_owner: bool = True) -> OsLock:
        from time import strftime

        self._check_process()
        owner = f"pid {os.getpid()} since {strftime('%Y-%m-%dT%H:%M:%S%z')} boot {self.boot_id}\n"
        return OsLock(path, owner, names_owner=names_owner)

    def _check_process(self) -> None:
        if self._made_in != os.getpid():
            raise ClosedError(f"the directory cannot be used: {FORKED}")


def _stat_behind(path: str, link: os.stat_result) -> FileStat:
    try:
        found = os.stat(path)
    except OSError:
        found = link  # a dangling link
    return FileStat(
        size=found.st_size,
        modified_ms=found.st_mtime_ns // 1_000_000,
        is_directory=False,
        links_to_directory=S_ISDIR(found.st_mode),
        is_file=False,
    )


def expand_home(path: str) -> str:
    """Replace a leading "~" or "~user" by that user's home directory, if known."""
    return with_slashes(os.path.expanduser(path))
