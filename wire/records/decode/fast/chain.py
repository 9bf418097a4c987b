"""Records of varying length, many at a time: follow the chain of lengths, then decode by column.

Nothing but the record before it tells where a record begins, so the chain is a loop in Python, of
one table look-up per record (70 ns). With the boundaries known, each field of all records is
decoded at once by numpy (another 70 ns), whatever its size. Like `runs.py` this accepts
only what the plain loop would read in the same way, and leaves the rest to it.
"""

from __future__ import annotations

from itertools import repeat
from struct import Struct
from struct import error as StructError

from wire.records.decode.loop import RECORD_SIZE_MIN
from wire.records.varint import MAX_VARINT_SIZE, MAX_VARLONG_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from wire.records.decode.loop import Fields

    Int64s = NDArray[np.int64]

# Each of some 40 numpy calls costs about 1 us: below this the plain loop is as fast.
COUNT_MIN = 100

_peek = Struct("<H").unpack_from


class FieldArrays:
    """The fields of all records of a batch, each an int64 array; positions count in the payload.

    Sizes are negative for null. No record has headers, unless the arrays come from the plain loop.
    """

    __slots__ = (
        "deltas",
        "key_positions",
        "key_sizes",
        "offset_deltas",
        "value_positions",
        "value_sizes",
    )

    deltas: Int64s
    offset_deltas: Int64s
    key_positions: Int64s
    key_sizes: Int64s
    value_positions: Int64s
    value_sizes: Int64s


def find_fields(data: bytes | memoryview, count: int) -> FieldArrays | None:
    """Return the fields of `count` records that fill `data`, or None: the plain loop must decide.

    None is the answer also if a record has headers, or a length of more than two bytes.
    """
    if count < COUNT_MIN or count * RECORD_SIZE_MIN > len(data):
        return None
    ends = _chain(data, count)
    if ends is None:
        return None
    import numpy as np

    octets = np.frombuffer(data, np.uint8)
    ends_array = np.fromiter(ends, np.int64, count)
    starts = np.empty(count, np.int64)
    starts[0] = 0
    starts[1:] = ends_array[:-1]
    fields = FieldArrays()
    try:
        # length of one or two bytes, attributes
        position = starts + (octets[starts] >> 7) + 2
        fields.deltas, position = _varints(np, octets, position, MAX_VARLONG_SIZE)
        fields.offset_deltas, position = _varints(np, octets, position, MAX_VARINT_SIZE)
        fields.key_sizes, position = _varints(np, octets, position, MAX_VARINT_SIZE)
        fields.key_positions = position
        position = position + np.maximum(fields.key_sizes, 0)
        fields.value_sizes, position = _varints(np, octets, position, MAX_VARINT_SIZE)
        fields.value_positions = position
        position = position + np.maximum(fields.value_sizes, 0)
        if octets[position].any():  # headers
            return None
    except (IndexError, ValueError):
        return None
    return fields if np.array_equal(position + 1, ends_array) else None


def fields_of(parsed: list[Fields]) -> FieldArrays:
    """Return what the plain loop found, as arrays."""
    import numpy as np

    columns = np.array([fields[:6] for fields in parsed], np.int64).T
    fields = FieldArrays()
    (
        fields.deltas,
        fields.offset_deltas,
        fields.key_positions,
        fields.key_sizes,
        fields.value_positions,
        fields.value_sizes,
    ) = columns
    return fields


def cut(data: bytes | memoryview, positions: Int64s, sizes: Int64s) -> list[bytes | None]:
    """Return copies of data[position : position + size]; None where a size is negative."""
    ends = positions + sizes
    if type(data) is bytes:
        pieces: list[bytes | None] = [
            data[start:end] for start, end in zip(positions.tolist(), ends.tolist(), strict=True)
        ]
    else:
        pieces = [
            bytes(data[start:end])
            for start, end in zip(positions.tolist(), ends.tolist(), strict=True)
        ]
    if int(sizes.min()) < 0:
        for index in (sizes < 0).nonzero()[0].tolist():
            pieces[index] = None
    return pieces


def _make_record_sizes() -> list[int]:
    # An odd number is a negative length, and one below 6 is no record's.
    begin = 2 * RECORD_SIZE_MIN - 2
    one_byte, two_bytes = [0] * 128, [0] * (1 << 14)
    one_byte[begin::2] = range(RECORD_SIZE_MIN, 65)
    two_bytes[begin::2] = range(RECORD_SIZE_MIN + 1, (1 << 13) + 2)
    sizes: list[int] = []
    for low in range(0, 1 << 14, 128):
        sizes += one_byte + two_bytes[low : low + 128]
    return sizes + (one_byte + [0] * 128) * 128


# A record's size, its length field included, by its first two bytes as a little-endian number; 0
# when they do not tell, or tell of nothing a record can be: then the chain stops moving.
_RECORD_SIZES = _make_record_sizes()


def _chain(data: bytes | memoryview, count: int) -> list[int] | None:
    """Return where each of `count` records ends, if the last one ends with the data."""
    sizes = _RECORD_SIZES
    end = 0
    try:
        ends = [end := end + sizes[_peek(data, end)[0]] for _ in repeat(None, count)]
    except StructError:  # beyond the end
        return None
    return ends if end == len(data) else None


def _varints(
    np: Any, octets: NDArray[np.uint8], position: Int64s, size_max: int
) -> tuple[Int64s, Int64s]:
    """Return the zig-zag varints at `position`, and the positions after them.

    Raises:
        IndexError, ValueError: one of them leaves the data, or is longer than `size_max` bytes.
    """
    octet = octets[position]
    number = octet.astype(np.int64)
    if int(octet.max()) > 0x7F:
        number &= 0x7F
        more = octet > 0x7F
        for shift in range(7, 7 * size_max, 7):
            position = position + more
            octet = octets[position]
            number |= np.where(more, (octet & 0x7F).astype(np.int64) << shift, 0)
            more = more & (octet > 0x7F)
            if not more.any():
                break
        else:
            raise ValueError
        if size_max == MAX_VARINT_SIZE:
            number &= 0xFFFF_FFFF
    return (number.view(np.uint64) >> np.uint64(1)).view(np.int64) ^ -(number & 1), position + 1
