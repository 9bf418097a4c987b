"""`Files` and `File`: the only calls of the storage layer on a file system.

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
    absolute(path)         -> path

Three implementations pass the same tests: `OsFiles` (the operating system), `MemoryFiles` (a log
without a path) and `embedlog.testing.SimFiles` (crashes and faults on demand). All of them raise
`OSError` with the errno of the operating system.

Files are written by position and read through read-only views. A view stays readable for ever:
after the file grew or was removed, and after the `File` was closed. Only `truncate` is an
exception: no view may show the bytes that it cuts off, so the storage layer truncates only bytes
that it never published.

Paths are text with "/" between the parts.
"""

from __future__ import annotations

from embedlog.common import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    Bytes = bytes | bytearray | memoryview
    """A buffer to write: one dimension of bytes."""
else:
    Protocol = object
    Bytes = None


class NotOpened(OSError):
    """A directory to sync could not be opened. No sync was tried, so the kernel dropped no page."""


class FileStat:
    """Result of `stat`: `size` in bytes, `modified_ms` as wall time, `is_directory`.

    For a symbolic link, size and time belong to its target, but `is_directory` is False: no caller
    walks into a link by accident. `links_to_directory` is True for a link to a directory. `is_file`
    is True for a regular file, `name_count` is the number of its names (hard links).
    """

    __slots__ = (
        "is_directory",
        "is_file",
        "links_to_directory",
        "modified_ms",
        "name_count",
        "size",
    )

    def __init__(
        self,
        *,
        size: int,
        modified_ms: int,
        is_directory: bool,
        links_to_directory: bool = False,
        is_file: bool | None = None,
        name_count: int = 1,
    ) -> None:
        self.size = size
        self.modified_ms = modified_ms
        self.is_directory = is_directory
        self.links_to_directory = links_to_directory
        self.is_file = not is_directory if is_file is None else is_file
        self.name_count = name_count


class Volume(Value):
    """`size` of a volume, and `usable` free room for this process, in bytes; -1 if unknown."""

    size: int = -1
    usable: int = -1


class File(Protocol):
    """An open file. Dropping the last reference closes it, so it stays open as long as any part of
    the program refers to it.
    """

    __slots__ = ()

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        """Write the buffers one after the other from `position`; return the size written.

        The file grows as needed. A disk may take only a part: see `write_fully`.
        """

    def sync(self) -> None:
        """Return once every byte written before the call, and the size, survive loss of power.

        After an error every unsynced byte may be lost, and a second call proves nothing: the kernel
        may have dropped the pages that it failed to write.
        """

    def truncate(self, size: int) -> None:
        """Cut the file to `size`, or extend it with zeros that take no room on disk."""

    def reserve(self, size: int) -> None:
        """Make the file at least `size` long, with zeros, and reserve their room on disk."""

    def view(self, position: int, size: int) -> memoryview:
        """Return a read-only view of existing bytes, without copying.

        Raises:
            ValueError: the file ends before `position + size`.
        """

    def size(self) -> int:
        """Return the length of the file in bytes."""

    def close(self) -> None:
        """Close the file; views stay readable. A second call does nothing."""


class DirectoryLock(Protocol):
    """Ownership of a directory until `close`."""

    __slots__ = ()

    @property
    def is_held(self) -> bool:
        """True if this process owns the directory; False after `close`, and in a forked child."""

    def name_owner(self) -> None:
        """Write this process into the file: its pid, its start and the `boot_id`.

        Raises:
            OSError: the file could not be written; the lock is still held.
        """

    def note_addresses(self, addresses: Sequence[str]) -> None:
        """Write this process's listener addresses, which a refused process shows in its error.

        Raises:
            OSError: the addresses could not be written; the lock is still held.
        """

    def close(self) -> None:
        """Release the directory. A second call does nothing."""


class Files(Protocol):
    """A file system."""

    descriptor_count_max: int
    """Most files that the process may have open, the host program's included."""

    boot_id: str
    """Identifies the present run of the machine; "" if unknown. A restart, which may lose unsynced
    bytes, changes it."""

    absolute: Callable[[str], str]
    """Returns a path in the form that a later change of the working directory leaves valid."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> File:
        """Open a file for reading and writing; `create` makes a missing file.

        A file that is not `writable` may belong to another process, which may cut it at any moment.
        Therefore its views are copies. Opening it needs only the right to read.
        """

    def read(self, path: str) -> bytes:
        """Return the whole content of a (small) file."""

    def stat(self, path: str) -> FileStat | None:
        """Return facts about a file or directory; None if it does not exist."""

    def list(self, path: str) -> list[str]:
        """Return the sorted names in a directory."""

    def make_directory(self, path: str, mode: int = 0o777) -> None:
        """Make a directory and its missing parents; leave an existing directory alone.

        `mode`, restricted by the process's umask, applies to the directory itself.
        """

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory atomically; replace a file at the new name."""

    def remove(self, path: str) -> None:
        """Remove a file, a symbolic link or an empty directory."""

    def volume(self, path: str) -> Volume:
        """Return the volume of a file or directory."""

    def sync_directory(self, path: str) -> None:
        """Return once the names in a directory survive loss of power.

        Raises:
            NotOpened: the operating system could not open the directory.
        """

    def lock(self, path: str, *, names_owner: bool = True) -> DirectoryLock:
        """Lock the file at `path`, and by convention its directory, until closed.

        The file then names this process; without `names_owner` only after `name_owner`, and until
        then the file keeps its content.

        Raises:
            DirectoryLocked: the lock is held already; the message names the process if it is known.
        """


def write_fully(
    write: Callable[[Sequence[Bytes], int], int], buffers: Sequence[Bytes], position: int
) -> int:
    """Write all of `buffers`, with several calls of `write` if needed; return their size.

    A write of 0 bytes means that the disk is full.
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
    """Return a view of a whole file; an empty file gives an empty view."""
    file = files.open(path)
    size = file.size()
    return file.view(0, size) if size else memoryview(b"")


def write_whole(files: Files, path: str, content: Bytes, *, sync: bool) -> None:
    """Replace a small file so that a crash leaves the old content or the new, never a mixture.

    With `sync` this also holds for a loss of power: the new file is synced before it takes the
    name, and the directory after that.
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
    """Make a directory and its missing parents; with `sync` their names survive loss of power.

    An existing directory is left alone. `mode`: see `Files.make_directory`.
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
    """Remove a directory and everything in it, if it exists.

    Symbolic links in it are removed, but not their targets. A `path` that is a link or a file is
    not touched.
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


def is_directory(files: Files, path: str) -> bool:
    """Whether a directory is at `path`, or a symbolic link to one."""
    stat = files.stat(path)
    return stat is not None and (stat.is_directory or stat.links_to_directory)


def parent(path: str) -> str:
    """Return the directory of `path`; "" is the working directory."""
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else "")
