"""Batches of records of one size, as producers write them: all records looked at by one call.

Where all keys of a batch are of one size, and all values, the first record and the count tell every
byte that is neither key nor value nor timestamp: its `Shape`. One call of struct cuts the places of
these bytes out of a batch. If they are as the shape says, the plain loop would read there what the
shape says; if they differ in the timestamp deltas only, and each is a byte without the top bit,
then that byte is a whole varint, and all else is equal again. So a shape is exact, and an equal
parse.

    [length, attributes, delta, offset, key length] key [value length] value [0, length, ...

Without keys there is one piece between two values. Where a delta takes more than a byte (64 ms and
more from the first record), where there are headers, or null values, others read the batch.
"""

from __future__ import annotations

from itertools import repeat
from struct import Struct

from wire.records.encode.joins import offset_sizes, template, uniform_size
from wire.records.known import KNOWN, Known
from wire.records.varint import (
    MAX_VARINT_SIZE,
    SMALL_NUMBERS,
    VARINTS,
    Malformed,
    distinct,
    int64,
    read_varint,
    varint_size,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from wire.records.record import Buffer

    # keys or None, values, timestamp deltas as `Shape.deltas` has them
    Columns = tuple[tuple[bytes, ...] | None, tuple[bytes, ...], bytes]

COUNT_MAX = 400
# Below this the plain loop takes less time than making a shape does, so that has to pay twice.
COUNT_AT_ONCE = 8
# Below this a look-up for each is as quick.
GROUPED_COUNT_MIN = 32

_SWAPPED = str.maketrans("sx", "xs")


class Shape:
    """What stands around the keys and values of so many records, each of one size."""

    __slots__ = (
        "_around",
        "_fields",
        "_places",
        "_skim",
        "has_keys",
    )

    def __init__(self, key_size: int, value_size: int, count: int, known: Known = KNOWN) -> None:
        """Without keys `key_size` is -1."""
        self.has_keys = key_size >= 0
        heads = template(key_size, value_size, count, known)
        first = heads[0][1:]  # no record ends before it
        form = ""
        middle = b""
        if self.has_keys:
            middle = VARINTS[value_size]
            form = f"{key_size}x{len(middle)}s"
        form += f"{value_size}x"
        forms = [f"{len(first)}s{form}"]
        places = []
        begin = -1  # of these records in the joined pieces
        for start, stop, offset_size in offset_sizes(count):
            head_size = len(heads[stop - 1])
            forms.append(f"{head_size}s{form}" * (stop - start - (start == 0)))
            distance = head_size + len(middle)
            after_delta = offset_size + varint_size(key_size)
            if not self.has_keys:
                after_delta += varint_size(value_size)
            end = begin + (stop - start) * distance
            places.append(slice(begin + head_size - after_delta - 1, end, distance))
            begin = end
        self._skim = Struct("".join(forms) + "1s")
        self._fields: Struct | None = None
        self._places = places
        self._around = middle.join((first, *heads[1:])) + middle + b"\0"

    def deltas(self, data: Buffer, position: int) -> bytes | None:
        """The timestamp deltas of the records at `position`; None if this is not their shape.

        They are zig-zag numbers of one byte each, or none at all if all are 0.
        """
        around = b"".join(self._skim.unpack_from(data, position))
        return b"" if around == self._around else self._deltas_in(around)

    def delta_range(self, data: Buffer, position: int) -> tuple[int, int] | None:
        """The least and the greatest of the timestamp deltas; None if this is not their shape."""
        deltas = self.deltas(data, position)
        if not deltas:
            return None if deltas is None else (0, 0)
        found = [SMALL_NUMBERS[raw] for raw in distinct(deltas)]
        return min(found), max(found)

    def columns(self, data: Buffer, position: int) -> Columns | None:
        """Copies of the keys and values, and the deltas; None if this is not their shape."""
        # What is around the fields first, then they alone: parting them afterwards takes longer.
        deltas = self.deltas(data, position)
        if deltas is None:
            return None
        found = self._fields
        if found is None:
            # What a broker appends it only skims.
            self._fields = found = Struct(self.fields_form)
        fields = found.unpack_from(data, position)
        if self.has_keys:
            return fields[0::2], fields[1::2], deltas
        return None, fields, deltas

    @property
    def around_form(self) -> str:
        """The form, for struct, of what is around keys and values."""
        return self._skim.format

    @property
    def fields_form(self) -> str:
        """The form of the keys and values alone."""
        return self._skim.format.translate(_SWAPPED)

    def split_deltas(self, around: bytes) -> list[bytes]:
        """As `deltas`, for each of several batches, up to one of another shape.

        `around` is what is around keys and values, of one batch after the other.
        """
        size = len(self._around)
        count = len(around) // size
        if around == self._around * count:
            return [b""] * count
        found: list[bytes] = []
        for start in range(0, len(around), size):
            part = around[start : start + size]
            deltas = b"" if part == self._around else self._deltas_in(part)
            if deltas is None:
                break
            found.append(deltas)
        return found

    def _deltas_in(self, around: bytes) -> bytes | None:
        """The deltas, if all the other bytes are as they must be."""
        expected = bytearray(self._around)
        deltas = b""
        for places in self._places:  # one, of up to 64 records
            found = around[places]
            expected[places] = found
            deltas += found
        return deltas if expected == around and deltas.isascii() else None


def shape_of(
    data: Buffer, position: int, end: int, count: int, known: Known = KNOWN
) -> Shape | None:
    """The shape of `count` records that fill data[position:end], as far as the first one tells.

    None if they can have none, or are few that were not met before.
    """
    shape = known.shapes.get((end - position, count))
    return _meet(data, position, end, count, known) if shape is None else shape


def known_shape(size: int, count: int, known: Known = KNOWN) -> Shape | None:
    """The shape of `count` records of that size together; unlike `shape_of` it makes none."""
    return known.shapes.get((size, count))


def cut(data: Buffer, position: int, end: int, count: int, known: Known = KNOWN) -> Columns | None:
    """The columns of `count` records that fill data[position:end]; None if no shape fits."""
    shape: Shape | None = known.shapes.get((end - position, count))
    if shape is None:
        shape = _meet(data, position, end, count, known)
    return None if shape is None else shape.columns(data, position)


def timestamps_with(base_timestamp: int, deltas: bytes) -> Iterable[int]:
    """The timestamps of records, from what a shape says of their deltas."""
    if not deltas:
        return repeat(base_timestamp)
    if len(deltas) >= GROUPED_COUNT_MIN:
        stamps = _grouped_timestamps(base_timestamp, deltas)
        if stamps is not None:
            return stamps
    stamp_of = {raw: int64(base_timestamp + SMALL_NUMBERS[raw]) for raw in set(deltas)}
    return list(map(stamp_of.__getitem__, deltas))


def _grouped_timestamps(base_timestamp: int, deltas: bytes) -> list[int] | None:
    """The timestamps, if those that are equal follow each other: then each takes 10 ns, not 50."""
    stamps: list[int] = []
    start, count = 0, len(deltas)
    while start < count:
        raw = deltas[start]
        stop = deltas.rfind(raw, start) + 1
        if deltas.count(raw, start, stop) != stop - start:
            return None
        stamps += [int64(base_timestamp + SMALL_NUMBERS[raw])] * (stop - start)
        start = stop
    return stamps


def _meet(data: Buffer, position: int, end: int, count: int, known: Known) -> Shape | None:
    """Make a shape for such batches, unless the first record and the size say that it has none."""
    key = end - position, count
    if not 0 < count <= COUNT_MAX:
        return None
    sighting = known.shape_sightings.get(key, 0) + 1
    known.shape_sightings.keep(key, sighting)
    if sighting & (sighting - 1) or (sighting == 1 and count < COUNT_AT_ONCE):
        return None  # tried at 1, 2, 4, 8, ...: trying takes as long as reading a few
    sizes = _sizes_of_first(memoryview(data), position)
    if sizes is None or uniform_size(*sizes, count) != end - position:
        return None
    shape = Shape(*sizes, count, known)
    known.shapes.keep(key, shape)
    return shape


def _sizes_of_first(data: memoryview, position: int) -> tuple[int, int] | None:
    """The sizes of the first record's key (-1: null) and value, if it is one that has a shape."""
    try:
        _, body = read_varint(data, position, MAX_VARINT_SIZE)
        # attributes, timestamp delta, offset delta: a byte each
        key_size, key_at = read_varint(data, body + 3, MAX_VARINT_SIZE)
        if key_size < -1:
            return None
        value_size, _ = read_varint(data, key_at + max(key_size, 0), MAX_VARINT_SIZE)
    except (IndexError, Malformed):
        return None
    return (key_size, value_size) if value_size >= 0 else None
