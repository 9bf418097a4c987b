"""`CopiedFile`: a file that is copied to memory when it is read, for Windows."""

from __future__ import annotations

from embedlog.runtime import descriptors
from embedlog.runtime.locks import Rank, ranked_lock
from embedlog.runtime.memory_files import MemoryNode
from embedlog.runtime.os_file import OsFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.runtime.files import Bytes


class CopiedFile(OsFile):
    """Keeps a copy of the file's beginning in memory, and reads further on demand.

    Windows can neither cut nor remove a file whose mapping is in use, and readers keep views for as
    long as they like. So a segment takes as much memory as readers have read of it.
    """

    __slots__ = ("_copy", "_copied_size", "_lock")

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._copy = MemoryNode()
        self._copied_size = 0
        self._lock = ranked_lock(Rank.FILE)

    def write(self, buffers: Sequence[Bytes], position: int) -> int:
        written = super().write(buffers, position)
        self._forget_from(position)
        return written

    def truncate(self, size: int) -> None:
        super().truncate(size)
        self._forget_from(size)

    def view(self, position: int, size: int) -> memoryview:
        end = position + size
        with self._lock:
            start = self._copied_size
            if end > start:
                content = descriptors.read(self._descriptor, end - start, start)
                if len(content) < end - start:
                    raise ValueError(f"view to byte {end} of a file of {start + len(content)}")
                self._copy.write([content], start)
                self._copied_size = end
            return self._copy.view(position, end)

    def close(self) -> None:
        super().close()
        self._copy, self._copied_size = MemoryNode(), 0

    def _forget_from(self, position: int) -> None:
        with self._lock:
            if position < self._copied_size:
                # Views still show the old copy, so start a new one.
                self._copy, self._copied_size = MemoryNode(), 0
