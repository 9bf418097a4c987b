"""The files of a segment: open, extend, sync, cut, rename and remove them.

The `.log` file is extended in steps ahead of its content, so that most appends change no metadata
and a mapping of the file lasts for a while:

    |  batch  |  batch  |  batch  | 0000000000000000000 |
    0                            size                capacity
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord, KafkaStorageError
from embedlog.runtime.files import NotOpened, read_view, write_fully, write_whole
from embedlog.storage import paths
from embedlog.storage.events import events
from embedlog.storage.open_files import Openable, OpenFiles
from embedlog.storage.segments.preallocation import preallocate, preallocate_zeros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.runtime.files import Bytes, File

ALL_FILES = (paths.LOG, *paths.SIDECARS, paths.SNAPSHOT)
"""Suffixes of a segment's files, in the order of their removal. The log file goes first, because
the next opening removes indexes without a log file."""
NOTHING = memoryview(b"")
_UNKNOWN_CAPACITY = -1


class SegmentFile(Openable):
    """The files of one segment. `view` and `release` need no lock.

    All other methods require the partition lock. The segment knows how many bytes of the file are
    published, and passes this `size` to each call. A failed sync raises NotOpened if the file or
    directory could not be opened; after another OSError any unsynced byte may be lost.
    """

    __slots__ = (
        "_base_offset",
        "is_missing",
        "_open_files",
        "capacity",
        "directory",
        "dirty",
        "is_name_synced",
        "successor",
        "zeroed",
    )

    def __init__(
        self, open_files: OpenFiles, directory: str, base_offset: int, *, zeroed: bool
    ) -> None:
        """Make no file yet. With `zeroed` extend the file by writing zeros, for cheap syncs."""
        super().__init__(paths.segment_file(directory, base_offset))
        self._open_files = open_files
        self._base_offset = base_offset
        self.directory = directory
        self.capacity = 0
        self.zeroed = zeroed
        self.dirty = False
        """True if the file has changed since its indexes were last stored."""
        self.is_name_synced = False
        self.is_missing = False
        """True after `create` failed: the next opening creates the file."""
        self.successor: SegmentFile | None = None
        """The copy of this file in the directory that the log has moved to; None before a move."""

    def get(self) -> File:
        """Return the file, opened now if necessary.

        Keep the reference while using the file: `OpenFiles` may forget it at any time.
        """
        opened = self.opened
        if opened is not None:
            self.used = True
            return opened
        if self.successor is None:
            try:
                opened = self._open_files.open(self, create=self.is_missing)
            except FileNotFoundError:
                if self.successor is None:
                    raise
        if self.successor is None:
            assert opened is not None
            return opened
        # Take the copy's file: the log has moved, so the name may belong to another log by now.
        return self.successor.get()

    def view(self, position: int, end: int) -> memoryview:
        """Return a read-only view of published bytes, without a copy; it stays valid for ever.

        Raises:
            CorruptRecord: the file is shorter than its published part.
            KafkaStorageError: the file cannot be opened (removed meanwhile, or too many are open).
        """
        if position == end:
            return NOTHING
        try:
            return self.get().view(position, end - position)
        except ValueError as error:
            raise CorruptRecord(self.path, position, str(error)) from None
        except OSError as error:
            raise KafkaStorageError(f"{self.path}: {error}") from error

    # Growing

    def create(self) -> None:
        """Make the file. If that fails, the next write or `get` makes it."""
        self.is_missing = True
        self._open_files.open(self, create=True)
        self.is_missing = False

    def write(self, buffers: Sequence[Bytes], size: int, position: int) -> None:
        """Store `size` bytes at `position`, the published end.

        After an error the caller must call `cut_to`.
        """
        if position + size > self.capacity:
            self._extend(position, position + size)
        file = self.opened
        if file is None:
            file = self._open_files.open(self, create=self.is_missing)
        self.dirty = True
        if file.write(buffers, position) != size:
            # A short write: write all again from the start, in as many pieces as it takes.
            write_fully(file.write, buffers, position)

    def keep_room(self, size: int, room: int) -> None:
        """Reserve `room` bytes behind the published `size`, if the disk has room."""
        if size + room > self.capacity:
            try:
                self._extend(size, size + room)
            except OSError as error:
                events.debug("%s: no room to spare: %s", self.path, error)

    def _extend(self, size: int, needed: int) -> None:
        if self.capacity == _UNKNOWN_CAPACITY:
            self.cut_to(size)
        if self.zeroed:
            self.capacity = preallocate_zeros(self.get(), self.capacity, needed)
        else:
            self.capacity = preallocate(self.get(), needed)

    # Shrinking

    def cut_to(self, size: int) -> None:
        """Cut off the bytes that a failed write may have left behind the published `size`."""
        file = self.get()
        if file.size() > size:
            file.truncate(size)
        self.capacity = size

    def distrust_capacity(self) -> None:
        """Record that bytes of a failed write could not be cut off: the next write cuts them."""
        self.capacity = _UNKNOWN_CAPACITY

    def trim(self, size: int) -> None:
        if self.capacity == _UNKNOWN_CAPACITY:
            self.cut_to(size)
        elif self.capacity > size:
            self.get().truncate(size)
            self.capacity = size

    # Syncing. Requires: the sync lock of the log

    def sync(self) -> None:
        """Make everything written so far survive a loss of power, but not yet the file's name."""
        try:
            file = self.get()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise NotOpened(error.errno, error.strerror, self.path) from error
        file.sync()

    def sync_name(self) -> None:
        """Make the file's name survive a loss of power, if it does not yet."""
        if not self.is_name_synced:
            self._open_files.files.sync_directory(self.directory)
            self.is_name_synced = True

    # Leaving

    def moved(self, open_files: OpenFiles, directory: str, size: int) -> SegmentFile:
        """Return the file in another directory, which has the published `size` bytes already.

        Readers of this file continue there once its name is gone.
        """
        other = SegmentFile(open_files, directory, self._base_offset, zeroed=self.zeroed)
        other.capacity = size
        other.dirty = self.dirty
        other.is_name_synced = True
        self.successor = other
        return other

    def release(self) -> None:
        self._open_files.forget(self)

    def part_with(self) -> None:
        """Keep the file open for its readers: its name will belong to another file, or to none."""
        self.kept = self.get()
        self._open_files.forget(self)

    def put_away(self, suffixes: tuple[str, ...] = ALL_FILES) -> list[str]:
        """Rename the files, so that they leave the log; return the new paths, to be removed later.

        Views of their bytes stay readable. After an error the call can be repeated.
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
        """Remove the files. Views of their bytes stay readable.

        An error means that the log file is still there. Another file that cannot be removed does no
        harm, and the next opening of the directory removes it.
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

    # The files beside the log file: indexes and snapshot

    def sidecar(self, suffix: str) -> str:
        return paths.segment_file(self.directory, self._base_offset, suffix)

    def read_sidecar(self, suffix: str) -> memoryview:
        """Return the content of the file with that suffix; FileNotFoundError if it is missing."""
        return read_view(self._open_files.files, self.sidecar(suffix))

    def write_sidecar(self, suffix: str, content: bytes) -> None:
        """Replace the file with that suffix. It is not synced: the next opening can rebuild it."""
        write_whole(self._open_files.files, self.sidecar(suffix), content, sync=False)
