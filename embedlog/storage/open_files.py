"""A limit on the open files of segments, however many partitions there are."""

from __future__ import annotations

from errno import EMFILE, ENFILE, ENOENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.files import File, Files


OPEN_FILES_MAX = 256
"""At most this many files are open, and at most a quarter of the process's descriptors. The other
descriptors are for the host program."""


class Openable:
    """A file that `OpenFiles` opens: base class of `SegmentFile` and `PublishedOffset`."""

    __slots__ = ("is_gone", "kept", "opened", "path", "used")

    def __init__(self, path: str) -> None:
        self.path = path
        self.opened: File | None = None
        self.kept: File | None = None
        """The open file, set before another file may take its name: see `SegmentFile.part_with`."""
        self.is_gone = False
        """True once the log is deleted: the name may belong to a new log."""
        self.used = False


class OpenFiles:
    """Opens segments' files; beyond a limit it forgets the longest unused files ("second chance").

    To forget a file only drops the segment's reference to it. A thread that reads or writes the
    file keeps it open until it is done, so no descriptor closes under its user.

    Thread-safe without a lock: each step is one operation of a dictionary.
    """

    def __init__(self, files: Files, limit: int = OPEN_FILES_MAX) -> None:
        assert limit > 0, limit
        self.files = files
        self._limit = max(1, min(limit, files.descriptor_count_max // 4))
        self._segments: dict[Openable, None] = {}
        """The segments with an open file; the first is the next one that may be closed."""

    def open(self, segment: Openable, *, create: bool = False) -> File:
        """Open the segment's file and store it in `segment.opened`."""
        try:
            file = self._open_own(segment, create)
        except OSError as error:
            # The host has used up the descriptors it shares with us.
            if error.errno not in (EMFILE, ENFILE) or not self._close_some():
                raise
            file = self._open_own(segment, create)
        if file is segment.kept:
            segment.opened = file
            return file
        while len(self._segments) >= self._limit:
            self._look_at_oldest()
        self._segments[segment] = None
        segment.used = True
        segment.opened = file
        return file

    def forget(self, segment: Openable) -> None:
        """Drop the segment's file, if it is open."""
        self._segments.pop(segment, None)
        segment.opened = None

    def __len__(self) -> int:
        return len(self._segments)

    def _open_own(self, segment: Openable, create: bool) -> File:
        """Open the segment's own file, never another file that has taken its name.

        Before another file takes the name, `SegmentFile.part_with` sets `kept`, or a deletion sets
        `is_gone`. So if neither is set after the opening, the opened file is the segment's.
        """
        if segment.kept is None and not segment.is_gone:
            try:
                file = self.files.open(segment.path, create=create)
            except FileNotFoundError:
                if segment.kept is None:
                    raise
            else:
                if segment.kept is None and not segment.is_gone:
                    return file
        if segment.kept is None:
            raise FileNotFoundError(ENOENT, "the log was deleted", segment.path)
        return segment.kept

    def _close_some(self) -> bool:
        """Forget half of the open files; return whether there were any."""
        count = (len(self._segments) + 1) // 2
        for segment in list(self._segments)[:count]:
            self.forget(segment)
        return count > 0

    def _look_at_oldest(self) -> None:
        try:
            oldest = next(iter(self._segments))
        except (RuntimeError, StopIteration):
            return  # another thread was faster
        self._segments.pop(oldest, None)
        if oldest.used:
            oldest.used = False
            self._segments[oldest] = None
        else:
            oldest.opened = None
