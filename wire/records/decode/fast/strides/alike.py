"""Batches of one layout that follow each other, read as one.

Producers that fill batches write many of one size and count, which differ in keys, values and times
only. What stands around the keys and values of such a batch is kept as its `Layout`. One call of
numpy gathers the same bytes of many batches, in place, and another compares them. Where they are
equal the plain loop would read the same fields at the same places, so the columns of all these
batches are those of one, so many bytes further each time. A timestamp delta may be another, as long
as it is a byte: a byte without the top bit is a whole varint.
"""

from __future__ import annotations

from wire.records.batch import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
)
from wire.records.decode.choose import field_of
from wire.records.decode.columns import RUN_PLACES, RecordColumns, per_run
from wire.records.decode.fast.strides.batch_heads import alike_heads
from wire.records.varint import MAX_VARINT_SIZE, read_varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wire.records.batch import RecordBatch
    from wire.records.decode.fast.strides.batch_heads import Head
    from wire.records.decode.fast.strides.layout import Run

    Int64s = NDArray[np.int64]

LAYOUTS_MAX = 16  # of 40 B a record or so
RUNS_MAX = 8  # of a batch
SEEN_MAX = 1024
# So that columns and what is looked at twice stay in the processor's cache.
RUN_SIZE_MAX = 1 << 20

# By size of a batch and number of records.
_layouts: dict[tuple[int, int], Layout] = {}
_seen: set[tuple[int, int]] = set()


class Layout:
    """What stands around the keys and values of batches of one size, and where these are."""

    __slots__ = ("_gathers", "_places", "count", "deltas_at", "run_count", "runs", "size")

    def __init__(self, batch: RecordBatch, runs: list[Run], deltas_at: list[int]) -> None:
        """`deltas_at` says how far into the records of each run their timestamp delta is."""
        self.size = batch.size
        self.count = batch.record_count
        self.runs = runs
        self.deltas_at = deltas_at
        self.run_count = 1
        """How many such batches to look for at once: more after a success, else fewer."""
        self._places: dict[str, Int64s] = {}
        self._gathers = []
        for run, delta_at in zip(runs, deltas_at, strict=True):
            # A head begins with the last byte of what comes before it.
            begin = HEADER_SIZE + run.position - 1
            size = 1 + (run.key_at if run.key_size > 0 else run.value_at)
            each = run.count, run.stride
            self._gathers.append(_Gather(batch.buffer, begin, size, each, 1 + delta_at))
            if run.key_size > 0:
                begin += size + run.key_size
                between = run.value_at - run.key_at - run.key_size
                self._gathers.append(_Gather(batch.buffer, begin, between, each))

    def place(self, name: str) -> Int64s:
        """A column of `RUN_PLACES` for the first batch."""
        column = self._places.get(name)
        if column is None:
            column = self._places[name] = per_run(self.runs, self.count, RUN_PLACES[name])
        return column

    def fitting(self, view: memoryview, position: int, batch_count: int) -> int:
        """How many of the batches at `position` are laid out so, up to the first that is not."""
        # The end of the last record; the others end in the head of the next.
        lasts = view[position + self.size - 1 : position + batch_count * self.size : self.size]
        batch_count -= len(bytes(lasts).lstrip(b"\0"))
        for gather in self._gathers:
            if batch_count:
                batch_count = gather.equal_count(view, position, batch_count, self.size)
        return batch_count


class _Gather:
    """`size` bytes of each record of a run, taken as words that numpy copies quickly.

    Words of 8 bytes it copies three times as fast as items of another size, so they may overlap.
    """

    __slots__ = (
        "_expected",
        "_fixed",
        "_form",
        "_known",
        "_place",
        "_repeated",
        "_shape",
        "_strides",
    )

    def __init__(
        self, data: memoryview, place: int, size: int, each: tuple[int, int], free_at: int = -1
    ) -> None:
        """The first bytes are at `place`; `each` is the number of records and their distance.

        They must be those in `data`, but of byte `free_at` only the top bit counts.
        """
        import numpy as np

        count, stride = each
        width = max(power for power in (8, 4, 2, 1) if power <= size)
        words = -(-size // width)
        while words > 1 and (size - width) % (words - 1):
            words += 1
        distance = (size - width) // (words - 1) if words > 1 else 0
        self._place = place
        self._shape = words, count
        self._form = np.dtype(f"<u{width}")
        self._strides = distance, stride
        self._expected = np.ndarray(self._shape, self._form, data, place, self._strides).tobytes()
        self._repeated = b""
        self._known = np.frombuffer(self._expected, self._form)
        bits = bytearray(b"\xff" * size)
        if free_at >= 0:
            bits[free_at] = 0x80
        self._fixed = np.ndarray(self._shape, self._form, bytes(bits), 0, (distance, 0)).flatten()

    def equal_count(self, view: memoryview, position: int, batch_count: int, size: int) -> int:
        """How many of the batches of `size` bytes at `position` have them, up to the first."""
        import numpy as np

        shape = batch_count, *self._shape
        strides = size, *self._strides
        found = np.ndarray(shape, self._form, view, position + self._place, strides).tobytes()
        if len(found) != len(self._repeated):
            self._repeated = self._expected * batch_count
        if found == self._repeated:
            return batch_count
        words = np.frombuffer(found, self._form).reshape(batch_count, -1)
        differ = ((words ^ self._known) & self._fixed).any(axis=1)
        return int(differ.argmax()) if differ.any() else batch_count


class AlikeColumns(RecordColumns):
    """The columns of batches of one layout that follow each other.

    Positions point into `buffer`, which begins with the first record of the first batch; the
    headers of the others are in it.
    """

    __slots__ = ("_heads", "_layout", "end", "epoch", "next_offset", "timestamp_type")

    def __init__(self, layout: Layout, view: memoryview, position: int, heads: list[Head]) -> None:
        self._layout = layout
        self._heads = heads
        header = HEADER.unpack_from(view, position)
        self.epoch: int = header[2]
        self.timestamp_type: int = header[5] >> 3
        self.next_offset: int = heads[-1][0] + header[6] + 1
        self.end = position + len(heads) * layout.size
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
        for start in range(0, len(self._data), self._layout.size):
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
        size = self._layout.size
        deltas = np.empty((len(self._heads), self._layout.count), np.int64)
        for run, delta_at in zip(self._layout.runs, self._layout.deltas_at, strict=True):
            shape, strides = (len(self._heads), run.count), (size, run.stride)
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
        starts = np.arange(count, dtype=np.int64) * self._layout.size
        return (starts[:, None] + one).ravel()


def find_alike(
    view: memoryview, position: int, *, offset: int, count_max: int, check_crcs: bool
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
    layout = _layouts.get((size, count))
    if layout is None or magic != 2 or attributes & ~TIMESTAMP_TYPE_BIT:
        return None
    batches_max = min((len(view) - position) // size, -(-count_max // count))
    wanted = min(layout.run_count, batches_max)
    places = range(position, position + wanted * size, size)
    heads = alike_heads(view, places, offset, check_crcs=check_crcs)
    fitting = layout.fitting(view, position, len(heads))
    if fitting < wanted:
        layout.run_count = max(fitting, 1)
    elif wanted == layout.run_count:
        layout.run_count = max(min(2 * wanted, RUN_SIZE_MAX // size), 1)
    return AlikeColumns(layout, view, position, heads[:fitting]) if fitting else None


def remember(batch: RecordBatch, columns: RecordColumns) -> None:
    """Keep the layout of a batch whose columns were found in another way, at its second sight."""
    key = batch.size, batch.record_count
    if not columns.runs or len(columns.runs) > RUNS_MAX or key in _layouts:
        return
    if key not in _seen:
        if len(_seen) >= SEEN_MAX:
            _seen.clear()
        _seen.add(key)
        return
    deltas_at = []
    for run in columns.runs:
        _, body = read_varint(batch.buffer, HEADER_SIZE + run.position, MAX_VARINT_SIZE)
        delta_at = body + 1  # behind the attributes
        if batch.buffer[delta_at] > 0x7F:
            return
        deltas_at.append(delta_at - HEADER_SIZE - run.position)
    if len(_layouts) >= LAYOUTS_MAX:
        _layouts.clear()
    _layouts[key] = Layout(batch, columns.runs, deltas_at)
