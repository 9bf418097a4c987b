"""The sparse index from offsets to byte positions of one segment.

    entry, 8 bytes, big-endian, both columns strictly increasing
    0   int32   offset, relative to the segment's first
    4   int32   position at which the batch that ends with this offset begins

In memory an entry is the same 64 bits as one integer, offset in the upper half: an append is one
operation that cannot be half done, and a look-up is one bisection. The index is a hint: it may lack
entries, and its users check the batch that an entry points to.
"""

from __future__ import annotations

from _bisect import bisect_left, bisect_right
from struct import pack, unpack

from embedlog.errors import CorruptRecord
from embedlog.storage.segments.indexes.column import LIST_LENGTH_MAX, Column, compact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from embedlog.common import Buffer

ENTRY_SIZE = 8
RELATIVE_OFFSET_MAX = 2**31 - 1
_POSITION_MASK = 0xFFFF_FFFF


class OffsetIndex:
    """The offset index of one segment. Append under the partition lock; look-ups need no lock."""

    __slots__ = ("_bulk", "_entries", "base_offset")

    def __init__(self, base_offset: int, entries: Column | None = None) -> None:
        self.base_offset = base_offset
        self._entries: Column = [] if entries is None else entries
        self._bulk: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, offset: int, position: int) -> None:
        """Add an entry: the batch that ends with `offset` begins at `position`.

        An entry that is not greater than the last one is left out: the index has it already, from
        an append that failed after this step.
        """
        entry = (offset - self.base_offset) << 32 | position
        entries = self._entries
        if not entries or entry > entries[-1]:
            entries.append(entry)
            if len(entries) > LIST_LENGTH_MAX:
                self._entries = compact(entries)

    def lookup(self, offset: int) -> tuple[int, int]:
        """Return the last entry whose batch ends at or before `offset`, as (that end, position).

        Return (-1, 0) if there is none: then the batch of `offset` is near the segment's begin.
        """
        entries = self._entries
        slot = bisect_right(entries, (offset - self.base_offset) << 32 | _POSITION_MASK)
        return self._entry(entries[slot - 1]) if slot else (-1, 0)

    def lookup_position(self, position: int) -> tuple[int, int]:
        """Return the last entry whose batch begins at or before `position`, or (-1, 0)."""
        entries = self._entries
        slot = bisect_right(entries, position, key=_position)
        return self._entry(entries[slot - 1]) if slot else (-1, 0)

    def entries(self) -> Iterator[tuple[int, int]]:
        """Return every entry as (last offset of the batch, its position)."""
        return map(self._entry, self._entries)

    def positions_for(self, offsets: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions that `lookup` finds for many offsets at once."""
        import numpy as np

        bulk = self._bulk
        if bulk is None or len(bulk) != len(self._entries):
            bulk = self._bulk = np.array(self._entries, dtype=np.int64)
        wanted = np.asarray(offsets, dtype=np.int64) - self.base_offset
        wanted = np.clip(wanted, -1, RELATIVE_OFFSET_MAX)
        # Keys of the index's own type: anything else makes numpy convert the whole index.
        slots = bulk.searchsorted(wanted << 32 | _POSITION_MASK, side="right")
        if not len(bulk):
            return np.zeros(len(wanted), dtype=np.int64)
        return np.where(slots > 0, bulk[slots - 1] & _POSITION_MASK, 0)

    def truncated(self, offset: int) -> OffsetIndex:
        """Return a new index of the entries below `offset`; readers may go on using this one."""
        keep = bisect_left(self._entries, (offset - self.base_offset) << 32)
        return OffsetIndex(self.base_offset, self._entries[:keep])

    def encode(self) -> bytes:
        return pack(f">{len(self._entries)}q", *self._entries)

    @classmethod
    def decode(cls, content: Buffer, *, base_offset: int, size: int, path: str) -> OffsetIndex:
        """Read an index file's content; `size` is the segment's, in bytes.

        Zeros at the end (the file was extended in advance) are no entries.

        Raises:
            CorruptRecord: a broken entry at the end, columns that do not increase, or a position
                outside the segment. The caller rebuilds the index.
        """
        view = memoryview(content)
        whole = len(view) - len(view) % ENTRY_SIZE
        if whole != len(view):
            raise CorruptRecord(path, whole, f"{len(view) - whole} bytes of an 8-byte entry")
        entries = list(unpack(f">{whole // ENTRY_SIZE}q", view))
        while entries and entries[-1] == 0:
            entries.pop()
        last_offset, last_position = -1, -1
        for slot, entry in enumerate(entries):
            offset, position = entry >> 32, entry & _POSITION_MASK
            if offset <= last_offset or not last_position < position < size:
                reason = f"entry {(offset, position)} after {(last_offset, last_position)}"
                raise CorruptRecord(path, slot * ENTRY_SIZE, reason)
            last_offset, last_position = offset, position
        return cls(base_offset, compact(entries))

    def _entry(self, entry: int) -> tuple[int, int]:
        return (entry >> 32) + self.base_offset, entry & _POSITION_MASK


def _position(entry: int) -> int:
    return entry & _POSITION_MASK
