"""Cutting a long range of offsets into parts of about equal size, between batches.

A closed segment is cut at entries of its offset index; without a good index it stays whole. The
last segment's index exists only in the writing process's memory, so its cuts are at batches that
this process has read before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from embedlog.errors import CorruptRecord
from embedlog.runtime.files import Files
from embedlog.storage import paths
from embedlog.storage.segments.indexes.offset import OffsetIndex


def find_cuts(
    files: Files,
    directory: str,
    bases: Sequence[int],
    offsets: tuple[int, int],
    marks: Mapping[int, Sequence[tuple[int, int]]],
    *,
    size_max: int,
) -> list[int]:
    """Return offsets that cut `offsets` (start, end) into parts of about `size_max` stored bytes.

    `bases` are the base offsets of the log's segments. `marks` has batches that were read before:
    base offset of a segment -> [(base offset of a batch, its position), ...].
    """
    start, end = offsets
    cuts: list[int] = []
    last_cut: int | None = None
    for offset, position in _boundaries(files, directory, bases, offsets, marks):
        if last_cut is None:
            last_cut = position
        if position - last_cut >= size_max and start < offset < end:
            cuts.append(offset)
            last_cut = position
    return cuts


def _boundaries(
    files: Files,
    directory: str,
    bases: Sequence[int],
    offsets: tuple[int, int],
    marks: Mapping[int, Sequence[tuple[int, int]]],
) -> Iterator[tuple[int, int]]:
    """Yield possible cuts in rising order: (offset, stored bytes before it in all segments)."""
    start, end = offsets
    before = 0
    for slot, base in enumerate(bases):
        following = bases[slot + 1] if slot + 1 < len(bases) else None
        if base >= end:
            return
        stat = files.stat(paths.segment_file(directory, base))
        if stat is None or (following is not None and following <= start):
            continue
        yield max(base, start), before
        for offset, position in marks.get(base) or _indexed(files, directory, base, stat.size):
            if start < offset <= end:
                yield offset, before + position
        before += stat.size


def _indexed(files: Files, directory: str, base: int, size: int) -> list[tuple[int, int]]:
    path = paths.segment_file(directory, base, paths.OFFSET_INDEX)
    try:
        index = OffsetIndex.decode(files.read(path), base_offset=base, size=size, path=path)
    except (FileNotFoundError, CorruptRecord):
        return []
    return [(last_offset + 1, position) for last_offset, position in index.entries()]
