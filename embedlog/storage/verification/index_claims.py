"""Comparing the entries of a segment's indexes with its batches."""

from __future__ import annotations

from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.segments.indexes.offset import OffsetIndex
from embedlog.storage.segments.indexes.time import TimeIndex
from embedlog.storage.segments.indexes.transaction import TransactionIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.runtime.files import Files


class IndexClaims:
    """The entries of a segment's indexes that no batch has confirmed yet."""

    def __init__(self, files: Files, directory: str, base_offset: int) -> None:
        self._files = files
        self._directory = directory
        self._base_offset = base_offset
        self._positions: dict[int, int] = {}
        """The offset index: position -> last offset of the batch that begins there."""
        self._times: list[tuple[int, int]] = []
        """The time index: (offset, largest timestamp up to that offset), highest offset first."""
        self.aborts: dict[int, tuple[int, int, int]] = {}
        """Abort markers that `SegmentCheck` has read: the marker's offset -> (producer id, first
        offset of the transaction, last stable offset after the marker). Unknown offsets are -1."""

    def load(self) -> Iterator[CorruptRecord]:
        """Read the indexes of offsets and times; yield their damage."""
        path = self._path(paths.OFFSET_INDEX)
        try:
            offsets = OffsetIndex.decode(
                self._files.read(path), base_offset=self._base_offset, size=1 << 31, path=path
            )
            self._positions = {position: last for last, position in offsets.entries()}
        except FileNotFoundError:
            pass
        except CorruptRecord as error:
            yield error
        path = self._path(paths.TIME_INDEX)
        try:
            times = TimeIndex.decode(
                self._files.read(path), base_offset=self._base_offset, path=path
            )
            self._times = [(offset, timestamp) for timestamp, offset in times.entries()]
            self._times.reverse()
        except FileNotFoundError:
            pass
        except CorruptRecord as error:
            yield error

    def check(
        self, position: int, base_offset: int, last_offset: int, largest: int, *, is_first: bool
    ) -> Iterator[CorruptRecord]:
        """Compare the indexes with the next batch; yield the entries that do not agree.

        `largest` is the segment's largest timestamp up to the end of this batch. `is_first` says
        that no earlier batch has that timestamp.
        """
        claimed = self._positions.pop(position, last_offset) if self._positions else last_offset
        if claimed != last_offset:
            path = self._path(paths.OFFSET_INDEX)
            reason = f"offset {claimed} at position {position}, where a batch ends {last_offset}"
            yield CorruptRecord(path, 0, reason)
        times = self._times
        while times and times[-1][0] <= last_offset:
            # Kafka's entries may have the offset of any record in the batch.
            offset, timestamp = times.pop()
            if timestamp != largest or not is_first or offset < base_offset:
                path = self._path(paths.TIME_INDEX)
                reason = f"timestamp {timestamp} up to offset {offset}, it is {largest}"
                if timestamp == largest:
                    reason = f"offset {offset} is not the first with timestamp {timestamp}"
                yield CorruptRecord(path, 0, reason)

    def unmatched(self) -> Iterator[CorruptRecord]:
        """Yield a damage for each entry that has no batch. Requires: all batches were checked."""
        for position, offset in self._positions.items():
            path = self._path(paths.OFFSET_INDEX)
            reason = f"offset {offset} at position {position}, where no batch begins"
            yield CorruptRecord(path, 0, reason)
        for offset, _ in self._times:
            path = self._path(paths.TIME_INDEX)
            yield CorruptRecord(path, 0, f"offset {offset} is not in the segment")
        path = self._path(paths.TRANSACTION_INDEX)
        try:
            index = TransactionIndex.decode(
                self._files.read(path), base_offset=self._base_offset, path=path
            )
        except FileNotFoundError:
            return
        except CorruptRecord as error:
            yield error
            return
        for entry in index:
            producer_id, first, stable = self.aborts.get(entry.last_offset, (-1, -1, -1))
            if producer_id != entry.producer_id:
                reason = f"no abort marker of {entry.producer_id} at offset {entry.last_offset}"
                yield CorruptRecord(path, 0, reason)
            elif not (
                0 <= entry.first_offset <= entry.last_offset
                and first in (-1, entry.first_offset)
                and 0 <= entry.last_stable_offset <= entry.last_offset + 1
                and stable in (-1, entry.last_stable_offset)
            ):
                reason = f"{entry}, it begins at {first}, and {stable} is stable"
                yield CorruptRecord(path, 0, reason)

    def _path(self, suffix: str) -> str:
        return paths.segment_file(self._directory, self._base_offset, suffix)
