"""Reading a segment that another process may be writing, cutting or removing.

Bytes are copied out of the file, never mapped, because the owner may shorten it (see `Files.open`).
The checksum of every batch is checked on each read.
"""

from __future__ import annotations

from _bisect import bisect_right
from typing import NamedTuple

from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.segments.indexes.offset import OffsetIndex
from embedlog.storage.segments.indexes.time import TimeIndex
from wire.records.batch import RecordBatch, iter_batches
from wire.records.errors import RecordsError
from wire.records.format import HEADER, HEADER_SIZE, LOG_OVERHEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.runtime.files import File, Files
    from wire.records.legacy import LegacyBatch

    Batch = RecordBatch | LegacyBatch

READ_SIZE = 1 << 20
_LENGTH_POSITION = 8


class Head(NamedTuple):
    """The position and header fields of a batch whose records were not read."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    attributes: int
    producer_id: int


class ForeignSegment:
    """An open segment of another process's log. It stays readable after its file is removed.

    Raises:
        FileNotFoundError: there is no such segment (any more).
    """

    __slots__ = ("_directory", "_file", "_files", "_marks", "base_offset", "path")

    def __init__(
        self, files: Files, directory: str, base_offset: int, suffix: str = paths.LOG
    ) -> None:
        self._files = files
        self._directory = directory
        self.base_offset = base_offset
        self.path = paths.segment_file(directory, base_offset, suffix)
        self._file: File = files.open(self.path, writable=False)
        self._marks: list[tuple[int, int]] = []
        """(base offset, position) of some batches that were read, for later searches."""

    def size(self) -> int:
        """Return the size of the file. Reserved room or a torn batch at the end counts as well."""
        return self._file.size()

    def is_replaced(self) -> bool:
        """Return whether the file was removed, or another file has taken its name."""
        before = self.size()
        stat = self._files.stat(self.path)
        if stat is None:
            return True
        low, high = sorted((before, self.size()))
        return not low <= stat.size <= high

    def batches(self, position: int = 0, end: int | None = None) -> Iterator[tuple[int, Batch]]:
        """Yield (position, batch) for the batches from `position` to `end`, or to the file's end.

        Raises:
            CorruptRecord: the next batch is bad; perhaps it is being written.
        """
        size = self.size() if end is None else end
        while position < size:
            start = position
            for batch in self._some(position, size):
                self._check(batch, position)
                yield position, batch
                position += batch.size
            if position == start:
                reason = f"no whole batch in the {size - position} bytes that remain"
                raise CorruptRecord(self.path, position, reason)

    def heads(self, position: int, next_offset: int) -> Iterator[Head]:
        """Yield the heads of consecutive batches from `position` on, without checking checksums.

        This takes a tenth of the time of reading the batches. The first head's offset must be at
        least `next_offset`. End silently at anything that is no whole batch of magic 2: a torn,
        damaged or older batch, or reserved room.

        Use it only if the machine has not restarted since the batches were written: then only the
        last batch can be torn. After a loss of power, any of the last batches may be.
        """
        size = self.size()
        while position + HEADER_SIZE <= size:
            try:
                fields = HEADER.unpack(self._file.view(position, HEADER_SIZE))
            except ValueError:
                return  # the writing process has shortened the file meanwhile
            base_offset, length, _, magic, _, attributes, last_offset_delta = fields[:7]
            producer_id = fields[9]
            batch_size = length + LOG_OVERHEAD
            is_whole = HEADER_SIZE <= batch_size <= size - position
            if magic != 2 or not is_whole or base_offset < next_offset or last_offset_delta < 0:
                return
            next_offset = base_offset + last_offset_delta + 1
            last_offset = next_offset - 1
            yield Head(position, batch_size, base_offset, last_offset, attributes, producer_id)
            position += batch_size

    def batch_of(self, head: Head) -> RecordBatch:
        """Return the batch with this head; CorruptRecord if it is damaged."""
        try:
            batch = RecordBatch(self._file.view(head.position, head.size))
        except (RecordsError, ValueError) as error:
            raise CorruptRecord(self.path, head.position, str(error)) from None
        self._check(batch, head.position)
        return batch

    def _some(self, position: int, end: int) -> Iterator[Batch]:
        """Read READ_SIZE bytes, or the first batch if it is larger; yield the whole batches."""
        try:
            view = self._file.view(position, min(READ_SIZE, end - position))
            if len(view) < end - position:
                length = view[_LENGTH_POSITION:LOG_OVERHEAD]
                needed = int.from_bytes(length, "big", signed=True) + LOG_OVERHEAD
                if len(view) < needed <= end - position:
                    view = self._file.view(position, needed)
        except ValueError as error:
            # The writing process has shortened the file meanwhile.
            raise CorruptRecord(self.path, position, str(error)) from None
        at = position
        try:
            for batch in iter_batches(view):
                yield batch
                at += batch.size
        except RecordsError as error:
            raise CorruptRecord(self.path, at, str(error)) from None

    def _check(self, batch: Batch, position: int) -> None:
        try:
            is_good = batch.is_valid_crc() and batch.last_offset >= batch.base_offset
        except RecordsError as error:
            raise CorruptRecord(self.path, position, str(error)) from None
        if not is_good:
            reason = f"batch at offset {batch.base_offset}: crc {batch.crc:#010x} does not fit"
            raise CorruptRecord(self.path, position, reason)

    def remaining(self, position: int) -> memoryview:
        try:
            return self._file.view(position, max(0, self.size() - position))
        except ValueError:
            return memoryview(b"")  # the writing process has shortened the file meanwhile

    # Finding

    def mark(self, base_offset: int, position: int) -> None:
        """Note the place of a batch for later searches, unless the last mark is near it."""
        if not self._marks or position - self._marks[-1][1] >= READ_SIZE // 16:
            self._marks.append((base_offset, position))

    @property
    def marks(self) -> list[tuple[int, int]]:
        return self._marks

    def mark_before(self, offset: int) -> tuple[int, int] | None:
        """Return the last marked batch at or before `offset`: (base offset, position), or None."""
        slot = bisect_right(self._marks, (offset, 1 << 62))
        return self._marks[slot - 1] if slot else None

    def begins_with(self, base_offset: int, position: int) -> bool:
        """Return whether a good batch with this base offset begins at `position`."""
        try:
            for _, batch in self.batches(position):
                return batch.base_offset == base_offset
        except CorruptRecord:
            pass
        return False

    def position_of(self, offset: int) -> int:
        """Return the position of a batch at or before `offset`, to search from."""
        mark = self.mark_before(offset)
        if mark is not None:
            return mark[1]
        index = self._index()
        last_offset, position = index.lookup(offset) if index is not None else (-1, 0)
        return position if position and self._ends_with(last_offset, position) else 0

    def _index(self) -> OffsetIndex | None:
        path = paths.segment_file(self._directory, self.base_offset, paths.OFFSET_INDEX)
        try:
            return OffsetIndex.decode(
                self._files.read(path), base_offset=self.base_offset, size=self.size(), path=path
            )
        except (FileNotFoundError, CorruptRecord):
            return None  # without the index the search only takes longer

    def _ends_with(self, last_offset: int, position: int, timestamp: int | None = None) -> bool:
        if self.size() - position < HEADER_SIZE:
            return False
        try:
            for _, batch in self.batches(position):
                is_timely = timestamp is None or batch.max_timestamp == timestamp
                return batch.last_offset == last_offset and is_timely
        except CorruptRecord:
            pass
        return False

    def latest_timestamp(self) -> int | None:
        """Return the largest timestamp of a closed segment; None without a good time index."""
        path = paths.segment_file(self._directory, self.base_offset, paths.TIME_INDEX)
        try:
            content = self._files.read(path)
            last = TimeIndex.decode(content, base_offset=self.base_offset, path=path).last
        except (FileNotFoundError, CorruptRecord):
            return None
        if last is None:
            return None
        timestamp, offset = last
        for position, batch in self.batches(self.position_of(offset)):
            if batch.last_offset >= offset:
                return timestamp if self._ends_with(offset, position, timestamp) else None
        return None
