"""Decoding the fields of many records, once the positions of the records are known.

Numpy decodes each field of all records at once, in 70 ns a record, whatever the size of the field.
Like the whole package, this accepts only records that the plain loop would read in the same way.
"""

from __future__ import annotations

import numpy as np

from wire.records.varint import MAX_VARINT_SIZE, MAX_VARLONG_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from wire.records.decode.loop import Fields

    Int64s = NDArray[np.int64]
    Octets = NDArray[np.uint8]

_GOES_ON = 0x80
_OF_ONE_BYTE = np.array([(octet >> 1) ^ -(octet & 1) for octet in range(_GOES_ON)], np.int64)
# These ufuncs are called directly, because the methods of arrays call them through a Python
# function.
any_of = np.logical_or.reduce
_largest = np.maximum.reduce


class Unusual(Exception):
    """The plain loop must read these records, and find any error in them."""


class FieldArrays:
    """The fields of many records: each field is an int64 array with one item for each record.

    Positions point into the payload. The size of a null key or value is negative. `header_counts`
    and `headers_at` have the number of each record's headers, and the position of the first.
    """

    __slots__ = (
        "deltas",
        "header_counts",
        "headers_at",
        "key_positions",
        "key_sizes",
        "offset_deltas",
        "value_positions",
        "value_sizes",
    )

    def __init__(self, columns: tuple[Int64s, ...]) -> None:
        """`columns` are in the order of `loop.Fields`."""
        (
            self.deltas,
            self.offset_deltas,
            self.key_positions,
            self.key_sizes,
            self.value_positions,
            self.value_sizes,
            self.header_counts,
            self.headers_at,
        ) = columns


def fields_of(parsed: list[Fields]) -> FieldArrays:
    """Convert the result of the plain loop to arrays."""
    return FieldArrays(tuple(np.array(parsed, np.int64).T))


def read_fields(octets: Octets, firsts: Int64s) -> FieldArrays:
    """Return the fields of the records whose attributes are at `firsts`.

    Reading past the end of the payload gives the last byte again. So the caller must compare the
    end of each record, headers included, with the expected end.

    Raises:
        Unusual: a varint is too long.
    """
    deltas, at = varints(octets, firsts + 1, MAX_VARLONG_SIZE)
    offset_deltas, at = varints(octets, at)
    key_sizes, key_at = varints(octets, at)
    value_sizes, value_at = varints(octets, key_at + np.maximum(key_sizes, 0))
    header_counts, headers_at = varints(octets, value_at + np.maximum(value_sizes, 0))
    return FieldArrays(
        (
            deltas,
            offset_deltas,
            key_at,
            key_sizes,
            value_at,
            value_sizes,
            header_counts,
            headers_at,
        )
    )


def varints(
    octets: Octets, positions: Int64s, size_max: int = MAX_VARINT_SIZE
) -> tuple[Int64s, Int64s]:
    """Return the numbers of the zig-zag varints at `positions`, and the positions behind them.

    Raises:
        Unusual: a varint is longer than `size_max` bytes.
    """
    first = octets.take(positions, mode="clip")
    positions = positions + 1
    if _largest(first) < _GOES_ON:
        # Usually all varints have one byte: a look-up takes half the time of the loop below.
        return _OF_ONE_BYTE.take(first), positions
    last = first.astype(np.int64)
    numbers: Any = last & 0x7F
    goes_on = last >= _GOES_ON
    shift = 7
    while any_of(goes_on):
        if shift == 7 * size_max:
            raise Unusual
        # For a varint that has ended, add 0 to its number, and keep its position.
        last = np.where(goes_on, octets.take(positions, mode="clip"), 0).astype(np.int64)
        numbers |= (last & 0x7F) << shift
        positions = positions + goes_on
        goes_on = last >= _GOES_ON
        shift += 7
    if size_max == MAX_VARINT_SIZE:
        numbers &= 0xFFFF_FFFF  # like the plain loop: the last byte may carry more bits
    halves = (numbers.view(np.uint64) >> np.uint64(1)).view(np.int64)
    return halves ^ -(numbers & 1), positions


def cut(data: bytes | memoryview, positions: Int64s, sizes: Int64s) -> list[bytes | None]:
    """Return a copy of data[position : position + size] for each position; None for null."""
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
