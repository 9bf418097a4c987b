"""`Timetable`: which delayed record is due when, in 16 bytes a job.

The jobs themselves stay in the log until they are due. Most rows lie in two sorted columns, and
the newest rows in a heap.
"""

from __future__ import annotations

from _heapq import heappop, heappush

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.int64]

HEAP_MAX = 8192
_SHARE_MAX = 8
"""The heap is sorted into the columns once it has more than an eighth of their length."""


class Timetable:
    """Pairs of (due time in ms since 1970, offset), the earliest first."""

    def __init__(self, limit: int = HEAP_MAX) -> None:
        """A heap of at most `limit` rows is never sorted into the columns."""
        self._limit = limit
        self._heap: list[tuple[int, int]] = []
        self._columns: tuple[Column, Column] | None = None
        """Due times and offsets, sorted by the due time."""
        self._begin = 0
        """The first row of the columns that was not taken."""

    def __len__(self) -> int:
        return len(self._heap) + self._rows_left

    @property
    def _rows_left(self) -> int:
        return 0 if self._columns is None else len(self._columns[0]) - self._begin

    def add(self, due_ms: int, offset: int) -> None:
        """Note one record."""
        heappush(self._heap, (due_ms, offset))
        if len(self._heap) > max(self._limit, self._rows_left // _SHARE_MAX):
            self._sort()

    def next_due_ms(self) -> int | None:
        """Return the earliest due time; None if there is no record."""
        found = [self._heap[0][0]] if self._heap else []
        if self._rows_left:
            assert self._columns is not None, self
            found.append(int(self._columns[0][self._begin]))
        return min(found, default=None)

    def take(self, now_ms: int, count_max: int) -> list[tuple[int, int]]:
        """Remove and return at most `count_max` of the records that are due, the earliest first."""
        taken: list[tuple[int, int]] = []
        while len(taken) < count_max:
            row = self._first_row()
            if self._heap and (row is None or self._heap[0] <= row):
                row = self._heap[0]
                if row[0] > now_ms:
                    break
                heappop(self._heap)
            elif row is not None and row[0] <= now_ms:
                self._begin += 1
            else:
                break
            taken.append(row)
        return taken

    def put_back(self, rows: Iterable[tuple[int, int]]) -> None:
        """Note rows again that were taken."""
        for row in rows:
            heappush(self._heap, row)

    def _first_row(self) -> tuple[int, int] | None:
        if not self._rows_left:
            return None
        assert self._columns is not None, self
        due, offsets = self._columns
        return int(due[self._begin]), int(offsets[self._begin])

    def _sort(self) -> None:
        """Move the heap into the columns."""
        import numpy as np

        added = np.array(self._heap, dtype=np.int64).reshape(-1, 2)
        due, offsets = added[:, 0], added[:, 1]
        if self._columns is not None:
            due = np.concatenate([self._columns[0][self._begin :], due])
            offsets = np.concatenate([self._columns[1][self._begin :], offsets])
        order = np.lexsort((offsets, due))
        self._columns = due[order], offsets[order]
        self._begin = 0
        self._heap = []
