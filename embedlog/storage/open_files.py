"""At most so many segment files are open at a time, however many partitions there are."""

from __future__ import annotations

from errno import EMFILE, ENFILE, ENOENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.files import File, Files


OPEN_FILES_MAX = 256
"""And at most a quarter of what the process may open: the rest is the host's."""


class Openable:
    """A file that `OpenFiles` opens: base of a segment's file and of a log's published offset."""

    __slots__ = ("is_gone", "kept", "opened", "path", "used")

    def __init__(self, path: str) -> None:
        self.path = path
        self.opened: File | None = None
        self.kept: File | None = None
        """The file once its name means another, or none; see `SegmentFile.part_with`."""
        self.is_gone = False
        """Its log was deleted, and the name may mean another's."""
        self.used = False


class OpenFiles:
    """Opens segments' files and forgets the longest unused ones ("second chance").

    Forgetting drops the segment's reference and nothing else: a thread that is writing or reading
    keeps the file open until it is done, so a descriptor never closes under its user.

    Thread-safe without a lock: each step is one operation of a dictionary.
    """

    __slots__ = ("_limit", "_segments", "files")

    def __init__(self, files: Files, limit: int = OPEN_FILES_MAX) -> None:
        assert limit > 0, limit
        self.files = files
        self._limit = max(1, min(limit, files.descriptor_count_max // 4))
        self._segments: dict[Openable, None] = {}
        """The segments with an open file, in the order in which they will be looked at."""

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
        """Let go of the segment's file, if it is open."""
        self._segments.pop(segment, None)
        segment.opened = None

    def __len__(self) -> int:
        return len(self._segments)

    def _open_own(self, segment: Openable, create: bool) -> File:
        """The segment's own file, also when its name is given to another one meanwhile.

        `SegmentFile.part_with`, or `is_gone`, comes before that: a segment that has not parted with
        its name once the name was opened was still its owner then.
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
        """Give half of the descriptors back; say if there were any."""
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
