"""The merge of delivery states: each offset keeps the state with the highest rank.

A higher delivery count ranks higher; at equal counts a higher state number does. Neighbours in
equal state are one batch.
"""

from __future__ import annotations

from _bisect import bisect_left
from _heapq import heappop, heappush
from _operator import itemgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Batch = tuple[int, int, int, int]
    """First offset, last offset (included), delivery state, delivery count."""

NO_START = -1
"""The start offset of a share partition that no leader has decided yet."""

_last_offset = itemgetter(1)


def merged(stored: Sequence[Batch], written: Iterable[Batch]) -> list[Batch]:
    """Return `stored`, which this function has returned before, with `written` merged into it.

    The batches of `written` may overlap and need no order. Only the stored batches in their range
    are looked at.
    """
    added = list(written)
    if not added:
        return list(stored)
    first = min(batch[0] for batch in added)
    last = max(batch[1] for batch in added)
    # The neighbours are included: they may be in the same state.
    begin = bisect_left(stored, first - 1, key=_last_offset)
    end = begin
    while end < len(stored) and stored[end][0] <= last + 1:
        end += 1
    return [*stored[:begin], *_combined([*stored[begin:end], *added]), *stored[end:]]


def cut(batches: Sequence[Batch], start_offset: int) -> list[Batch]:
    """Return the parts of sorted batches that are not below the start; all if there is no start."""
    if start_offset == NO_START:
        return list(batches)
    begin = bisect_left(batches, start_offset, key=_last_offset)
    kept = list(batches[begin:])
    if kept and kept[0][0] < start_offset:
        kept[0] = (start_offset, *kept[0][1:])
    return kept


def _combined(batches: list[Batch]) -> list[Batch]:
    """Sweep over all offsets where a batch begins or ends, with the present batches by rank."""
    batches.sort()
    edges = sorted({edge for first, last, *_ in batches for edge in (first, last + 1)})
    present: list[tuple[int, int, int]] = []  # a heap of (-count, -state, last offset)
    found: list[Batch] = []
    index = 0
    for begin, end in zip(edges, edges[1:], strict=False):
        while index < len(batches) and batches[index][0] == begin:
            _, last, state, count = batches[index]
            heappush(present, (-count, -state, last))
            index += 1
        while present and present[0][2] < begin:
            heappop(present)
        if present:
            _add(found, begin, end - 1, -present[0][1], -present[0][0])
    return found


def _add(found: list[Batch], first: int, last: int, state: int, count: int) -> None:
    """Append a batch, or prolong the last one if they touch in equal state."""
    if found:
        before = found[-1]
        if before[1] + 1 == first and before[2] == state and before[3] == count:
            found[-1] = (before[0], last, state, count)
            return
    found.append((first, last, state, count))
