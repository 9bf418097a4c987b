"""Finding an offset or a timestamp in a segment: sparse indexes, checked at each use.

The indexes are hints. Their files have no checksum, and a crash may have left them shorter or older
than the batches. So each entry is compared with the batch that it points to; if it is wrong, both
indexes are rebuilt from the batches' headers.
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.batch_walk import ends_with, locate, walk
from embedlog.storage.events import events
from embedlog.storage.segments.indexes.offset import RELATIVE_OFFSET_MAX, OffsetIndex
from embedlog.storage.segments.indexes.time import TimeIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.segments.segment_file import SegmentFile

HINTS_MAX = 256


class SegmentIndexes:
    """The indexes of one segment. Change them under the partition lock; look-ups need no lock.

    `size` is the segment's published size when the caller read its `end`: no look-up returns a
    position behind it. Look-ups fail only if the batches themselves are damaged.
    """

    __slots__ = ("_base_offset", "_file", "_pair", "_since_entry", "hints")

    def __init__(self, file: SegmentFile, base_offset: int) -> None:
        self._file = file
        self._base_offset = base_offset
        self._pair: tuple[OffsetIndex, TimeIndex] | None = (
            OffsetIndex(base_offset),
            TimeIndex(base_offset),
        )
        """None until the stored indexes are needed."""
        self._since_entry = 0
        """Bytes of batches since the last entry."""
        self.hints: dict[int, int] = {}
        """Offset where a reader will continue -> position of the batch that begins there."""

    # Adding entries. Requires: the partition lock

    def count(
        self,
        last_offset: int,
        position: int,
        size: int,
        interval: int,
        end: tuple[int, int, int, int],
    ) -> None:
        """Count a published batch of `size` bytes; add an index entry every `interval` bytes.

        `end` is the segment's end after this batch.
        """
        if self._since_entry <= interval:
            self._since_entry += size
            return
        self._since_entry = size
        offset_index, time_index = self._pair or self.load(position)
        offset_index.append(last_offset, position)
        _, _, largest, holder = end
        time_index.append(largest, holder)

    def expect_stored(self) -> None:
        """Read the indexes of an existing segment file only when they are first needed."""
        self._pair = None

    def moved(self, file: SegmentFile) -> SegmentIndexes:
        """Return the same indexes for `file`, which has the same bytes."""
        other = SegmentIndexes(file, self._base_offset)
        other._pair, other._since_entry = self._pair, self._since_entry
        return other

    def adopt(self, offset_index: OffsetIndex, time_index: TimeIndex) -> None:
        """Take over the indexes that a scan of the whole file made."""
        self.hints.clear()  # they may come from damaged batches
        self._pair = offset_index, time_index

    def store(self, size: int) -> None:
        offset_index, time_index = self.load(size)
        self._file.write_sidecar(paths.OFFSET_INDEX, offset_index.encode())
        self._file.write_sidecar(paths.TIME_INDEX, time_index.encode())

    def encoded(self) -> tuple[bytes, bytes] | None:
        """Return the contents of both index files; None if the stored files need no change."""
        pair = self._pair
        return None if pair is None else (pair[0].encode(), pair[1].encode())

    # Looking up. No lock

    def remember(self, offset: int, position: int) -> None:
        hints = self.hints
        if len(hints) >= HINTS_MAX:
            hints.clear()
        hints[offset] = position

    def position_of(self, offset: int, size: int) -> int:
        """Return the position of the first batch that ends at or after `offset`, or `size`."""
        position = self.hints.get(offset)
        if position is not None:
            return position
        view = self._file.view(0, size)
        start = self._checked(self.load(size)[0].lookup(offset), view, size)
        if start is None:
            start = self._checked(self.load(size)[0].lookup(offset), view, size) or 0
        position = locate(view, start, size, offset, self._file.path)
        self.remember(offset, position)
        return position

    def boundary_before(self, position: int, size: int) -> int:
        """Return the position of a batch that begins at `position` or shortly before."""
        view = self._file.view(0, size)
        start = self._checked(self.load(size)[0].lookup_position(position), view, size)
        if start is None:
            start = self._checked(self.load(size)[0].lookup_position(position), view, size) or 0
        return start

    def position_of_time(self, timestamp: int, size: int) -> int:
        """Return a position before which every batch is older than `timestamp`."""
        known, offset = self.load(size)[1].lookup(timestamp)
        if known < 0 or not self._holds(known, offset, size):
            return 0
        return self.position_of(offset, size)

    def largest(self, size: int) -> tuple[int, int]:
        """Return the segment's largest timestamp and the last offset of its batch, or -1, -1.

        The search reads the batches after the time index's last entry, so that a short or damaged
        index does no harm.
        """
        largest, holder, position = -1, -1, 0
        last = self.load(size)[1].last
        if last is not None and self._holds(*last, size):
            largest, holder = last
            position = self.position_of(holder, size)
        view = self._file.view(0, size)
        for _, _, _, last_offset, timestamp, _ in walk(view, position, size, self._file.path):
            if timestamp > largest:
                largest, holder = timestamp, last_offset
        return largest, holder

    def load(self, size: int) -> tuple[OffsetIndex, TimeIndex]:
        """Return both indexes; the first call reads or rebuilds them."""
        pair = self._pair
        if pair is None:
            pair = self._pair = self._stored(size) or self._rebuilt(size)
        return pair

    def rebuild(self, size: int, interval: int = 4096) -> None:
        self._pair = self._rebuilt(size, interval)

    def _checked(self, entry: tuple[int, int], view: memoryview, size: int) -> int | None:
        """Return the position of an index entry if the batch there ends as the entry says.

        Otherwise rebuild the damaged index and return None: the caller looks again.
        """
        last_offset, position = entry
        if position == 0 or position >= size:
            # Search from 0: there is no entry, or its batch was published after `end` was read.
            return 0
        if ends_with(view, position, size, last_offset):
            return position
        self.rebuild(size)
        return None

    def _holds(self, timestamp: int, offset: int, size: int) -> bool:
        """Whether the batch that ends with `offset` really has the `timestamp` of the index."""
        position = self.position_of(offset, size)
        if ends_with(self._file.view(0, size), position, size, offset, timestamp):
            return True
        self.rebuild(size)
        return False

    def _stored(self, size: int) -> tuple[OffsetIndex, TimeIndex] | None:
        file, base_offset = self._file, self._base_offset
        try:
            content = file.read_sidecar(paths.OFFSET_INDEX)
            path = file.sidecar(paths.OFFSET_INDEX)
            offset_index = OffsetIndex.decode(
                content, base_offset=base_offset, size=size, path=path
            )
            content = file.read_sidecar(paths.TIME_INDEX)
            path = file.sidecar(paths.TIME_INDEX)
            return offset_index, TimeIndex.decode(content, base_offset=base_offset, path=path)
        except (OSError, CorruptRecord) as error:
            events.debug("%s: the indexes are rebuilt: %s", file.path, error)
            return None

    def _rebuilt(self, size: int, interval: int = 4096) -> tuple[OffsetIndex, TimeIndex]:
        file, expected = self._file, self._base_offset
        offset_index, time_index = OffsetIndex(expected), TimeIndex(expected)
        largest, holder, since = -1, -1, 0
        for position, batch_size, base_offset, last_offset, timestamp, _ in walk(
            file.view(0, size), 0, size, file.path
        ):
            is_too_far = last_offset - self._base_offset > RELATIVE_OFFSET_MAX
            if base_offset < expected or is_too_far:
                reason = f"offsets {base_offset}..{last_offset}, expected {expected} or later"
                raise CorruptRecord(file.path, position, reason)
            expected = last_offset + 1
            if timestamp > largest:
                largest, holder = timestamp, last_offset
            if since > interval:
                since = 0
                offset_index.append(last_offset, position)
                time_index.append(largest, holder)
            since += batch_size
        time_index.append(largest, holder)
        return offset_index, time_index
