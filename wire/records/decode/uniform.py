"""Reading batches whose records have one size, by comparing all records in one call.

If all keys of a batch have one size, and all values have one size, then the first record and the
record count determine every byte outside of keys, values and timestamps. These expected bytes are
the `Shape`. One call of struct cuts the bytes at the same places out of a batch. If they equal the
expected bytes, each record lies where the shape says, and the plain loop would find the same
records. Timestamp deltas may differ if each has one byte, because a byte without the top bit is a
whole varint.

    [length, attributes, delta, offset, key length] key [value length] value [0, length, ...]
                                                    end of a record and head of the next: ^

Without keys there is one piece between two values. Batches with headers, with null values, or with
a timestamp delta of more than one byte (64 ms or more from the first record) are read in other
ways: see `choose`.

A producer that fills its batches writes many of the same size and record count. Consecutive batches
of that kind are read together.
"""

from __future__ import annotations

from itertools import chain, repeat
from struct import Struct

from wire.records.crc32c import crc32c
from wire.records.decode.rows import Rows
from wire.records.encode.joins import offset_sizes, template, uniform_size
from wire.records.format import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
)
from wire.records.known import KNOWN, Known
from wire.records.varint import (
    MAX_VARINT_SIZE,
    SMALL_NUMBERS,
    VARINTS,
    Malformed,
    distinct,
    read_varint,
    timestamps_with,
    varint_size,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.records.record import Buffer

    # (keys or None, values, timestamp deltas as `Shape.deltas` returns them)
    Columns = tuple[tuple[bytes, ...] | None, tuple[bytes, ...], bytes]
    # (base offset, bytes from length to magic, crc, bytes of attributes and last offset delta,
    # base timestamp, max timestamp, bytes of the record count)
    Head = tuple[int, bytes, int, bytes, int, int, bytes]

COUNT_MAX = 400
# The first batch of a size and count gets a shape only if it has at least this many records: for
# fewer, making the shape takes longer than reading one batch with the plain loop.
COUNT_AT_ONCE = 8

_SWAPPED = str.maketrans("sx", "xs")

BATCHES_MIN = 2
# Batches of more records are read one by one: they gain nothing from being read together.
RUN_COUNT_MAX = 64
# Start and end of the header fields length, leader epoch and magic in a batch.
_FRAME_START, _FRAME_END = 8, 17
_unpack_head = Struct(">q9sI6sqq14x4s").unpack_from


class Shape:
    """The bytes around the keys and values of `count` records with keys and values of one size."""

    __slots__ = (
        "_around",
        "_fields",
        "_places",
        "_skim",
        "has_keys",
    )

    def __init__(self, key_size: int, value_size: int, count: int, known: Known = KNOWN) -> None:
        """A `key_size` of -1 means no keys."""
        self.has_keys = key_size >= 0
        heads = template(key_size, value_size, count, known)
        first = heads[0][1:]  # without the end of a previous record
        form = ""
        middle = b""
        if self.has_keys:
            middle = VARINTS[value_size]
            form = f"{key_size}x{len(middle)}s"
        form += f"{value_size}x"
        forms = [f"{len(first)}s{form}"]
        places = []
        begin = -1  # in the joined pieces: the first head lacks its first byte
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
        """Return the timestamp deltas of the records at `position`, if these have this shape.

        Each delta is a zig-zag varint of one byte. Empty if all are 0. None if the records do not
        have this shape.
        """
        around = b"".join(self._skim.unpack_from(data, position))
        return b"" if around == self._around else self._deltas_in(around)

    def delta_range(self, data: Buffer, position: int) -> tuple[int, int] | None:
        """Return the least and the greatest timestamp delta.

        Return None if the records at `position` do not have this shape.
        """
        deltas = self.deltas(data, position)
        if not deltas:
            return None if deltas is None else (0, 0)
        found = [SMALL_NUMBERS[raw] for raw in distinct(deltas)]
        return min(found), max(found)

    def columns(self, data: Buffer, position: int) -> Columns | None:
        """Return copies of the keys and values, and the timestamp deltas.

        Return None if the records at `position` do not have this shape.
        """
        # One call of struct cuts out the bytes around the fields, another call cuts out
        # the fields: splitting the result of a single call takes longer.
        deltas = self.deltas(data, position)
        if deltas is None:
            return None
        found = self._fields
        if found is None:
            # Made on first use, because a broker that appends needs only `deltas`.
            self._fields = found = Struct(self.fields_form)
        fields = found.unpack_from(data, position)
        if self.has_keys:
            return fields[0::2], fields[1::2], deltas
        return None, fields, deltas

    @property
    def around_form(self) -> str:
        """The struct format for the bytes around keys and values."""
        return self._skim.format

    @property
    def fields_form(self) -> str:
        """The struct format for the keys and values."""
        return self._skim.format.translate(_SWAPPED)

    def split_deltas(self, around: bytes) -> list[bytes]:
        """Return the `deltas` of each of several batches, up to the first batch of another shape.

        `around` has the bytes around keys and values of all batches, one batch after the other.
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
        """Return the timestamp deltas; None if any other byte differs from the shape."""
        expected = bytearray(self._around)
        deltas = b""
        for places in self._places:  # one slice for each size of offset deltas
            found = around[places]
            expected[places] = found
            deltas += found
        return deltas if expected == around and deltas.isascii() else None


def shape_of(
    data: Buffer, position: int, end: int, count: int, known: Known = KNOWN
) -> Shape | None:
    """Return the likely shape of `count` records that fill data[position:end], or None.

    None if the records cannot have one shape, or if it is not worth making yet: see
    `COUNT_AT_ONCE`.
    """
    shape = known.shapes.get((end - position, count))
    return _meet(data, position, end, count, known) if shape is None else shape


def known_shape(size: int, count: int, known: Known = KNOWN) -> Shape | None:
    """Return the shape of `count` records with this total size, or None if it is not known yet."""
    return known.shapes.get((size, count))


def cut(data: Buffer, position: int, end: int, count: int, known: Known = KNOWN) -> Columns | None:
    """Return the columns of `count` records that fill data[position:end]; None without a shape."""
    shape: Shape | None = known.shapes.get((end - position, count))
    if shape is None:
        shape = _meet(data, position, end, count, known)
    return None if shape is None else shape.columns(data, position)


def _meet(data: Buffer, position: int, end: int, count: int, known: Known) -> Shape | None:
    """Make a shape for batches like this one, if the first record and the total size allow it."""
    key = end - position, count
    if not 0 < count <= COUNT_MAX:
        return None
    sighting = known.shape_sightings.get(key, 0) + 1
    known.shape_sightings.keep(key, sighting)
    if sighting & (sighting - 1) or (sighting == 1 and count < COUNT_AT_ONCE):
        # Try only for the batches number 1, 2, 4, 8, ... of this size and count, because a try
        # costs as much as reading some records.
        return None
    sizes = _sizes_of_first(memoryview(data), position)
    if sizes is None or uniform_size(*sizes, count) != end - position:
        return None
    shape = Shape(*sizes, count, known)
    known.shapes.keep(key, shape)
    return shape


def _sizes_of_first(data: memoryview, position: int) -> tuple[int, int] | None:
    """Return the first record's key size (-1: null) and value size; None if no shape has them."""
    try:
        _, body = read_varint(data, position, MAX_VARINT_SIZE)
        # Before the key there are attributes, timestamp delta and offset delta, of one byte each.
        key_size, key_at = read_varint(data, body + 3, MAX_VARINT_SIZE)
        if key_size < -1:
            return None
        value_size, _ = read_varint(data, key_at + max(key_size, 0), MAX_VARINT_SIZE)
    except (IndexError, Malformed):
        return None
    return (key_size, value_size) if value_size >= 0 else None


# --- batches ------------------------------------------------------------------------------------


class RunRows(Rows):
    """The records of one or more consecutive batches that have the same shape."""

    __slots__ = ("end", "epoch", "next_offset", "timestamp_type")

    end: int
    """The position in the view behind the last batch."""
    next_offset: int
    epoch: int
    timestamp_type: int


class _Reader:
    """Cuts the bytes of a shape, and the fields, out of consecutive batches."""

    __slots__ = ("fields", "shape", "skim")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.skim = Struct(f"{HEADER_SIZE}x{shape.around_form}").iter_unpack
        self.fields = Struct(f"{HEADER_SIZE}x{shape.fields_form}").iter_unpack


def next_rows(
    view: memoryview,
    position: int,
    *,
    offset: int,
    count_max: int,
    check_crcs: bool,
    several: bool = False,
    known: Known = KNOWN,
) -> RunRows | None:
    """Return the records of the batch at `position`, and of later ones if `several`; or None.

    The result has only batches that are whole, uncompressed and not transactional, have one shape,
    and begin at `offset` or later. Several batches have at most `count_max` records and consecutive
    offsets. If the result is None, the caller must read the batch in another way.

    Reading several batches of one record together takes a third of the time of reading them one by
    one; for batches of 15 x 1 KiB it takes three quarters. Reading a single batch takes 0.65 of the
    time of `RecordBatch` if it has one record, 0.75 if it has 15.
    """
    if position + HEADER_SIZE > len(view):
        return None
    header = HEADER.unpack_from(view, position)
    base_offset, length, _, magic, crc, attributes, last_offset_delta, *_, count = header
    end = position + LOG_OVERHEAD + length
    if (
        magic != 2
        or attributes & ~TIMESTAMP_TYPE_BIT
        or base_offset < offset
        or end > len(view)
        or end <= position + HEADER_SIZE
    ):
        return None
    if several and 0 < count <= RUN_COUNT_MAX and last_offset_delta == count - 1:
        size = end - position
        wanted = min((len(view) - position) // size, count_max // count)
        frame = view[position + _FRAME_START : position + _FRAME_END]
        if wanted >= BATCHES_MIN and view[end + _FRAME_START : end + _FRAME_END] == frame:
            places = range(position, position + wanted * size, size)
            found = _run(view, places, header, offset, check_crcs=check_crcs, known=known)
            if found is not None:
                return found
    if check_crcs and crc32c(view[position + ATTRIBUTES_POSITION : end]) != crc:
        return None
    columns = cut(view, position + HEADER_SIZE, end, count, known)
    return None if columns is None else _one(columns, header, end)


def _one(columns: Columns, header: tuple[int, ...], end: int) -> RunRows:
    """Return the records of one batch, from its columns and header. It ends at position `end`."""
    keys, values, deltas = columns
    base_offset, _, epoch, _, _, attributes, last_offset_delta, base_timestamp, latest, *_ = header
    rows = RunRows(
        range(base_offset, base_offset + header[-1]),
        repeat(latest) if attributes else timestamps_with(base_timestamp, deltas),
        repeat(None) if keys is None else keys,
        values,
    )
    rows.end = end
    rows.next_offset = base_offset + last_offset_delta + 1
    rows.epoch = epoch
    rows.timestamp_type = attributes >> 3
    return rows


def _run(
    view: memoryview,
    places: range,
    header: tuple[int, ...],
    offset: int,
    *,
    check_crcs: bool,
    known: Known,
) -> RunRows | None:
    """Return the records of the batches at these positions; None unless two or more are alike."""
    position, size, count, attributes = places[0], places.step, header[-1], header[5]
    reader = known.shape_readers.get((size, count)) or _reader(view, position, size, count, known)
    if reader is None:
        return None
    heads = alike_heads(view, places, offset, check_crcs=check_crcs, dense=True)
    batches = view[position : position + len(heads) * size]
    # One call of struct cuts the same places out of all batches, and one comparison checks the
    # joined bytes. Only the header and timestamps of each batch take steps in Python.
    around = b"".join(chain.from_iterable(reader.skim(batches)))
    deltas = reader.shape.split_deltas(around)
    fitting = len(deltas)
    if fitting < BATCHES_MIN:
        return None
    end = position + fitting * size
    fields = list(chain.from_iterable(reader.fields(view[position:end])))
    keys, values = (fields[0::2], fields[1::2]) if reader.shape.has_keys else (None, fields)
    first = heads[0][0]
    timestamps: list[int] = []
    for head, batch_deltas in zip(heads, deltas):  # noqa: B905  `deltas` may be shorter
        if batch_deltas and not attributes:
            timestamps += timestamps_with(head[4], batch_deltas)
        else:
            timestamps += [head[5] if attributes else head[4]] * count
    offsets = range(first, first + fitting * count)
    rows = RunRows(offsets, timestamps, keys or repeat(None), values)
    rows.end = end
    rows.next_offset = first + fitting * count
    rows.epoch = header[2]
    rows.timestamp_type = attributes >> 3
    return rows


def _reader(view: memoryview, position: int, size: int, count: int, known: Known) -> _Reader | None:
    shape = shape_of(view, position + HEADER_SIZE, position + size, count, known)
    if shape is None:
        return None
    reader = _Reader(shape)
    known.shape_readers.keep((size, count), reader)
    return reader


def alike_heads(
    view: memoryview, places: range, offset: int, *, check_crcs: bool, dense: bool = False
) -> list[Head]:
    """Return the headers of the batches at `places`, up to the first batch that differs.

    The list ends before a batch with another length, leader epoch, attributes or record count,
    before a batch whose offsets begin below `offset` or the end of the previous batch, and with
    `check_crcs` before a wrong checksum. With `dense` it also ends before a gap in the offsets.
    """
    heads: list[Head] = []
    _, frame, _, kind, _, _, number = _unpack_head(view, places[0])
    last_offset_delta = int.from_bytes(kind[2:], "big")
    for place in places:
        head = _unpack_head(view, place)
        if head[1] != frame or head[3] != kind or head[6] != number or head[0] < offset:
            break
        if dense and heads and head[0] != offset:
            break
        # Check the checksum here: the check brings the whole batch into the processor's cache.
        checked = place + ATTRIBUTES_POSITION
        if check_crcs and crc32c(view[checked : place + places.step]) != head[2]:
            break
        offset = head[0] + last_offset_delta + 1
        heads.append(head)
    return heads
