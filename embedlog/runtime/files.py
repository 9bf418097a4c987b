"""The file system as the storage layer sees it: sixteen calls, and nothing goes round them.

    Files                                     File
    open(path, create=, writable=) -> File    write(buffers, position) -> size written
    read(path)             -> bytes           sync()
    stat(path)             -> FileStat|None   truncate(size)
    list(path)             -> names           reserve(size)
    make_directory(path, mode=)               view(position, size) -> memoryview
    rename(old, new)                          size() -> int
    remove(path)                              close()
    sync_directory(path)
    lock(path)             -> DirectoryLock

Three implementations pass the same tests: `OsFiles` (the operating system), `MemoryFiles` (for a
log without a path) and `embedlog.testing.SimFiles` (crashes and faults on demand). All of them
raise `OSError` with the errno of the operating system.

Files are written by position and read through read-only views. A view stays readable for ever:
after the file grew, was removed, or its `File` was closed. The exception is `truncate`: bytes cut
off must not be in any view, so the storage layer truncates only what it never published.

Paths are text with "/" between the parts.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    Bytes = bytes | bytearray | memoryview
    """What is written: one dimension of bytes."""
else:
    Protocol = object
    Bytes = None


class NotOpened(OSError):
    """What was to be synced could not be opened: the kernel was asked for nothing, so whatever the
    reason it has dropped no page.
    """


class FileStat:
    """What `stat` tells: `size` in bytes, `modified_ms` as wall time, `is_directory`.

    Of a symbolic link it is what the link leads to, but never a directory: nobody enters one.
    """

    __slots__ = ("is_directory", "modified_ms", "size")

    def __init__(self, *, size: int, modified_ms: int, is_directory: bool) -> None:
        self.size = size
        self.modified_ms = modified_ms
        self.is_directory = is_directory


class Volume:
    """Bytes of a volume: of all of it, and of what this process may still fill. -1: unknown."""

    __slots__ = ("size", "usable")

    def __init__(self, *, size: int = -1, usable: int = -1) -> None:
        self.size = size
        self.usable = usable


class File(Protocol):
    """An open file. Closed when its last reference goes, so it is never closed under a user."""

    __slots__ = ()

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        """Write the buffers one after the other from `position`; return how many bytes went in.

        The file grows as needed. A disk may take less than all: see `write_fully`.
        """

    def sync(self) -> None:
        """Return once every byte written before the call, and the size, survive loss of power.

        After an error nothing is known of any unsynced byte, and a second call proves nothing:
        the kernel may have dropped the pages it failed to write.
        """

    def truncate(self, size: int) -> None:
        """Cut the file to `size`, or extend it with zeros that take no room on disk."""

    def reserve(self, size: int) -> None:
        """Make the file at least `size` long; the new bytes are zeros whose room is reserved."""

    def view(self, position: int, size: int) -> memoryview:
        """A read-only view of existing bytes, without copying.

        Raises:
            ValueError: the file ends before `position + size`.
        """

    def size(self) -> int:
        """Bytes of the file."""

    def close(self) -> None:
        """Give the file back; views stay readable. A second call does nothing."""


class DirectoryLock(Protocol):
    """Ownership of a directory, for as long as it is not closed."""

    __slots__ = ()

    @property
    def is_held(self) -> bool:
        """Whether this process still owns the directory: not once closed, nor after a fork."""

    def note_addresses(self, addresses: Sequence[str]) -> None:
        """Let whoever is refused know the addresses at which the owner listens.

        Raises:
            OSError: they could not be written; the lock is held as before.
        """

    def close(self) -> None:
        """Let the next opener have the directory. A second call does nothing."""


class Files(Protocol):
    """A file system."""

    descriptor_count_max: int
    """So many files the process may have open, those of its host included."""

    boot_id: str
    """Changes whenever unsynced bytes may have been lost: when the machine restarted."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        """Open a file for reading and writing; `create` makes it when it is missing.

        One that is not `writable` may be another process's, who may cut it at any moment: its
        views are copies of what they show, and a right to read is all it takes.
        """

    def read(self, path: str) -> bytes:
        """The whole content of a (small) file."""

    def stat(self, path: str) -> FileStat | None:
        """Facts about a file or directory, None when there is none."""

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def make_directory(self, path: str, mode: int = 0o777) -> None:
        """Make a directory and the missing ones above it; an existing one is left alone.

        `mode`, as far as the process' umask allows, is that of the directory itself.
        """

    def rename(self, old: str, new: str) -> None:
        """Give a file or directory another name, replacing a file of that name, atomically."""

    def remove(self, path: str) -> None:
        """Remove a file, a symbolic link or an empty directory."""

    def volume(self, path: str) -> Volume:
        """The volume that a file or directory is on."""

    def sync_directory(self, path: str) -> None:
        """Return once the names in a directory survive loss of power.

        Raises:
            NotOpened: of the operating system's files, the directory could not be opened.
        """

    def lock(self, path: str) -> DirectoryLock:
        """Own the file at `path`, and by convention the directory it is in, until closed.

        The file then names the owner: its pid, when it began, and the `boot_id`.

        Raises:
            DirectoryLocked: somebody owns it; the message names the owner.
        """


def write_fully(
    write: Callable[[Sequence[Bytes], int], int], buffers: Sequence[Bytes], position: int
) -> int:
    """Write all of `buffers` with as many calls of `write` as it takes; return their size.

    A write that takes nothing means the disk is full.
    """
    pending = [memoryview(buffer).cast("B") for buffer in buffers]
    total = sum(map(len, pending))
    end = position + total
    while position < end:
        written = write(pending, position)
        if written == 0:
            raise OSError(28, "No space left on device")
        position += written
        while pending and written >= len(pending[0]):
            written -= len(pending.pop(0))
        if written:
            pending[0] = pending[0][written:]
    return total


def read_view(files: Files, path: str) -> memoryview:
    """The whole of a file as a view; an empty file gives an empty view."""
    file = files.open(path)
    size = file.size()
    return file.view(0, size) if size else memoryview(b"")


def write_whole(files: Files, path: str, content: Bytes, *, sync: bool) -> None:
    """Replace a small file so that a crash leaves the old content or the new, never a mixture.

    `sync` says whether it must also survive loss of power: then the new file is synced before it
    takes the name, and the directory after.
    """
    temporary = path + ".tmp"
    file = files.open(temporary, create=True)
    file.truncate(0)
    write_fully(file.write, [content], 0)
    if sync:
        file.sync()
    file.close()
    files.rename(temporary, path)
    if sync:
        files.sync_directory(parent(path))


def make_directory(files: Files, path: str, *, sync: bool, mode: int = 0o777) -> None:
    """Make a directory and the missing ones above it; with `sync` their names survive power loss.

    An existing one is left alone. `mode` as for `Files.make_directory`.
    """
    if not sync:
        files.make_directory(path, mode)
        return
    above = path
    missing = []
    while above and files.stat(above) is None:
        missing.append(above)
        above = parent(above)
    for directory in reversed(missing):
        files.make_directory(directory, mode if directory == path else 0o777)
        files.sync_directory(parent(directory))


def remove_tree(files: Files, path: str) -> None:
    """Remove a directory and everything in it; a missing one is fine.

    Symbolic links in it are removed, and what they lead to is left alone. A `path` that is a link
    itself, or a file, is not touched.
    """
    stat = files.stat(path)
    if stat is None or not stat.is_directory:
        return
    for name in files.list(path):
        child = f"{path}/{name}"
        stat = files.stat(child)
        if stat is not None and stat.is_directory:
            remove_tree(files, child)
        else:
            files.remove(child)
    files.remove(path)


def parent(path: str) -> str:
    """The directory that `path` lies in; "" is the working directory."""
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else "")
