"""Calls on file descriptors, for each operating system.

                    Linux              macOS               Windows
    open            O_CLOEXEC          the same            CreateFile, shared for deletion
    write           pwritev            the same            seek and write, under a lock
    sync            fdatasync          F_FULLFSYNC         fsync (FlushFileBuffers)
    reserve         posix_fallocate    ftruncate           ftruncate
    read            mapping            mapping             copied: a mapped file can be neither cut,
                                                           renamed nor removed there
    directory sync  fsync              fsync               none: the file system keeps a journal
    lock            flock and lockf    the same            a byte far behind the content

The code looks for a function in `os` and does not guess from the system's name.
"""

from __future__ import annotations

import os
import sys

from embedlog.runtime.files import NotOpened, Volume
from embedlog.runtime.locks import Rank, process_wide, ranked_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from mmap import mmap
    from typing import Any

    from embedlog.runtime.files import Bytes

    Sync = Callable[[int], None]

_LOCKED_POSITION = 1 << 30
"""Windows lets no other process read a locked byte, so the lock is far behind the content."""

_OPEN_FLAGS = os.O_RDWR
for _name in ("O_CLOEXEC", "O_NOINHERIT", "O_BINARY"):
    _OPEN_FLAGS |= getattr(os, _name, 0)

_COUNT_MAX_UNKNOWN = 8192
"""Assumed limit of open files on Windows and on systems without a limit."""

_seeking = process_wide(ranked_lock(Rank.SEEKING))
"""Held from a seek to the read or write after it: threads share the descriptor's position."""


def open_descriptor(path: str, *, create: bool = False) -> int:
    """Open a file for reading and writing. Child programs do not inherit the descriptor."""
    if _windows_api is not None:
        return _open_shared(path, create=create)
    return os.open(path, _OPEN_FLAGS | os.O_CREAT if create else _OPEN_FLAGS, 0o644)


def descriptor_count_max() -> int:
    """Return the process's present limit of open files."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ImportError:
        return _COUNT_MAX_UNKNOWN
    limit, _ = getrlimit(RLIMIT_NOFILE)
    return _COUNT_MAX_UNKNOWN if limit == RLIM_INFINITY else limit


def open_to_read(path: str) -> int:
    """Open a file for reading only."""
    if _windows_api is not None:
        return _open_shared(path, create=False, access=_GENERIC_READ)
    return os.open(path, _OPEN_FLAGS & ~os.O_RDWR | os.O_RDONLY)


def _write_by_seeking(descriptor: int, buffers: Sequence[Bytes], position: int) -> int:
    with _seeking:
        os.lseek(descriptor, position, os.SEEK_SET)
        total = 0
        for buffer in buffers:
            written = os.write(descriptor, buffer)
            total += written
            if written < len(buffer):
                break
        return total


write = getattr(os, "pwritev", _write_by_seeking)
"""`write(descriptor, buffers, position)` returns the size written."""


def read(descriptor: int, size: int, position: int) -> bytes:
    """Return `size` bytes from `position` on; fewer only at the end of the file."""
    with _seeking:
        os.lseek(descriptor, position, os.SEEK_SET)
        parts = []
        while size:
            part = os.read(descriptor, min(size, _READ_SIZE_MAX))
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


_READ_SIZE_MAX = 1 << 24


def _read_at_once(descriptor: int, size: int, position: int) -> bytes:
    content = os.pread(descriptor, size, position)
    return content if len(content) == size else read(descriptor, size, position)


read_at = _read_at_once if hasattr(os, "pread") else read
"""Like `read`. If the system has pread, several threads can read at the same time."""


def choose_sync(plain: Sync, platform: str) -> Sync:
    """Return the call that makes a file survive loss of power: `plain` on all systems but macOS.

    On macOS fsync leaves bytes in the drive's cache, and F_FULLFSYNC does not. A volume without
    F_FULLFSYNC, such as a network volume, gets `plain`.
    """
    if platform != "darwin":
        return plain
    import fcntl
    from errno import EINVAL, ENOTSUP, ENOTTY

    full = getattr(fcntl, "F_FULLFSYNC", 51)

    def sync_fully(descriptor: int) -> None:
        try:
            fcntl.fcntl(descriptor, full)
        except OSError as error:
            if error.errno not in (ENOTSUP, ENOTTY, EINVAL):
                raise
            plain(descriptor)

    return sync_fully


sync = choose_sync(getattr(os, "fdatasync", os.fsync), sys.platform)
_sync_names = choose_sync(os.fsync, sys.platform)


def reserve(descriptor: int, size: int) -> None:
    """Extend a file to `size` with zeros; reserve their room on disk if the system can."""
    present = os.fstat(descriptor).st_size
    if size <= present:
        return
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, present, size - present)
    else:
        os.ftruncate(descriptor, size)


def sync_directory(path: str) -> None:
    """Return once the names in a directory survive loss of power."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    flags = os.O_RDONLY | os.O_DIRECTORY | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path or ".", flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NotOpened(error.errno, error.strerror, path) from error
    try:
        _sync_names(descriptor)
    finally:
        os.close(descriptor)


def volume(path: str) -> Volume:
    """Return the volume of a file or directory, on a system without statvfs."""
    try:
        from shutil import disk_usage
    except ImportError:
        return Volume()
    found = disk_usage(path)
    return Volume(size=found.total, usable=found.free)


def lock(descriptor: int) -> bool:
    """Lock a file; return False if another process has the lock."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock, lockf
    except ImportError:
        return _lock_byte(descriptor) if _has_msvcrt() else _lock_in_process(descriptor)
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
        lockf(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_holder(descriptor: int) -> int | None:
    """Pid of the POSIX lock's owner; 0 if unlocked, None if the system cannot tell."""
    if sys.platform != "linux" or sys.maxsize < 1 << 32:
        return None
    from fcntl import F_GETLK, F_UNLCK, F_WRLCK, fcntl
    from struct import pack, unpack

    # struct flock: type, whence, start, length, pid.
    asked = pack("hhqqi", F_WRLCK, 0, 0, 0, 0)
    kind, _, _, _, pid = unpack("hhqqi", fcntl(descriptor, F_GETLK, asked))
    return 0 if kind == F_UNLCK else pid or None


def _has_msvcrt() -> bool:
    try:
        import msvcrt  # noqa: F401  only to see whether it exists
    except ImportError:
        return False
    return True


_locked: dict[tuple[int, int], int] = {}
"""Locked files as (device, inode) -> descriptor, on a system without locks."""


def _lock_in_process(descriptor: int) -> bool:
    """Lock the file, for this process only, on a system without file locks (WASI)."""
    found = os.fstat(descriptor)
    key = (found.st_dev, found.st_ino)
    with _seeking:
        holder = _locked.get(key, descriptor)
        if holder != descriptor and _is_of(holder, key):
            return False
        _locked[key] = descriptor
    return True


def _is_of(descriptor: int, key: tuple[int, int]) -> bool:
    """Return whether the descriptor is still open on the file (device, inode) `key`.

    If it was closed, its lock was released.
    """
    try:
        found = os.fstat(descriptor)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == key


def _lock_byte(descriptor: int) -> bool:
    import msvcrt

    with _seeking:
        os.lseek(descriptor, _LOCKED_POSITION, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except PermissionError:
            return False
    return True


CAN_MAP = hasattr(os, "pwrite")
"""True if a mapped file can be cut, renamed and removed. Windows cannot, and has no pwrite."""


def map_read_only(descriptor: int) -> mmap:
    """Map the whole file. Requires: the file is not empty."""
    from mmap import PROT_READ, mmap

    size = 0  # means the whole file
    if sys.version_info >= (3, 13):
        # Without `trackfd=False` every mapping keeps a duplicate of the descriptor.
        return mmap(descriptor, size, prot=PROT_READ, trackfd=False)
    return mmap(descriptor, size, prot=PROT_READ)


# Windows: share for deletion, or nobody could rename or remove an open file

try:
    import _winapi as _windows_api
except ImportError:
    _windows_api = None  # type: ignore[assignment]

_GENERIC_READ = 0x80000000
_GENERIC_READ_WRITE = 0xC0000000
_SHARE_READ_WRITE_DELETE = 7
_OPEN_EXISTING = 3
_OPEN_ALWAYS = 4
_FILE_ATTRIBUTE_NORMAL = 0x80


def _open_shared(path: str, *, create: bool, access: int = _GENERIC_READ_WRITE) -> int:
    import msvcrt

    api: Any = _windows_api
    handle = api.CreateFile(
        path,
        access,
        _SHARE_READ_WRITE_DELETE,
        0,
        _OPEN_ALWAYS if create else _OPEN_EXISTING,
        _FILE_ATTRIBUTE_NORMAL,
        0,
    )
    descriptor: int = msvcrt.open_osfhandle(handle, _OPEN_FLAGS)  # type: ignore[attr-defined]
    return descriptor
