"""Batches of one size and count, again and again: all their records looked at by one call.

Producers that fill batches write many that differ in their keys, values and timestamps only. Of the
second one that has as many bytes and records as one before, what the plain loop reads is kept as a
`Shape`: the bytes around its keys and values. One call of struct cuts the same places out of the
next such batch. If the bytes are equal the plain loop would read there what it read before; if they
differ in the timestamp deltas only, and each is a byte without the top bit, then that byte is a
whole varint, and all else is equal again. So a shape is exact, and an equal parse.

    [length, attributes, delta, offset, key length] key [value length] value [0, length, ...

Without keys there is one piece between two values. Where a delta takes more than a byte (64 ms and
more from the first record), where there are headers, or null values, others read the batch.
"""

from __future__ import annotations

from itertools import repeat
from struct import Struct

from wire.records.errors import InvalidRecord
from wire.records.plain import parse_records
from wire.records.varint import MAX_VARINT_SIZE, int64, read_varint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from wire.records.plain import Fields
    from wire.records.record import Buffer

    # keys or None, values, timestamp deltas as `Shape.deltas` has them
    Columns = tuple[tuple[bytes, ...] | None, tuple[bytes, ...], bytes]

COUNT_MAX = 400
RECORDS_KEPT_MAX = 1 << 14  # of about 200 B
SEEN_MAX = 1024
# Below this a look-up for each is as quick.
GROUPED_COUNT_MIN = 32

_DELTAS = tuple((raw >> 1) ^ -(raw & 1) for raw in range(0x80))

# By size of the records and their number.
_shapes: dict[tuple[int, int], Shape] = {}
_seen: dict[tuple[int, int], int] = {}


class Shape:
    """What stands around the keys and values of batches that are laid out alike."""

    __slots__ = ("_around", "_bits", "_cut", "_fixed", "_places", "_signs", "_skim", "has_keys")

    def __init__(self, pieces: list[bytes], sizes: list[int], places: list[int]) -> None:
        """`sizes` of what is between the pieces; `places` of the deltas in the joined pieces."""
        self.has_keys = len(sizes) == 2 * len(places)
        form = [f"{len(piece)}s{size}" for piece, size in zip(pieces, sizes, strict=False)]
        self._skim = Struct("x".join([*form, "1s"])).unpack_from
        self._cut = Struct("s".join([*form, "1s"])).unpack_from
        self._around = around = b"".join(pieces)
        fixed = bytearray(b"\xff" * len(around))
        signs = bytearray(len(around))
        for place in places:
            fixed[place] = 0x80
            signs[place] = 0x01
        self._bits = int.from_bytes(around, "little")
        self._fixed = int.from_bytes(fixed, "little")
        self._signs = int.from_bytes(signs, "little")
        self._places = _as_slices(places)

    def deltas(self, data: Buffer, position: int) -> bytes | None:
        """The timestamp deltas of the records at `position`; None if this is not their shape.

        They are zig-zag numbers of one byte each, or none at all if all are 0.
        """
        around = b"".join(self._skim(data, position))
        return b"" if around == self._around else self._deltas_in(around)

    def delta_range(self, data: Buffer, position: int) -> tuple[int, int] | None:
        """The least and the greatest of the timestamp deltas; None if this is not their shape."""
        around = b"".join(self._skim(data, position))
        if around == self._around:
            return 0, 0
        found = int.from_bytes(around, "little") ^ self._bits
        if found & self._fixed:
            return None
        deltas = self._at_places(around)
        if found & self._signs:
            # Some are negative.
            decoded = [(raw >> 1) ^ -(raw & 1) for raw in set(deltas)]
            return min(decoded), max(decoded)
        return min(deltas) >> 1, max(deltas) >> 1

    def columns(self, data: Buffer, position: int) -> Columns | None:
        """Copies of the keys and values, and the deltas; None if this is not their shape."""
        fields = self._cut(data, position)
        around = b"".join(fields[0::2])
        deltas = b"" if around == self._around else self._deltas_in(around)
        if deltas is None:
            return None
        if self.has_keys:
            return fields[1::4], fields[3::4], deltas
        return None, fields[1::2], deltas

    def _deltas_in(self, around: bytes) -> bytes | None:
        if (int.from_bytes(around, "little") ^ self._bits) & self._fixed:
            return None
        return self._at_places(around)

    def _at_places(self, around: bytes) -> bytes:
        deltas = b""
        for places in self._places:  # one, of up to 64 records
            deltas += around[places]
        return deltas


def _as_slices(places: list[int]) -> list[slice]:
    """The same places, those at even distances together."""
    slices = []
    start = 0
    while start < len(places):
        stop = start + 1
        step = places[stop] - places[start] if stop < len(places) else 1
        while stop < len(places) and places[stop] - places[stop - 1] == step:
            stop += 1
        slices.append(slice(places[start], places[stop - 1] + 1, step))
        start = stop
    return slices


def shape_of(data: Buffer, position: int, end: int, count: int) -> Shape | None:
    """The shape that `count` records in data[position:end] have if they are what was met before.

    None if such were not met yet, or are not of the kind that has a shape.
    """
    known = _shapes.get((end - position, count))
    return _meet(data, position, end, count) if known is None else known


def known_shape(size: int, count: int) -> Shape | None:
    """The shape of `count` records of that size together; unlike `shape_of` it makes none."""
    return _shapes.get((size, count))


def cut(data: Buffer, position: int, end: int, count: int) -> Columns | None:
    """The columns of `count` records that fill data[position:end]; None if no shape fits."""
    known = _shapes.get((end - position, count)) or _meet(data, position, end, count)
    return None if known is None else known.columns(data, position)


def timestamps_with(base_timestamp: int, deltas: bytes) -> Iterable[int]:
    """The timestamps of records, from what a shape says of their deltas."""
    if not deltas:
        return repeat(base_timestamp)
    if len(deltas) >= GROUPED_COUNT_MIN:
        stamps = _grouped_timestamps(base_timestamp, deltas)
        if stamps is not None:
            return stamps
    stamp_of = {raw: int64(base_timestamp + _DELTAS[raw]) for raw in set(deltas)}
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
        stamps += [int64(base_timestamp + _DELTAS[raw])] * (stop - start)
        start = stop
    return stamps


def _meet(data: Buffer, position: int, end: int, count: int) -> Shape | None:
    """Count such batches, and make a shape of the second; of a later one if it has none."""
    key = end - position, count
    if count > COUNT_MAX:
        return None
    sighting = _seen.get(key, 0) + 1
    if sighting == 1 and len(_seen) >= SEEN_MAX:
        _seen.clear()
    _seen[key] = sighting
    if sighting == 1 or sighting & (sighting - 1):
        return None  # at 2, 4, 8, ...: trying costs as much as reading
    view = memoryview(data)[position:end]
    try:
        found = _shape(view, parse_records(view, count))
    except InvalidRecord:
        return None
    if found is not None:
        if sum(known_count for _, known_count in _shapes) + count > RECORDS_KEPT_MAX:
            _shapes.clear()
        _shapes[key] = found
    return found


def _shape(data: memoryview, records: list[Fields]) -> Shape | None:
    """The shape of a valid batch, unless there is something unusual about it."""
    key_size, value_size = records[0][3], records[0][5]
    has_keys = key_size >= 0
    pieces: list[bytes] = []
    sizes: list[int] = []
    places: list[int] = []
    piece_start = start = size = 0
    for index, record in enumerate(records):
        _, offset_delta, key_at, record_key_size, value_at, record_value_size, headers, _ = record
        _, body = read_varint(data, start, MAX_VARINT_SIZE)
        delta_at = body + 1  # behind the attributes
        value_end = value_at + value_size
        if (
            offset_delta != index
            or record_key_size != key_size
            or record_value_size != value_size
            or value_size < 0
            or headers
            or data[value_end]  # no headers, in one byte
            or data[delta_at] > 0x7F
        ):
            return None
        piece = bytearray(data[piece_start : key_at if has_keys else value_at])
        piece[delta_at - piece_start] = 0
        places.append(size + delta_at - piece_start)
        pieces.append(bytes(piece))
        size += len(piece)
        if has_keys:
            pieces.append(bytes(data[key_at + key_size : value_at]))
            sizes.append(key_size)
            size += len(pieces[-1])
        sizes.append(value_size)
        piece_start, start = value_end, value_end + 1
    pieces.append(b"\0")
    return Shape(pieces, sizes, places)
