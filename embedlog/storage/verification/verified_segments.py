"""Closed segments that a verification found sound, so that the next one need not read them.

A segment counts as unchanged while its size and modification time are the same. Bit rot changes
neither, so callers drop old entries from time to time, and the segments are read again.

`read_state` and `write_state` store the segments in a file of sealed JSON:

    {"version": 1, "segments": {"<topic>-<partition>/<file>": [size, modified ms, checked ms,
     leader epoch, next offset, batches, {producer: first offset} or null]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embedlog.common import Value
from embedlog.errors import CorruptRecord
from embedlog.runtime.files import Files, FileStat
from embedlog.storage.state_files.sealed_file import read_sealed, write_sealed
from embedlog.storage.verification.segment import SegmentCheck

_VERSION = 1


class VerifiedSegment(Value):
    """The result of checking a sound segment, with facts for the check of the next segment."""

    size: int
    modified_ms: int
    checked_ms: int
    epoch: int
    next_offset: int
    batch_count: int
    transactions: Mapping[int, int] | None
    """Transactions that are open at the segment's end, producer id -> first offset; None if
    unknown."""

    def to_json(self) -> list[Any]:
        undecided = self.transactions
        stored = None if undecided is None else {str(k): first for k, first in undecided.items()}
        return [
            self.size,
            self.modified_ms,
            self.checked_ms,
            self.epoch,
            self.next_offset,
            self.batch_count,
            stored,
        ]

    @classmethod
    def from_json(cls, found: list[Any]) -> VerifiedSegment:
        """Read the result of `to_json`, or raise TypeError or ValueError."""
        size, modified_ms, checked_ms, epoch, next_offset, batch_count, transactions = found
        return cls(
            size=int(size),
            modified_ms=int(modified_ms),
            checked_ms=int(checked_ms),
            epoch=int(epoch),
            next_offset=int(next_offset),
            batch_count=int(batch_count),
            transactions=None
            if transactions is None
            else {int(producer): int(first) for producer, first in transactions.items()},
        )


class SoundSegments:
    """The sound segments of one verification: skipped because they are known, or found good."""

    def __init__(
        self, files: Files, data: str, known: Mapping[str, VerifiedSegment], wall_ms: int
    ) -> None:
        self._files = files
        self._data = data
        self._known = known
        self._wall_ms = wall_ms
        self.verified: dict[str, VerifiedSegment] = {}
        """All sound segments of this verification, by path below the data directory."""
        self.skipped_count = 0

    def known_as(self, path: str) -> VerifiedSegment | None:
        """Return the earlier result for a segment, or None if there is none or the file changed."""
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


def read_state(files: Files, path: str) -> dict[str, VerifiedSegment]:
    """Return the segments of a state file, or no segments if the file does not exist.

    Raises:
        CorruptRecord: the file is damaged, or is not a state file.
    """
    from json import loads

    content = read_sealed(files, path)
    if content is None:
        return {}
    try:
        found = loads(content)
        if found["version"] != _VERSION:
            raise ValueError(f"version {found['version']}")
        return {name: VerifiedSegment.from_json(each) for name, each in found["segments"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptRecord(path, 0, f"no state of a verification: {error!r}") from None


def write_state(files: Files, path: str, segments: Mapping[str, VerifiedSegment]) -> None:
    """Write the state file, replacing an earlier one."""
    from json import dumps

    known = {name: each.to_json() for name, each in sorted(segments.items())}
    content = dumps({"version": _VERSION, "segments": known}).encode()
    write_sealed(files, path, content, sync=True)
