"""Reads records of varying length by following the chain of their lengths.

The length of each record tells where the next one begins, so a Python loop with one table look-up
per record (70 ns) finds all begins. Then `fields` reads the fields of all records at once.
"""

from __future__ import annotations

from itertools import repeat
from struct import Struct
from struct import error as StructError

from wire.records.decode.loop import RECORD_SIZE_MIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.records.decode.fields import FieldArrays

# For fewer records the plain loop is as fast, because each of some 40 numpy calls costs about 1 us.
COUNT_MIN = 100

_peek = Struct("<H").unpack_from


def find_fields(data: bytes | memoryview, count: int) -> FieldArrays | None:
    """Return the fields of `count` records that fill `data`; None if the plain loop must read them.

    That is so if a record may be malformed, has headers, or has a length field above two bytes.
    """
    if count < COUNT_MIN or count * RECORD_SIZE_MIN > len(data):
        return None
    found = _chain(data, count)
    if found is None:
        return None
    # Imported here, so that a batch of a few records does not pay for the import of numpy.
    import numpy as np

    from wire.records.decode.fields import Unusual, any_of, read_fields

    octets = np.frombuffer(data, np.uint8)
    ends = np.fromiter(found, np.int64, count)
    firsts = np.empty(count, np.int64)
    firsts[0] = 0
    firsts[1:] = ends[:-1]
    firsts += (octets[firsts] >> 7) + 1  # skip the length, of one or two bytes
    try:
        fields = read_fields(octets, firsts)
    except Unusual:
        return None
    if any_of(fields.header_counts) or any_of(fields.headers_at != ends):
        return None
    return fields


def _make_record_sizes() -> list[int]:
    # As a zig-zag number a length is even: the odd ones stand for negatives. No length is below 6.
    begin = 2 * RECORD_SIZE_MIN - 2
    one_byte, two_bytes = [0] * 128, [0] * (1 << 14)
    one_byte[begin::2] = range(RECORD_SIZE_MIN, 65)
    two_bytes[begin::2] = range(RECORD_SIZE_MIN + 1, (1 << 13) + 2)
    sizes: list[int] = []
    for low in range(0, 1 << 14, 128):
        sizes += one_byte + two_bytes[low : low + 128]
    return sizes + (one_byte + [0] * 128) * 128


# The first two bytes of a record, as a little-endian number -> the record's size, its length field
# included. The size is 0 if the length is invalid or has more than two bytes: the chain then stays
# where it is.
_RECORD_SIZES = _make_record_sizes()


def _chain(data: bytes | memoryview, count: int) -> list[int] | None:
    """Return the end of each of `count` records; None if the last one does not end the data."""
    sizes = _RECORD_SIZES
    end = 0
    try:
        ends = [end := end + sizes[_peek(data, end)[0]] for _ in repeat(None, count)]
    except StructError:  # a record ends beyond the data
        return None
    return ends if end == len(data) else None
