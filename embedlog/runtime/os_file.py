"""`OsFile`: an open file of the operating system.

Writes go by position, reads through a read-only mapping of the whole file; the page cache keeps the
two coherent. Nothing is stored through a mapping: on a full disk that causes SIGBUS, which kills
the host program. A mapping is never closed or resized, only dropped: a view in use keeps it alive.
On a system that cannot cut or remove a mapped file, reads copy instead. `descriptors` has the calls
of each system for write, sync and reserve.

After `fork` the child closes its parent's files. Views stay readable in the child: it inherits the
mappings on purpose (no MADV_DONTFORK), because touching a missing mapping would kill it.
"""

from __future__ import annotations

import os
from _weakref import ref

from embedlog.runtime import descriptors
from embedlog.runtime.files import File

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.runtime.files import Bytes, DirectoryLock

_write, _sync = descriptors.write, descriptors.sync
_NOTHING = memoryview(b"")

OPEN: dict[int, ref[OsFile | DirectoryLock]] = {}
"""Open files and locks of this process, by descriptor. A forked child closes them."""


class OsFile(File):
    """A descriptor, and a mapping after the first read. See `File`."""

    __slots__ = ("__weakref__", "_descriptor", "_mapped")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._mapped = _NOTHING
        OPEN[descriptor] = ref(self)

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
        """Map the whole file; views keep the former mapping.

        Another thread may cut off reserved bytes at any moment. So the call maps the length that
        the file has at this moment, not a length read earlier.
        """
        size = os.fstat(self._descriptor).st_size
        if end <= size:
            self._mapped = mapped = memoryview(descriptors.map_read_only(self._descriptor))
            size = len(mapped)
            if end <= size:
                return mapped
        raise ValueError(f"view to byte {end} of a file of {size}")


class ForeignFile(OsFile):
    """A file that another process writes, opened for reading.

    It is not mapped: that process may cut the file, and touching a mapped page behind the end
    causes SIGBUS.
    """

    __slots__ = ()

    def view(self, position: int, size: int) -> memoryview:
        content = descriptors.read_at(self._descriptor, size, position)
        if len(content) < size:
            raise ValueError(f"view to byte {position + size}, {position + len(content)} are there")
        return memoryview(content)


def _close(descriptor: int, _close: Callable[[int], None] = os.close) -> None:
    """Close a descriptor. `_close` is bound early, for objects that outlive this module."""
    if descriptor >= 0:
        OPEN.pop(descriptor, None)
        _close(descriptor)


def _let_go_after_fork() -> None:
    """In a child: close the parent's descriptors. The parent's locks and files are unaffected."""
    for reference in list(OPEN.values()):
        held = reference()
        if held is not None:
            held.close()
    OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_after_fork)
