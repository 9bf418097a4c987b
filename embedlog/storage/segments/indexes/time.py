"""The sparse index from timestamps to offsets of one segment.

    entry, 12 bytes, big-endian
    0   int64   the largest timestamp of the segment so far; strictly increasing
    8   int32   relative offset of the last record of the batch that holds it; not falling

An entry promises that no record up to its offset has a later timestamp. The index is a hint: it may
lack entries, and its users check the batch that an entry points to.
"""

from __future__ import annotations

from _bisect import bisect_left, bisect_right
from struct import Struct

from embedlog.errors import CorruptRecord
from embedlog.storage.segments.indexes.column import LIST_LENGTH_MAX, Column, compact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.common import Buffer

ENTRY_SIZE = 12
_ENTRY = Struct(">qi")


class TimeIndex:
    """The time index of one segment. Append under the partition lock; look-ups need no lock."""

    __slots__ = ("_offsets", "_timestamps", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._timestamps: Column = []
        self._offsets: Column = []

    def __len__(self) -> int:
        return len(self._timestamps)

    def entries(self) -> Iterator[tuple[int, int]]:
        for timestamp, offset in zip(self._timestamps, self._offsets, strict=False):
            yield timestamp, offset + self.base_offset

    @property
    def last(self) -> tuple[int, int] | None:
        """(timestamp, offset) of the last entry, or None."""
        count = len(self._timestamps)
        if not count:
            return None
        return self._timestamps[count - 1], self._offsets[count - 1] + self.base_offset

    def append(self, timestamp: int, offset: int) -> None:
        """Add an entry: `timestamp`, in the batch that ends with `offset`, is the largest so far.

        An entry whose timestamp is not above the last one's is left out.
        """
        timestamps, offsets = self._timestamps, self._offsets
        if timestamp <= (timestamps[-1] if timestamps else -1):
            return
        # An earlier interrupt between the two appends below may have left an offset without its
        # timestamp.
        del offsets[len(timestamps) :]
        offsets.append(offset - self.base_offset)
        # Append to this column last, because readers search it.
        timestamps.append(timestamp)
        if len(timestamps) > LIST_LENGTH_MAX:
            self._offsets, self._timestamps = compact(offsets), compact(timestamps)

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """Return the last entry whose timestamp is at most `timestamp`, or (-1, base offset)."""
        slot = bisect_right(self._timestamps, timestamp)
        if not slot:
            return -1, self.base_offset
        return self._timestamps[slot - 1], self._offsets[slot - 1] + self.base_offset

    def truncated(self, offset: int) -> TimeIndex:
        """Return a new index of the entries below `offset`; readers may go on using this one."""
        kept = TimeIndex(self.base_offset)
        keep = bisect_left(self._offsets, offset - self.base_offset, hi=len(self._timestamps))
        kept._timestamps = self._timestamps[:keep]
        kept._offsets = self._offsets[:keep]
        return kept

    def encode(self) -> bytes:
        pack = _ENTRY.pack
        return b"".join(map(pack, self._timestamps, self._offsets[: len(self._timestamps)]))

    @classmethod
    def decode(cls, content: Buffer, *, base_offset: int, path: str) -> TimeIndex:
        """Read an index file's content. Zeros at the end are no entries.

        Raises:
            CorruptRecord: a broken entry at the end, or columns that do not increase. The caller
                rebuilds the index.
        """
        view = memoryview(content)
        whole = len(view) - len(view) % ENTRY_SIZE
        if whole != len(view):
            raise CorruptRecord(path, whole, f"{len(view) - whole} bytes of a 12-byte entry")
        while whole > 0 and view[whole - ENTRY_SIZE : whole] == bytes(ENTRY_SIZE):
            whole -= ENTRY_SIZE
        index = cls(base_offset)
        last_timestamp, last_offset = -1, 0
        for slot, (timestamp, offset) in enumerate(_ENTRY.iter_unpack(view[:whole])):
            if timestamp <= last_timestamp or offset < last_offset:
                reason = f"entry {(timestamp, offset)} after {(last_timestamp, last_offset)}"
                raise CorruptRecord(path, slot * ENTRY_SIZE, reason)
            last_timestamp, last_offset = timestamp, offset
            index._timestamps.append(timestamp)
            index._offsets.append(offset)
        index._timestamps, index._offsets = compact(index._timestamps), compact(index._offsets)
        return index
