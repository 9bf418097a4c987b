"""Batches of one size and count, again and again: all their records cut by one call of struct.

Producers that fill batches write many that differ in their values and timestamps only. Of those,
keyless and with values of one length, all other bytes are known from the first one: the second is
cut into these bytes and the values, and one comparison proves it. Where it fails because of the
timestamps, a comparison of two long integers does, with the bits of the timestamp deltas masked,
as long as each is one byte: within 63 ms of the first. That is exact too: a byte without its top
bit is a whole varint.
"""

from __future__ import annotations

from itertools import repeat
from struct import Struct

from wire.records.encoding import offset_sizes, template
from wire.records.varint import MAX_VARINT_SIZE, Malformed, int64, read_varint, varint_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    # what cuts; the bytes around the values; the same as a number, and which of its bits count;
    # where in these bytes the timestamp deltas are, and the last of them in the records
    _Cutter: TypeAlias = tuple[Struct, tuple[bytes, ...], int, int, list[slice], int]

COUNT_MIN = 8
CUT_COUNT_MAX = 400
CUTTERS_MAX = 128
SEEN_MAX = 1024

# By size of the records and their number.
_cutters: dict[tuple[int, int], _Cutter] = {}
_seen: set[tuple[int, int]] = set()


def cut_whole(
    data: bytes | memoryview, position: int, end: int, count: int
) -> tuple[tuple[bytes, ...], bytes] | None:
    """Return the values of `count` records that fill data[position:end], and timestamp deltas.

    The deltas are zig-zag numbers of one byte each, or none at all if they are zeros. None if
    another way must be found to read the records; they may be as plain as these, but new here.
    """
    known = _cutters.get((end - position, count))
    if known is None:
        known = _meet(data, position, end, count)
        if known is None:
            return None
    cutter, expected, bits, fixed, places, _ = known
    fields = cutter.unpack_from(data, position)
    around = fields[0::2]
    if around == expected:
        return fields[1::2], b""
    found = b"".join(around)
    if (int.from_bytes(found, "little") ^ bits) & fixed:
        return None
    return fields[1::2], b"".join([found[place] for place in places])


def cut_plain(data: bytes | memoryview, count: int) -> tuple[bytes, ...] | None:
    """Return the values of `count` records that fill `data`, if all timestamp deltas are zeros."""
    known = _cutters.get((len(data), count)) or _meet(data, 0, len(data), count)
    # Time goes on: if any delta is not zero, the last one is not.
    if known is None or data[known[5]]:
        return None
    fields = known[0].unpack_from(data)
    return fields[1::2] if fields[0::2] == known[1] else None


def timestamps_with(base_timestamp: int, deltas: bytes) -> Iterable[int]:
    """The timestamps of records, from what `cut_whole` says of their deltas."""
    if not deltas:
        return repeat(base_timestamp)
    stamps = {raw: int64(base_timestamp + ((raw >> 1) ^ -(raw & 1))) for raw in set(deltas)}
    return list(map(stamps.__getitem__, deltas))


def around(value_size: int, start: int, count: int) -> tuple[bytes, ...]:
    """What stands around the values of records start..start+count-1, all with delta 0."""
    heads = template(-1, value_size, start + count)
    # Each head begins with the last byte of the record before.
    return (heads[start][1:], *heads[start + 1 : start + count], b"\0")


def first_value_size(data: bytes | memoryview, position: int) -> int:
    """The size of the first record's value; -1 unless it is as plain as a record can be."""
    try:
        _, body = read_varint(data, position, MAX_VARINT_SIZE)
        # attributes, timestamp delta, offset delta, key size
        if data[body : body + 4] != b"\0\0\0\1":
            return -1
        return read_varint(data, body + 4, MAX_VARINT_SIZE)[0]
    except (IndexError, Malformed):
        return -1


def plain_size(value_size: int, count: int) -> int:
    """The size of `count` keyless records with values of `value_size` and small time deltas."""
    size = 0
    for start, stop, offset_size in offset_sizes(count):
        # attributes, timestamp delta, offset delta, key size, value size, value, headers
        length = 4 + offset_size + varint_size(value_size) + value_size
        size += (stop - start) * (varint_size(length) + length)
    return size


def _meet(data: bytes | memoryview, position: int, end: int, count: int) -> _Cutter | None:
    """Prepare for such batches, if this is the second and looks like one."""
    key = end - position, count
    if not COUNT_MIN <= count <= CUT_COUNT_MAX:
        return None
    if key not in _seen:
        if len(_seen) >= SEEN_MAX:
            _seen.clear()
        _seen.add(key)
        return None
    value_size = first_value_size(data, position)
    if value_size < 0 or plain_size(value_size, count) != key[0]:
        return None
    expected = around(value_size, 0, count)
    form = "".join([f"{len(head)}s{value_size}s" for head in expected[:-1]])
    if len(_cutters) >= CUTTERS_MAX:
        _cutters.clear()
    places = _delta_places(expected, count)
    last_record = len(expected[-2]) + value_size
    known = (
        Struct(form + "1s"),
        expected,
        *_as_bits(expected, places),
        places,
        key[0] - last_record + _length_size(expected[-2][1:]) + 1,
    )
    _cutters[key] = known
    return known


def _delta_places(expected: tuple[bytes, ...], count: int) -> list[slice]:
    """Where the timestamp deltas are, in the joined bytes around the values."""
    places = []
    begin = -1  # the first head lacks the last byte of a record before it
    for start, stop, _ in offset_sizes(count):
        head_size = len(expected[start]) + (start == 0)
        # Before the delta: the byte of the record before, the length, the attributes.
        first = begin + 1 + _length_size(expected[start][start > 0 :]) + 1
        begin += (stop - start) * head_size
        places.append(slice(first, begin, head_size))
    return places


def _length_size(head: bytes) -> int:
    return read_varint(head, 0, MAX_VARINT_SIZE)[1]


def _as_bits(expected: tuple[bytes, ...], places: list[slice]) -> tuple[int, int]:
    """The bytes as one number, and a mask of all its bits but those of timestamp deltas."""
    joined = b"".join(expected)
    fixed = bytearray(b"\xff" * len(joined))
    for place in places:
        fixed[place] = b"\x80" * len(fixed[place])
    return int.from_bytes(joined, "little"), int.from_bytes(fixed, "little")
