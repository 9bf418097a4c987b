"""At most so many segment files are open at a time, however many partitions there are."""

from __future__ import annotations

from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.runtime.files import File, Files
    from embedlog.storage.segment import Segment

OPEN_FILES_MAX = 256


class OpenFiles:
    """Opens segments' files and forgets the longest unused ones ("second chance").

    Forgetting drops the segment's reference and nothing else: a thread that is writing or reading
    keeps the file open until it is done, so a descriptor never closes under its user.
    """

    __slots__ = ("_limit", "_lock", "_segments", "files")

    def __init__(self, files: Files, limit: int = OPEN_FILES_MAX) -> None:
        assert limit > 0, limit
        self.files = files
        self._limit = limit
        self._lock = allocate_lock()
        self._segments: dict[Segment, None] = {}
        """The segments with an open file, in the order in which they will be looked at."""

    def open(self, segment: Segment, *, create: bool = False) -> File:
        """Open the segment's file and store it in `segment.opened`."""
        file = self.files.open(segment.path, create=create)
        with self._lock:
            while len(self._segments) >= self._limit:
                self._forget_one()
            segment.opened = file
            segment.used = True
            self._segments[segment] = None
        return file

    def forget(self, segment: Segment) -> None:
        """Let go of the segment's file, if it is open."""
        with self._lock:
            self._segments.pop(segment, None)
            segment.opened = None

    def __len__(self) -> int:
        return len(self._segments)

    def _forget_one(self) -> None:
        while True:
            oldest = next(iter(self._segments))
            del self._segments[oldest]
            if not oldest.used:
                oldest.opened = None
                return
            oldest.used = False
            self._segments[oldest] = None
