"""`OsFile`: one file of the operating system, open; and all that are open in this process.

Writes go by position, reads through read-only mappings of the whole file; the page cache keeps the
two coherent. Nothing is ever stored through a mapping: on a full disk that is SIGBUS, which kills
the host program. A mapping is never closed or resized, only forgotten: a view that is still in use
keeps it alive. Where a mapped file could be neither cut nor removed, what is read is copied
instead; see `embedlog.runtime.descriptors`.

After `fork` the child closes what it got from its parent. Views stay readable in it: their mappings
are inherited on purpose (not MADV_DONTFORK), as touching a missing one would kill it.
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
"""All that holds a descriptor of this process, by it: what a child lets go of after fork."""


class OsFile(File):
    """One descriptor, and a mapping once it is read. See `File`."""

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


def _close(descriptor: int, _close: Callable[[int], None] = os.close) -> None:
    """Close a descriptor once; bound early, for objects that die after this module."""
    if descriptor >= 0:
        OPEN.pop(descriptor, None)
        _close(descriptor)


def _let_go_after_fork() -> None:
    """Close in a child what belongs to its parent; the parent's locks and files are untouched."""
    for reference in list(OPEN.values()):
        held = reference()
        if held is not None:
            held.close()
    OPEN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_after_fork)
