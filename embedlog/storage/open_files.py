"""A limit on the open files of segments, however many partitions there are."""

from __future__ import annotations

from errno import EMFILE, ENFILE, ENOENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.files import File, Files


OPEN_FILES_MAX = 256
"""The limit. A quarter of the process's descriptors is another one: the rest is the host's."""


class Openable:
    """A file that `OpenFiles` opens: base of a segment's file and of a log's published offset."""

    __slots__ = ("is_gone", "kept", "opened", "path", "used")

    def __init__(self, path: str) -> None:
        self.path = path
        self.opened: File | None = None
        self.kept: File | None = None
        """The open file, after its name was given away: see `SegmentFile.part_with`."""
        self.is_gone = False
        """True once the log is deleted: the name may belong to a new log."""
        self.used = False


class OpenFiles:
    """Opens segments' files, and forgets the files unused longest ("second chance").

    Forgetting only drops the segment's reference: a thread that writes or reads keeps the file open
    until it is done, so a descriptor never closes under its user.

    Thread-safe without a lock: each step is one operation of a dictionary.
    """

    def __init__(self, files: Files, limit: int = OPEN_FILES_MAX) -> None:
        assert limit > 0, limit
        self.files = files
        self._limit = max(1, min(limit, files.descriptor_count_max // 4))
        self._segments: dict[Openable, None] = {}
        """The segments with an open file; the first is the next candidate for closing."""

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
        """Open the segment's own file, never a new file of its name.

        `SegmentFile.part_with` or `is_gone` comes before a name is given away. So a segment that
        still has its name after the opening was its owner during the opening.
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
        """Give half of the descriptors back; return whether there were any."""
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
