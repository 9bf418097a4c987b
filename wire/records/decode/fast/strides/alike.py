"""Batches of one layout that follow each other, read as one.

The columns of all these batches are those of one, so many bytes further each time. 15 x 1 KiB in
columns take 0.3 us a record, batch by batch 0.8.
"""

from __future__ import annotations

from wire.records.decode.columns import RecordColumns
from wire.records.decode.fast.strides.batch_heads import alike_heads
from wire.records.decode.fast.strides.runs import field_of
from wire.records.format import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wire.records.decode.fast.strides.batch_heads import Head
    from wire.records.decode.fast.strides.layout import Layout
    from wire.records.decode.fast.strides.runs import Run
    from wire.records.known import Known

    Int64s = NDArray[np.int64]

# So that columns and what is looked at twice stay in the processor's cache.
RUN_SIZE_MAX = 1 << 20


class AlikeColumns(RecordColumns):
    """The columns of batches of one layout that follow each other.

    Positions point into `buffer`, which begins with the first record of the first batch; the
    headers of the others are in it.
    """

    __slots__ = ("_distance", "_heads", "_layout", "end", "epoch", "next_offset", "timestamp_type")

    def __init__(self, layout: Layout, view: memoryview, position: int, heads: list[Head]) -> None:
        self._layout = layout
        self._heads = heads
        header = HEADER.unpack_from(view, position)
        self.epoch: int = header[2]
        self.timestamp_type: int = header[5] >> 3
        self.next_offset: int = heads[-1][0] + header[6] + 1
        self._distance = layout.size + HEADER_SIZE
        self.end = position + len(heads) * self._distance
        """Where what follows begins in the view."""
        self._data = self.buffer = view[position + HEADER_SIZE : self.end]
        self.count = len(heads) * layout.count
        self.runs = []
        self._arrays = None
        self._cache = {}

    def keys(self) -> list[bytes | None]:
        """Return the keys, as copies."""
        return self._fields([(run, run.key_at, run.key_size) for run in self._layout.runs])

    def values(self) -> list[bytes | None]:
        """Return the values, as copies."""
        return self._fields([(run, run.value_at, run.value_size) for run in self._layout.runs])

    def _fields(self, places: list[tuple[Run, int, int]]) -> list[bytes | None]:
        fields: list[bytes | None] = []
        for start in range(0, len(self._data), self._distance):
            data = self._data[start:]
            for run, at, size in places:
                fields += field_of(data, run, at, size)
        return fields

    def _make_offsets(self) -> Int64s:
        import numpy as np

        first, last = self._heads[0][0], self._heads[-1][0]
        # They grow by `count` at least from batch to batch; so if by as much in all, by it each.
        if last + self._layout.count - first == self.count:
            return np.arange(first, first + self.count, dtype=np.int64)
        return self._plus(0, np.arange(self._layout.count))

    def _make_timestamps(self) -> Int64s:
        import numpy as np

        if self.timestamp_type:
            return self._plus(5, np.zeros(self._layout.count, np.int64))
        deltas = np.empty((len(self._heads), self._layout.count), np.int64)
        for run, delta_at in zip(self._layout.runs, self._layout.deltas_at, strict=True):
            shape, strides = (len(self._heads), run.count), (self._distance, run.stride)
            place = run.position + delta_at
            raw = np.ndarray(shape, np.uint8, self._data, place, strides).astype(np.int64)
            deltas[:, run.index : run.index + run.count] = (raw >> 1) ^ -(raw & 1)
        return self._plus(4, deltas)

    def _plus(self, field: int, within: Int64s) -> Int64s:
        """The sums of a field of each head and what its batch has for each record."""
        import numpy as np

        return (np.array([head[field] for head in self._heads], np.int64)[:, None] + within).ravel()

    def _place(self, name: str) -> Int64s:
        return self._column(name, lambda: self._make_place(name))

    def _make_place(self, name: str) -> Int64s:
        import numpy as np

        one = self._layout.place(name)
        count = len(self._heads)
        if name.endswith("_sizes"):
            return np.tile(one, count)
        starts = np.arange(count, dtype=np.int64) * self._distance
        return (starts[:, None] + one).ravel()


def find_alike(
    view: memoryview,
    position: int,
    *,
    offset: int,
    count_max: int,
    check_crcs: bool,
    known: Known,
) -> AlikeColumns | None:
    """The columns of the batches at `position` if their layout is known; None if it is not so.

    They are whole and plain: not compressed, of no transaction, and begin at `offset` or later.
    There are no more of them than have `count_max` records; but the last may pass that.
    """
    if position + HEADER_SIZE > len(view):
        return None
    _, length, _, magic, _, attributes, last_offset_delta, *_, count = HEADER.unpack_from(
        view, position
    )
    size = length + LOG_OVERHEAD
    layout: Layout | None = known.layouts.get((size - HEADER_SIZE, count))
    if layout is None or magic != 2 or attributes & ~TIMESTAMP_TYPE_BIT:
        return None
    batches_max = min((len(view) - position) // size, -(-count_max // count))
    wanted = min(layout.run_count, batches_max)
    places = range(position, position + wanted * size, size)
    heads = alike_heads(view, places, offset, check_crcs=check_crcs)
    fitting = layout.fitting(view, position + HEADER_SIZE, len(heads), size)
    if fitting < wanted:
        layout.run_count = max(fitting, 1)
    elif wanted == layout.run_count:
        layout.run_count = max(min(2 * wanted, RUN_SIZE_MAX // size), 1)
    return AlikeColumns(layout, view, position, heads[:fitting]) if fitting else None
