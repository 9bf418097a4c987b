"""Unsigned varints, which encode compact lengths, counts and tags.

    unsigned varint   7 bits per byte, least significant group first, at most 5 bytes

`wire.records.varint` has the signed varints of records. Fixed-size types are `struct` formats
(`wire.layout.FORMATS`); strings, bytes and arrays are a length and the content.
"""

from __future__ import annotations

import struct

from wire.errors import MalformedMessage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.schema import Payload

STRING_SIZE_MAX = 32767
"""Largest size of a string, in bytes: the maximum of an int16 length, also for compact strings."""

UVARINT_SIZE_MAX = 5

ONE_BYTE = tuple([bytes((value,)) for value in range(128)])
"""ONE_BYTE[n] is the unsigned varint of `n`, for 0 to 127."""

_two_bytes = struct.Struct("2B").pack
_three_bytes = struct.Struct("3B").pack


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint.

    >>> uvarint(300).hex()
    'ac02'
    """
    if value < 128:
        return ONE_BYTE[value]
    if value < 1 << 14:
        return _two_bytes(value & 127 | 128, value >> 7)
    if value < 1 << 21:
        return _three_bytes(value & 127 | 128, value >> 7 & 127 | 128, value >> 14)
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def read_uvarint(buffer: Payload, position: int) -> tuple[int, int]:
    """Return (value, position after it).

    Raises:
        MalformedMessage: the number does not end within 5 bytes, or not within the buffer.
    """
    try:
        first = buffer[position]
        if first < 128:
            return first, position + 1
        return continue_uvarint(buffer, position + 1, first)
    except IndexError:
        raise MalformedMessage(f"varint at {position} is cut off") from None


def continue_uvarint(buffer: Payload, position: int, first: int) -> tuple[int, int]:
    """Read the rest of an unsigned varint after its first byte, which is 128 or more.

    Raises:
        MalformedMessage: the number does not end within 5 bytes.
        IndexError: the buffer ends first.
    """
    value = first & 127
    for shift in (7, 14, 21, 28):
        group = buffer[position]
        position += 1
        if group < 128:
            return value | group << shift, position
        value |= (group & 127) << shift
    raise MalformedMessage(f"varint before {position} is longer than {UVARINT_SIZE_MAX} bytes")
