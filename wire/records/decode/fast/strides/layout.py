"""How the records of a batch are laid out, kept for the next batches of that size and count.

Producers that fill batches write many of one size and count, which differ in keys, values and times
only. What stands around the keys and values of such a batch is kept as its `Layout`. One call of
numpy gathers the same bytes of the next one, or of many, in place, and another compares them:

    batch   | head | value | head | value | head | value |
    kept      head           head           head           0

Where they are equal the plain loop would read the same fields at the same places. A timestamp delta
may be another, as long as it is a byte: a byte without the top bit is a whole varint. This takes
5 ns a record, whatever the size of the values, and copies none of them: 1,000 x 100 B are scanned
in 10 us, where finding the runs anew takes 26. It is for large batches, and for readers in columns.
"""

from __future__ import annotations

from wire.records.decode.columns import RUN_PLACES, per_run
from wire.records.decode.fast.strides.runs import Run
from wire.records.varint import MAX_VARINT_SIZE, SMALL_NUMBERS, read_varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from wire.records.known import Known

    Int64s = NDArray[np.int64]

COUNT_MAX = 1 << 13  # 16 layouts are kept
RUNS_MAX = 8  # of a batch


def known_runs(data: bytes | memoryview, count: int, known: Known) -> list[Run] | None:
    """The runs of `count` records that fill `data`, if their layout is known; None if not."""
    layout: Layout | None = known.layouts.get((len(data), count))
    return None if layout is None else layout.runs_in(data)


def remember(data: bytes | memoryview, runs: list[Run], count: int, known: Known) -> None:
    """Keep the layout of records whose runs were found in another way, at its second sight."""
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
    """What stands around the keys and values of batches of one size, and where these are."""

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
        """`deltas_at` says how far into the records of each run their timestamp delta is."""
        self.size = len(data)
        """Of all records of a batch."""
        self.count = count
        self.runs = runs
        self.deltas_at = deltas_at
        self.run_count = 1
        """How many such batches to look for at once: more after a success, else fewer."""
        self._places: dict[str, Int64s] = {}
        self._first_head = bytes(data[: _head_size(runs[0])])
        self._gathers = []
        for run, delta_at in zip(runs, deltas_at, strict=True):
            # A head begins with the last byte of what comes before it; nothing precedes the first.
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
        """A column of `RUN_PLACES` for the first batch."""
        column = self._places.get(name)
        if column is None:
            column = self._places[name] = per_run(self.runs, self.count, RUN_PLACES[name])
        return column

    def runs_in(self, data: bytes | memoryview) -> list[Run] | None:
        """The runs of `data`, which is as long, if it is laid out so; None if not."""
        head = self._first_head
        # The end of the last record; the others end in the head of the next.
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
        """How many batches are laid out so, up to the first that is not.

        The records of the first begin at `position`, those of the next one at a `distance`.
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
    """The run with the timestamp deltas in `data`, a byte each."""
    from numpy import ndarray

    raw = ndarray(run.count, "u1", data, run.position + delta_at, run.stride).tobytes()
    found = Run()
    for name in Run.__slots__:
        setattr(found, name, getattr(run, name))
    found.delta = SMALL_NUMBERS[raw[0]]
    found.raw_deltas = b"" if raw == raw[:1] * run.count else raw
    found.decoded_deltas = SMALL_NUMBERS
    return found


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
        self,
        data: bytes | memoryview,
        place: int,
        size: int,
        each: tuple[int, int],
        free_at: int = -1,
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

    def is_equal(self, data: bytes | memoryview) -> bool | None:
        """Are these bytes in `data`? None: not even those that count."""
        from numpy import ndarray

        found = ndarray(self._shape, self._form, data, self._place, self._strides).tobytes()
        if found == self._expected:
            return True
        words = ndarray(self._known.shape, self._form, found)
        return None if ((words ^ self._known) & self._fixed).any() else False

    def equal_count(self, view: memoryview, position: int, batch_count: int, distance: int) -> int:
        """How many batches have them, up to the first that has not; see `Layout.fitting`."""
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
