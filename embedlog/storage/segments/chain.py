"""The segments of a log, oldest first."""

from __future__ import annotations

from _bisect import bisect_right

from embedlog.storage.segments.segment import Segment, base_offset_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.runtime import Clock
    from embedlog.storage.open_files import OpenFiles


class SegmentChain:
    """The segments of one log. Change them under the partition lock; reads need no lock.

    A change replaces the tuple `segments`: a reader that reads it once sees one state of the log.
    """

    __slots__ = (
        "_clock",
        "_open_files",
        "directory",
        "doomed",
        "files",
        "is_swapping",
        "segments",
        "zeroed",
    )

    def __init__(
        self, segments: Sequence[Segment], *, directory: str, open_files: OpenFiles, clock: Clock
    ) -> None:
        assert segments, directory
        self.segments = tuple(segments)
        """Oldest first; appends go to the last."""
        self.doomed: list[Segment] = []
        """Segments that have left the log, and whose files are yet to be removed; oldest first."""
        self.is_swapping = False
        """True if compaction has finished a new segment, but could not yet put it in place."""
        self.zeroed = False
        """True if new segments extend their files by writing zeros, for cheap syncs."""
        self.directory = directory
        self.files = open_files.files
        self._open_files = open_files
        self._clock = clock

    @property
    def end_offset(self) -> int:
        return self.segments[-1].end[0]

    def holding(self, offset: int) -> Segment:
        """Return the last segment that begins at or before `offset`, else the first segment."""
        segments = self.segments
        return segments[max(0, bisect_right(segments, offset, key=base_offset_of) - 1)]

    def new(self, base_offset: int, now_ms: int | None = None) -> Segment:
        """Make a segment of this log, not yet on disk and not yet part of the chain."""
        return Segment(
            self._open_files,
            self.directory,
            base_offset,
            created_ms=self._clock.wall_ms() if now_ms is None else now_ms,
            zeroed=self.zeroed,
        )

    def move_to(self, directory: str, open_files: OpenFiles) -> None:
        """Continue in another directory, which has a synced copy of everything published."""
        former = self.segments
        segments = tuple(segment.moved(open_files, directory) for segment in former)
        self.directory, self.files, self._open_files = directory, open_files.files, open_files
        self.doomed = []
        self.segments = segments

    def swap_in(self, cleaned: Segment, former: tuple[Segment, ...]) -> None:
        """Put `cleaned` in place of the segments `former`, from which compaction made it."""
        segments = self.segments
        start = segments.index(former[0])
        self.segments = (*segments[:start], cleaned, *segments[start + len(former) :])
