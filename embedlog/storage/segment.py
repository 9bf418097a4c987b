"""One segment of a log: a file of batches, its indexes, and where its published part ends.

A segment's file is extended in steps ahead of its content, so that an append changes no metadata
and a mapping lasts for a while. What lies between the published end and the end of the file is
zeros, or the remains of an append that failed; nobody is ever shown a byte of it, and a clean
close cuts it off.

    |  batch  |  batch  |  batch  | 0000000000000000000 |
    0                             size               capacity

`end` is replaced as a whole, by one assignment: readers take it once and see either all of an
append or nothing of it.
"""

from __future__ import annotations

from _bisect import bisect_right

from embedlog.errors import CorruptRecord, KafkaStorageError
from embedlog.runtime.files import NotOpened, read_view, write_fully, write_whole
from embedlog.runtime.locks import Rank, process_wide, ranked_rlock
from embedlog.storage import paths
from embedlog.storage.batch_walk import ends_with, locate, walk
from embedlog.storage.events import events
from embedlog.storage.indexes.offset import RELATIVE_OFFSET_MAX, OffsetIndex
from embedlog.storage.indexes.time import TimeIndex
from embedlog.storage.indexes.transaction import TransactionIndex
from embedlog.storage.preallocation import preallocate, preallocate_zeros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.runtime.files import Bytes, File
    from embedlog.storage.indexes.transaction import AbortedTransaction
    from embedlog.storage.open_files import OpenFiles
    from embedlog.storage.segment_scan import SegmentScan

    SegmentEnd = tuple[int, int, int, int]
    """(next offset, size in bytes, largest timestamp, last offset of the batch that has it)."""

_aborted_lock = process_wide(ranked_rlock(Rank.ABORTED))
HINTS_MAX = 256
ALL_FILES = (paths.LOG, *paths.SIDECARS, paths.SNAPSHOT)
"""In the order of their removal: an index without its log is swept up at the next open."""
EVERYTHING = 1 << 62
_UNKNOWN_CAPACITY = -1
UNKNOWN = -2
"""The largest timestamp of a loaded segment that nobody has asked for."""


class Segment:
    """Written under the partition lock; read by anyone without one."""

    __slots__ = (
        "_noted",
        "_offset_index",
        "_open_files",
        "_since_index_entry",
        "_time_index",
        "aborted",
        "base_offset",
        "capacity",
        "created_ms",
        "directory",
        "dirty",
        "directory_synced",
        "end",
        "first_timestamp",
        "hints",
        "index_room",
        "is_gone",
        "is_missing",
        "kept",
        "loaded_size",
        "modified_ms",
        "offset_max",
        "opened",
        "path",
        "synced_size",
        "size_max",
        "time_max",
        "trusted_size",
        "used",
        "zeroed",
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
        """An empty segment; `zeroed` extends its file by written zeros, for cheap syncs."""
        self._open_files = open_files
        self.directory = directory
        self.base_offset = base_offset
        self.path = paths.segment_file(directory, base_offset)
        self.end: SegmentEnd = (base_offset, 0, -1, -1)
        self.capacity = 0
        self.created_ms = created_ms
        self.modified_ms = created_ms
        """When something was last appended, as wall time: the age of records without one."""
        self.first_timestamp = -1
        """Largest timestamp of the first batch, -1 when there is none: the age of a roll."""
        self.zeroed = zeroed
        self.synced_size = 0
        """Published bytes known to be synced."""
        self.size_max = self.offset_max = self.time_max = -1
        """Up to here the segment takes batches without asking `LogState` whether to roll."""
        self.index_room = 0
        """So many entries the indexes take before it has to be asked."""
        self.trusted_size = EVERYTHING
        self.loaded_size = 0
        """Up to here the headers were checked, or written, by this process."""
        self.directory_synced = False
        self.dirty = False
        """Changed since its indexes were last stored."""
        self.opened: File | None = None
        self.kept: File | None = None
        """The file of a segment whose name means another, or none; see `part_with`."""
        self.is_gone = False  # its log was deleted, and the name may mean another's
        self.used = False
        self.is_missing = False
        """The file could not be made yet."""
        self.hints: dict[int, int] = {}
        """Offsets that readers will ask for next -> position of their batch."""
        self._since_index_entry = 0
        self._offset_index: OffsetIndex | None = OffsetIndex(base_offset)
        self._time_index: TimeIndex | None = TimeIndex(base_offset)
        self.aborted: TransactionIndex | None = TransactionIndex()
        """The aborted transactions whose markers lie here; None while nobody has asked for those
        of a loaded segment, see `producer_append.load_aborted`."""
        self._noted: list[AbortedTransaction] = []
        """Transactions that ended while `aborted` was None."""

    @property
    def size(self) -> int:
        """Published bytes."""
        return self.end[1]

    @property
    def next_offset(self) -> int:
        """The offset after the last published one."""
        return self.end[0]

    @property
    def file(self) -> File:
        """The open file; keep the reference for as long as it is used."""
        opened = self.opened
        if opened is None:
            return self._open_files.open(self, create=self.is_missing)
        self.used = True
        return opened

    # Writing. Requires: the partition lock

    def create(self) -> None:
        """Make the file. If that fails, whoever needs the file next makes it.

        Raises:
            OSError: the disk refuses.
        """
        self.is_missing = True
        self._open_files.open(self, create=True)
        self.is_missing = False

    def write(self, buffers: Sequence[Bytes], size: int) -> None:
        """Store `size` bytes behind the published end; publishes nothing.

        Raises:
            OSError: nothing is known of the bytes behind the end; see `discard_unpublished`.
        """
        position = self.end[1]
        if position + size > self.capacity:
            self._extend(position + size)
        file = self.opened
        if file is None:
            file = self._open_files.open(self, create=self.is_missing)
        self.dirty = True
        if file.write(buffers, position) != size:
            # A short write: once more from the start, in as many pieces as it takes.
            write_fully(file.write, buffers, position)

    def index(self, last_offset: int, position: int, size: int, interval: int) -> None:
        """Count a published batch; every `interval` bytes the indexes get an entry."""
        if self._since_index_entry <= interval:
            self._since_index_entry += size
            return
        self._since_index_entry = size
        self.index_room -= 1
        if self.index_room <= 0:
            self.time_max = -1
        offset_index, time_index = self._offset_index, self._time_index
        if offset_index is None or time_index is None:
            offset_index, time_index = self.offset_index, self.time_index
        offset_index.append(last_offset, position)
        _, _, largest, holder = self.end
        time_index.append(largest, holder)

    def expect_stored_indexes(self) -> None:
        """The file existed before: its indexes are read when they are first needed."""
        self._offset_index = self._time_index = None
        self.aborted = None
        self.trusted_size = 0
        self.loaded_size = self.capacity
        self.directory_synced = True

    def adopt(self, scan: SegmentScan) -> None:
        """Take over what reading every batch of the file has found."""
        self.hints.clear()  # they were taken from what may be damaged
        self.end = (scan.next_offset, scan.size, scan.largest, scan.holder)
        self.first_timestamp = scan.first_timestamp
        self._offset_index, self._time_index = scan.offset_index, scan.time_index
        self.aborted = None
        self.trusted_size = EVERYTHING
        self.dirty = True
        self.directory_synced = False
        self.synced_size = 0

    def note_aborted(self, transaction: AbortedTransaction) -> None:
        """Add a transaction to the index of aborted ones, unless a replay finds it there."""
        with _aborted_lock:
            self._noted.append(transaction)
            self._add_noted()

    def adopt_aborted(self, index: TransactionIndex) -> TransactionIndex:
        """Take over what a reader found in the batches, which may have grown meanwhile."""
        with _aborted_lock:
            if self.aborted is None:
                self.aborted = index
            self._add_noted()
            return self.aborted

    def _add_noted(self) -> None:
        index = self.aborted
        if index is None:
            return
        for transaction in self._noted:
            known, _ = index.collect_aborted(transaction.last_offset, transaction.last_offset + 1)
            if not known:
                index.append(transaction)
                self.dirty = True
        self._noted.clear()

    def distrust_capacity(self) -> None:
        """What a failed write left behind the end could not be cut off: the next write does it."""
        self.capacity = _UNKNOWN_CAPACITY

    def discard_unpublished(self) -> None:
        """Cut off what a failed write may have left behind the end."""
        file = self.file
        size = self.end[1]
        if file.size() > size:
            file.truncate(size)
        self.capacity = size

    def sync(self) -> None:
        """Make everything written so far survive loss of power, and the file's name.

        Raises:
            NotOpened: the file, or its directory, could not be opened.
            OSError: nobody knows what will survive.
        """
        size = self.end[1]
        try:
            file = self.file
        except FileNotFoundError:
            raise
        except OSError as error:
            raise NotOpened(error.errno, error.strerror, self.path) from error
        file.sync()
        self.synced_size = size
        self.sync_name()

    def sync_name(self) -> None:
        """Make the file's name survive loss of power, once."""
        if not self.directory_synced:
            self._open_files.files.sync_directory(self.directory)
            self.directory_synced = True

    def trim(self) -> None:
        """Cut the file to its content."""
        if self.capacity == _UNKNOWN_CAPACITY:
            self.discard_unpublished()
        elif self.capacity > self.end[1]:
            self.file.truncate(self.end[1])
            self.capacity = self.end[1]

    def finish(self) -> None:
        """Cut the file to its content, for good; store the indexes beside it, as hints unsynced."""
        if not self.dirty:
            return
        self.trim()
        files = self._open_files.files
        _, size, timestamp, offset = self.end
        if size:
            self.time_index.append(timestamp, offset)
        contents = (self.offset_index.encode(), self.time_index.encode())
        for suffix, content in zip(paths.SIDECARS, contents, strict=False):
            write_whole(files, self.sidecar(suffix), content, sync=False)
        if self.aborted is not None and len(self.aborted):
            aborted = self.aborted.encode()
            write_whole(files, self.sidecar(paths.TRANSACTION_INDEX), aborted, sync=False)
        self.dirty = False

    def release(self) -> None:
        """Let go of the descriptor."""
        self._open_files.forget(self)

    def part_with(self) -> None:
        """Keep the file open for readers who are at it: its name will mean another, or none."""
        self.kept = self.file
        self._open_files.forget(self)

    def put_away(self, suffixes: tuple[str, ...] = ALL_FILES) -> list[str]:
        """Give the segment's files names that mean nothing; return these, to be removed later.

        Views of its batches stay readable. After an error it can be called again.
        """
        files = self._open_files.files
        self._open_files.forget(self)
        useless = []
        for suffix in suffixes:
            path = self.sidecar(suffix)
            if files.stat(path) is not None:
                files.rename(path, path + paths.DELETED)
            elif files.stat(path + paths.DELETED) is None:
                continue
            useless.append(path + paths.DELETED)
        return useless

    def remove(self) -> None:
        """Remove the segment's files. Views of its batches stay readable.

        Raises:
            OSError: the log's own file is still there. A file beside it that cannot be removed is a
                hint to nothing, and goes when the directory is next opened.
        """
        files = self._open_files.files
        self._open_files.forget(self)
        for suffix in ALL_FILES:
            path = self.sidecar(suffix)
            try:
                if files.stat(path) is not None:
                    files.remove(path)
            except OSError as error:
                if suffix == paths.LOG:
                    raise
                events.debug("%s cannot be removed yet: %s", path, error)

    def sidecar(self, suffix: str) -> str:
        """The path of one of the segment's files."""
        return paths.segment_file(self.directory, self.base_offset, suffix)

    def keep_room(self, size: int) -> None:
        """Reserve room for so many bytes behind the end, if the disk has it.

        Requires: the partition lock.
        """
        needed = self.end[1] + size
        if needed > self.capacity:
            try:
                self._extend(needed)
            except OSError as error:
                events.debug("%s: no room to spare: %s", self.path, error)

    def _extend(self, needed: int) -> None:
        if self.capacity == _UNKNOWN_CAPACITY:
            self.discard_unpublished()
        if self.zeroed:
            self.capacity = preallocate_zeros(self.file, self.capacity, needed)
        else:
            self.capacity = preallocate(self.file, needed)

    # Reading. No lock

    def view(self, position: int, end: int) -> memoryview:
        """A view of published bytes.

        Raises:
            CorruptRecord: the file is shorter than what was published.
            KafkaStorageError: the file cannot be opened (removed meanwhile, or too many are open).
        """
        if position == end:
            return memoryview(b"")
        try:
            return self.file.view(position, end - position)
        except ValueError as error:
            raise CorruptRecord(self.path, position, str(error)) from None
        except OSError as error:
            raise KafkaStorageError(f"{self.path}: {error}") from error

    def position_of(self, offset: int, size: int) -> int:
        """Where the first batch that ends at or after `offset` begins; `size` when none does.

        `size` is of the caller's `end`. A damaged index is noticed, and rebuilt from the batches.

        Raises:
            CorruptRecord: the batches themselves are damaged.
        """
        position = self.hints.get(offset)
        if position is not None:
            return position
        view = self.view(0, size)
        start = self._checked(self.offset_index.lookup(offset), view, size)
        if start is None:
            start = self._checked(self.offset_index.lookup(offset), view, size) or 0
        position = locate(view, start, size, offset, self.path)
        self.remember(offset, position)
        return position

    def boundary_before(self, position: int, size: int) -> int:
        """The begin of some batch, at most `position`, and not far before it."""
        view = self.view(0, size)
        start = self._checked(self.offset_index.lookup_position(position), view, size)
        if start is None:
            start = self._checked(self.offset_index.lookup_position(position), view, size) or 0
        return start

    def _checked(self, entry: tuple[int, int], view: memoryview, size: int) -> int | None:
        """The position of an index entry if the batch there ends as the entry says.

        If not, the index is damaged and is rebuilt: None asks for another look.
        """
        last_offset, position = entry
        if position == 0 or position >= size:
            # No entry, or one of a batch that was published after the caller took its `end`.
            return 0
        if ends_with(view, position, size, last_offset):
            return position
        self.rebuild_indexes()
        return None

    def position_of_time(self, timestamp: int, size: int) -> int:
        """A position before which every batch is older than `timestamp`."""
        known, offset = self.time_index.lookup(timestamp)
        if known < 0 or not self._holds(known, offset, size):
            return 0
        return self.position_of(offset, size)

    def largest(self) -> tuple[int, int]:
        """(timestamp, last offset of the batch that holds it) of the whole segment, or -1, -1.

        Of a segment that was loaded it is found when it is first asked for: from the time index's
        last entry on, batch by batch, so that a shortened or damaged index does no harm.
        """
        next_offset, size, largest, holder = self.end
        if largest != UNKNOWN:
            return largest, holder
        largest, holder, position = -1, -1, 0
        last = self.time_index.last
        if last is not None and self._holds(*last, size):
            largest, holder = last
            position = self.position_of(holder, size)
        for _, _, _, last_offset, timestamp, _ in walk(
            self.view(0, size), position, size, self.path
        ):
            if timestamp > largest:
                largest, holder = timestamp, last_offset
        self.end = (next_offset, size, largest, holder)
        return largest, holder

    def _holds(self, timestamp: int, offset: int, size: int) -> bool:
        """Whether the batch that ends with `offset` has `timestamp`; the index claims so."""
        position = self.position_of(offset, size)
        if ends_with(self.view(0, size), position, size, offset, timestamp):
            return True
        self.rebuild_indexes()
        return False

    def remember(self, offset: int, position: int) -> None:
        """Note where a reader will continue."""
        hints = self.hints
        if len(hints) >= HINTS_MAX:
            hints.clear()
        hints[offset] = position

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index, read from its file or rebuilt when it is first needed."""
        index = self._offset_index
        if index is None:
            self._load_indexes()
            index = self._offset_index
            assert index is not None
        return index

    @property
    def time_index(self) -> TimeIndex:
        """The time index, read from its file or rebuilt when it is first needed."""
        index = self._time_index
        if index is None:
            self._load_indexes()
            index = self._time_index
            assert index is not None
        return index

    def rebuild_indexes(self, interval: int = 4096) -> None:
        """Make the offset and time index anew from the batches' headers.

        Raises:
            CorruptRecord: the batches themselves are damaged.
        """
        _, size, _, _ = self.end
        offset_index, time_index = OffsetIndex(self.base_offset), TimeIndex(self.base_offset)
        largest, holder, since = -1, -1, 0
        expected = self.base_offset
        for position, batch_size, base_offset, last_offset, timestamp, _ in walk(
            self.view(0, size), 0, size, self.path
        ):
            if base_offset < expected or last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
                reason = f"offsets {base_offset}..{last_offset}, expected {expected} or later"
                raise CorruptRecord(self.path, position, reason)
            expected = last_offset + 1
            if timestamp > largest:
                largest, holder = timestamp, last_offset
            if since > interval:
                since = 0
                offset_index.append(last_offset, position)
                time_index.append(largest, holder)
            since += batch_size
        time_index.append(largest, holder)
        self._offset_index, self._time_index = offset_index, time_index

    def _load_indexes(self) -> None:
        files = self._open_files.files
        size = self.end[1]
        try:
            offset_path = self.sidecar(paths.OFFSET_INDEX)
            time_path = self.sidecar(paths.TIME_INDEX)
            offset_index = OffsetIndex.decode(
                read_view(files, offset_path),
                base_offset=self.base_offset,
                size=size,
                path=offset_path,
            )
            time_index = TimeIndex.decode(
                read_view(files, time_path), base_offset=self.base_offset, path=time_path
            )
        except (OSError, CorruptRecord) as error:
            events.debug("%s: the indexes are rebuilt: %s", self.path, error)
            self.rebuild_indexes()
            return
        self._offset_index, self._time_index = offset_index, time_index

    def __repr__(self) -> str:
        return f"Segment({self.path}, end={self.end})"


def base_offset_of(segment: Segment) -> int:
    """The key that segments are sorted by."""
    return segment.base_offset


def segments_from(segments: tuple[Segment, ...], offset: int) -> tuple[Segment, ...]:
    """The segments that may hold something at or after `offset`."""
    return segments[max(0, bisect_right(segments, offset, key=base_offset_of) - 1) :]
