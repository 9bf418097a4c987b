"""Closed segments that are sound: from an earlier verification, and from this one."""

from __future__ import annotations

from embedlog.storage.verification.verified_segments import VerifiedSegment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.runtime.files import Files, FileStat
    from embedlog.storage.verification.segment import SegmentCheck


class SoundSegments:
    """Segments that need not be read, and segments that were read and are good."""

    def __init__(
        self, files: Files, data: str, known: Mapping[str, VerifiedSegment], wall_ms: int
    ) -> None:
        self._files = files
        self._data = data
        self._known = known
        self._wall_ms = wall_ms
        self.verified: dict[str, VerifiedSegment] = {}
        """By path below the directory."""
        self.skipped_count = 0

    def known_as(self, path: str) -> VerifiedSegment | None:
        """Return the state of a segment that has not changed since."""
        name = path.removeprefix(f"{self._data}/")
        known, stat = self._known.get(name), self._files.stat(path)
        if known is None or stat is None:
            return None
        if (stat.size, stat.modified_ms) != (known.size, known.modified_ms):
            return None
        self.verified[name] = known
        self.skipped_count += 1
        return known

    def remember(
        self, segment: SegmentCheck, stat: FileStat, transactions: dict[int, int] | None
    ) -> None:
        self.verified[segment.path.removeprefix(f"{self._data}/")] = VerifiedSegment(
            size=stat.size,
            modified_ms=stat.modified_ms,
            checked_ms=self._wall_ms,
            epoch=segment.epoch,
            next_offset=segment.next_offset,
            batch_count=segment.batch_count,
            transactions=None if transactions is None else dict(transactions),
        )
