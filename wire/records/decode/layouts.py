"""Remembering the layout of a batch, to read later batches of the same size and record count.

A producer that fills its batches writes many of the same size and record count. They differ only in
keys, values and timestamps. A `Layout` holds the bytes around the keys and values of such a batch.
One call of numpy collects the bytes at the same places of the next batch, or of many batches, and
another call compares them:

    batch   | head | value | head | value | head | value |
    kept      head           head           head           0

If they are equal, the plain loop would read the same fields at the same places. A timestamp delta
may differ if it has one byte, because a byte without the top bit is a whole varint. Comparing takes
5 ns a record, whatever the size of the values, and copies no value: a scan of 1,000 x 100 B takes
10 us, and 26 us with `find_runs`. Layouts serve large batches, and readers of columns.

Consecutive batches of one layout have the same columns, shifted by the size of a batch. Reading
batches of 15 x 1 KiB as columns takes 0.3 us a record together, and 0.8 us one by one.
"""

from __future__ import annotations

from wire.records.decode.columns import RUN_PLACES, RecordColumns, per_run
from wire.records.decode.runs import Run, field_of
from wire.records.decode.uniform import alike_heads
from wire.records.format import HEADER, HEADER_SIZE, LOG_OVERHEAD, TIMESTAMP_TYPE_BIT
from wire.records.varint import MAX_VARINT_SIZE, SMALL_NUMBERS, read_varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wire.records.decode.uniform import Head
    from wire.records.known import Known

    Int64s = NDArray[np.int64]

# The layout of a batch with more records or more runs is not remembered.
COUNT_MAX = 1 << 13
RUNS_MAX = 8
# The fewest batches to read together: a single batch here takes 1.2 times as long as `known_runs`.
RUN_COUNT_MIN = 2
# At most this many bytes of batches are read together. They are read twice, so they and their
# columns should fit into the processor's cache.
RUN_SIZE_MAX = 1 << 20


def known_runs(data: bytes | memoryview, count: int, known: Known) -> list[Run] | None:
    """Return the runs of `count` records that fill `data`, if their layout is known; else None."""
    layout: Layout | None = known.layouts.get((len(data), count))
    return None if layout is None else layout.runs_in(data)


def remember(data: bytes | memoryview, runs: list[Run], count: int, known: Known) -> None:
    """Remember the layout of these runs if an earlier batch had the same size and count."""
    key = len(data), count
    if len(runs) > RUNS_MAX or count > COUNT_MAX or key in known.layouts:
        return
    if key not in known.layout_sightings:
        known.layout_sightings.keep(key, None)
        return
    deltas_at = []
    for run in runs:
        _, body = read_varint(data, run.position, MAX_VARINT_SIZE)
        delta_at = body + 1  # behind the attributes
        if data[delta_at] > 0x7F:
            return
        deltas_at.append(delta_at - run.position)
    known.layouts.keep(key, Layout(data, runs, deltas_at, count))


class Layout:
    """The bytes around the keys and values of a batch, and the places of all fields in it."""

    __slots__ = (
        "_first_head",
        "_gathers",
        "_places",
        "count",
        "deltas_at",
        "run_count",
        "runs",
        "size",
    )

    def __init__(
        self, data: bytes | memoryview, runs: list[Run], deltas_at: list[int], count: int
    ) -> None:
        """`deltas_at` has, for each run, the place of the timestamp delta within a record."""
        self.size = len(data)
        """The size of the records section of a batch."""
        self.count = count
        self.runs = runs
        self.deltas_at = deltas_at
        self.run_count = RUN_COUNT_MIN
        """Number of batches to read together next time. It grows while all of them fit."""
        self._places: dict[str, Int64s] = {}
        self._first_head = bytes(data[: _head_size(runs[0])])
        self._gathers = []
        for run, delta_at in zip(runs, deltas_at, strict=True):
            # A head begins with the last byte of the previous record. The first record of the batch
            # has no such byte.
            skipped = 0 if run.index else 1
            begin = run.position + skipped * run.stride - 1
            size = 1 + _head_size(run)
            if run.count > skipped:
                each = run.count - skipped, run.stride
                self._gathers.append(_Gather(data, begin, size, each, 1 + delta_at))
            if run.key_size > 0:
                begin = run.position + run.key_at + run.key_size
                between = run.value_at - run.key_at - run.key_size
                self._gathers.append(_Gather(data, begin, between, (run.count, run.stride)))

    def place(self, name: str) -> Int64s:
        """Return the column `name` of `RUN_PLACES` for one batch of this layout."""
        column = self._places.get(name)
        if column is None:
            column = self._places[name] = per_run(self.runs, self.count, RUN_PLACES[name])
        return column

    def runs_in(self, data: bytes | memoryview) -> list[Run] | None:
        """Return the runs of `data` (of `size` bytes) if it has this layout, else None."""
        head = self._first_head
        # The last byte of `data` belongs to no head: it is the header count of the last record.
        if data[-1] or data[: len(head)] != head:
            return None
        is_same = True
        for gather in self._gathers:
            is_equal = gather.is_equal(data)
            if is_equal is None:
                return None
            is_same &= is_equal
        if is_same:
            return self.runs
        return [
            _with_deltas(run, data, delta_at)
            for run, delta_at in zip(self.runs, self.deltas_at, strict=True)
        ]

    def fitting(self, view: memoryview, position: int, batch_count: int, distance: int) -> int:
        """Return how many batches in a row have this layout, at most `batch_count`.

        The records of the first batch begin at `position`, the records of each next batch
        `distance` bytes further.
        """
        head = self._first_head
        for number in range(batch_count):
            start = position + number * distance
            if view[start + self.size - 1] or view[start : start + len(head)] != head:
                batch_count = number
                break
        for gather in self._gathers:
            if batch_count:
                batch_count = gather.equal_count(view, position, batch_count, distance)
        return batch_count


def _head_size(run: Run) -> int:
    return run.key_at if run.key_size > 0 else run.value_at


def _with_deltas(run: Run, data: bytes | memoryview, delta_at: int) -> Run:
    """Return a copy of the run with the timestamp deltas of `data`, each a varint of one byte."""
    from numpy import ndarray

    raw = ndarray(run.count, "u1", data, run.position + delta_at, run.stride).tobytes()
    found = Run()
    for name in Run.__slots__:
        setattr(found, name, getattr(run, name))
    found.delta = SMALL_NUMBERS[raw[0]]
    found.varying_deltas = b"" if raw == raw[:1] * run.count else raw
    return found


class _Gather:
    """Compares the head of every record of a run with the expected bytes.

    It does so in words of up to 8 bytes, which may overlap: numpy copies words of 8 bytes three
    times as fast as items of odd sizes.
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
        self,
        data: bytes | memoryview,
        place: int,
        size: int,
        each: tuple[int, int],
        free_at: int = -1,
    ) -> None:
        """Expect the same bytes as in `data`: a head of `size` bytes for each record.

        The first head is at position `place` of `data`. `each` is (number of records, distance from
        one record to the next). In byte `free_at` of each head only the top bit must be equal.
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

    def is_equal(self, data: bytes | memoryview) -> bool | None:
        """Return True if all bytes are equal, False if only unchecked bits differ, else None."""
        from numpy import ndarray

        found = ndarray(self._shape, self._form, data, self._place, self._strides).tobytes()
        if found == self._expected:
            return True
        words = ndarray(self._known.shape, self._form, found)
        return None if ((words ^ self._known) & self._fixed).any() else False

    def equal_count(self, view: memoryview, position: int, batch_count: int, distance: int) -> int:
        """Return how many batches in a row have the expected bytes: see `Layout.fitting`."""
        import numpy as np

        shape = batch_count, *self._shape
        strides = distance, *self._strides
        found = np.ndarray(shape, self._form, view, position + self._place, strides).tobytes()
        if len(found) != len(self._repeated):
            self._repeated = self._expected * batch_count
        if found == self._repeated:
            return batch_count
        words = np.frombuffer(found, self._form).reshape(batch_count, -1)
        differ = ((words ^ self._known) & self._fixed).any(axis=1)
        return int(differ.argmax()) if differ.any() else batch_count


# --- batches ------------------------------------------------------------------------------------


class AlikeColumns(RecordColumns):
    """The columns of consecutive batches of one layout.

    Positions point into `buffer`, which begins with the first record of the first batch and
    includes the headers of the later batches.
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
        """The position in the view behind the last batch."""
        self._data = self.buffer = view[position + HEADER_SIZE : self.end]
        self.count = len(heads) * layout.count
        self.runs = []
        self._arrays = None
        self._cache = {}

    def keys(self) -> list[bytes | None]:
        return self._fields([(run, run.key_at, run.key_size) for run in self._layout.runs])

    def values(self) -> list[bytes | None]:
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
        # From batch to batch offsets grow by at least the number of records. If the last batch has
        # the lowest possible offset, there are no gaps between the batches.
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
        """Return a column: the value of `field` in each batch's head, plus the values in `within`.

        `within` has one value for each record of a batch, or a row of such values for each batch.
        """
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
    """Return the columns of several batches at `position`, if their layout is known; else None.

    The result has only batches that are whole, uncompressed and not transactional, and begin at
    `offset` or later. It ends at the latest with the batch that reaches `count_max` records. If at
    most one batch can be read, return None: `known_runs` reads that batch faster.
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
    if wanted < RUN_COUNT_MIN:
        return None
    places = range(position, position + wanted * size, size)
    heads = alike_heads(view, places, offset, check_crcs=check_crcs)
    fitting = layout.fitting(view, position + HEADER_SIZE, len(heads), size)
    if fitting < wanted:
        layout.run_count = max(fitting, RUN_COUNT_MIN)
    elif wanted == layout.run_count:
        layout.run_count = max(min(2 * wanted, RUN_SIZE_MAX // size), 1)
    return AlikeColumns(layout, view, position, heads[:fitting]) if fitting else None
