"""One segment of a log: a file of batches, its indexes, and the end of its published part.

Between the published end and the end of the file are zeros, or the remains of a failed append. No
reader ever gets these bytes, and a clean close cuts them off.

`end` is replaced as a whole, by one assignment: a reader that takes it once sees either all of an
append or nothing of it.
"""

from __future__ import annotations

from _bisect import bisect_right

from embedlog.storage import paths
from embedlog.storage.segments.indexes.aborted import AbortedTransactions
from embedlog.storage.segments.indexes.transaction import TransactionIndex
from embedlog.storage.segments.roll_limits import RollLimits
from embedlog.storage.segments.segment_file import SegmentFile
from embedlog.storage.segments.segment_indexes import SegmentIndexes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.open_files import OpenFiles
    from embedlog.storage.segments.scan import SegmentScan

    SegmentEnd = tuple[int, int, int, int]
    """(next offset, size in bytes, largest timestamp, last offset of the batch that has it)."""

EVERYTHING = 1 << 62
UNKNOWN = -2
"""Stands for the largest timestamp of a loaded segment until `largest` is first called."""


class Segment:
    """One segment. Change it under the partition lock; reads need no lock.

    Callers use its parts directly: `file` for bytes, `indexes` for positions, `aborted` for the
    transactions that a read_committed reader leaves out, `limits` for rolling. The segment itself
    holds what the parts share: how much is published, synced and trusted.
    """

    __slots__ = (
        "aborted",
        "base_offset",
        "end",
        "file",
        "indexes",
        "limits",
        "loaded_size",
        "modified_ms",
        "path",
        "synced_size",
        "trusted_size",
    )

    def __init__(
        self,
        open_files: OpenFiles,
        directory: str,
        base_offset: int,
        *,
        created_ms: int,
        zeroed: bool = False,
    ) -> None:
        """Make an empty segment. With `zeroed` its file is extended by zeros, for cheap syncs."""
        self.base_offset = base_offset
        self.file = SegmentFile(open_files, directory, base_offset, zeroed=zeroed)
        self.path = self.file.path
        self.indexes = SegmentIndexes(self.file, base_offset)
        self.aborted = AbortedTransactions(TransactionIndex())
        self.limits = RollLimits(created_ms)
        self.end: SegmentEnd = (base_offset, 0, -1, -1)
        self.modified_ms = created_ms
        """Wall time of the last append, from which the age of records without timestamps counts."""
        self.synced_size = 0
        """Published bytes known to be synced."""
        self.trusted_size = EVERYTHING
        """The batches before this position were checked or written by this process."""
        self.loaded_size = 0
        """Bytes of the file that an earlier process wrote."""

    @property
    def size(self) -> int:
        return self.end[1]

    @property
    def next_offset(self) -> int:
        return self.end[0]

    def largest(self) -> tuple[int, int]:
        """Return the segment's largest timestamp and the last offset of its batch, or -1, -1.

        The first call for a loaded segment searches its batches.
        """
        next_offset, size, largest, holder = self.end
        if largest == UNKNOWN:
            largest, holder = self.indexes.largest(size)
            self.end = (next_offset, size, largest, holder)
        return largest, holder

    # Changing. Requires: the partition lock

    def moved(self, open_files: OpenFiles, directory: str) -> Segment:
        """Return the segment in another directory, which has a synced copy of everything published.

        Readers may keep this one; nothing is written to it any more.
        """
        other = Segment(open_files, directory, self.base_offset, created_ms=self.modified_ms)
        other.file = self.file.moved(open_files, directory, self.size)
        other.indexes = self.indexes.moved(other.file)
        other.aborted, other.limits = self.aborted, self.limits
        other.end, other.modified_ms = self.end, self.modified_ms
        other.synced_size = self.size
        other.trusted_size, other.loaded_size = self.trusted_size, self.loaded_size
        return other

    def expect_stored(self, size: int) -> None:
        """Use the existing file, of `size` bytes. Its indexes are read when they are needed."""
        self.indexes.expect_stored()
        self.aborted = AbortedTransactions()
        self.trusted_size = 0
        self.file.capacity = self.loaded_size = size
        self.file.is_name_synced = True

    def adopt(self, scan: SegmentScan) -> None:
        """Take over the findings of a scan of the whole file."""
        self.indexes.adopt(scan.offset_index, scan.time_index)
        self.end = (scan.next_offset, scan.size, scan.largest, scan.holder)
        self.limits.first_timestamp = scan.first_timestamp
        self.aborted = AbortedTransactions()
        self.trusted_size = EVERYTHING
        self.file.dirty = True
        self.file.is_name_synced = False
        self.synced_size = 0

    def extend(self, last_offset: int, size: int, timestamp: int, interval: int) -> None:
        """Count a batch that was written after the end. Only for a segment that no log has yet."""
        _, position, largest, holder = self.end
        if position == 0:
            self.limits.first_timestamp = timestamp
        if timestamp > largest:
            largest, holder = timestamp, last_offset
        self.end = (last_offset + 1, position + size, largest, holder)
        self.indexes.count(last_offset, position, size, interval, self.end)

    def sync(self) -> None:
        """Make everything published so far, and the file's name, survive a loss of power.

        Requires: the log's sync lock; the partition lock is not needed. For errors see
        `SegmentFile`.
        """
        size = self.end[1]
        self.file.sync()
        self.synced_size = size
        self.file.sync_name()

    def finish(self) -> None:
        """Cut the file to its content, for good; store the indexes beside it, unsynced."""
        if not self.is_changed:
            return
        _, size, timestamp, offset = self.end
        self.file.trim(size)
        if size:
            self.indexes.load(size)[1].append(timestamp, offset)
        self.indexes.store(size)
        aborted = self.aborted.index
        if aborted is not None and len(aborted):
            self.file.write_sidecar(paths.TRANSACTION_INDEX, aborted.encode())
        self.file.dirty, self.aborted.is_stored = False, True

    @property
    def is_changed(self) -> bool:
        """Whether the files beside the segment are older than the segment."""
        return self.file.dirty or not self.aborted.is_stored

    def __repr__(self) -> str:
        return f"Segment({self.path}, end={self.end})"


def base_offset_of(segment: Segment) -> int:
    """Return the key that segments are sorted by."""
    return segment.base_offset


def segments_from(segments: tuple[Segment, ...], offset: int) -> tuple[Segment, ...]:
    """Return the segments that may hold something at or after `offset`."""
    return segments[max(0, bisect_right(segments, offset, key=base_offset_of) - 1) :]
