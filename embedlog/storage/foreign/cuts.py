"""Where a long range of offsets may be cut into parts of some size: between two batches.

The offset index says it, which is a hint: without one a segment stays whole.
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord
from embedlog.storage import paths
from embedlog.storage.indexes.offset import OffsetIndex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from embedlog.runtime.files import Files


def find_cuts(
    files: Files, directory: str, bases: Sequence[int], offsets: tuple[int, int], *, size_max: int
) -> list[int]:
    """Offsets that cut `offsets`, a start and an end, into parts of about `size_max` stored bytes.

    `bases` are the base offsets of the log's segments. Each cut is the offset behind a batch.
    """
    start, end = offsets
    cuts: list[int] = []
    last_cut: int | None = None
    for offset, position in _boundaries(files, directory, bases, start, end):
        if last_cut is None:
            last_cut = position
        if position - last_cut >= size_max and start < offset < end:
            cuts.append(offset)
            last_cut = position
    return cuts


def _boundaries(
    files: Files, directory: str, bases: Sequence[int], start: int, end: int
) -> Iterator[tuple[int, int]]:
    """(offset behind a batch, stored bytes before it, counted over all segments), rising."""
    before = 0
    for slot, base in enumerate(bases):
        following = bases[slot + 1] if slot + 1 < len(bases) else None
        if base >= end:
            return
        stat = files.stat(paths.segment_file(directory, base))
        if stat is None or (following is not None and following <= start):
            continue
        yield max(base, start), before
        index = _index(files, directory, base, stat.size)
        for last_offset, position in [] if index is None else index.entries():
            if start <= last_offset < end:
                yield last_offset + 1, before + position
        before += stat.size


def _index(files: Files, directory: str, base: int, size: int) -> OffsetIndex | None:
    path = paths.segment_file(directory, base, paths.OFFSET_INDEX)
    try:
        return OffsetIndex.decode(files.read(path), base_offset=base, size=size, path=path)
    except (FileNotFoundError, CorruptRecord):
        return None
