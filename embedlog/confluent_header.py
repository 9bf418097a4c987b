"""The header that Confluent's serializers write before a value of Avro, JSON or Protobuf.

byte  0      0, the magic byte
bytes 1..4   schema id, big-endian
Protobuf     then the indexes of the message in its file: their count and the indexes, as zig-zag
             varints; a lone 0 means the first message
"""

from __future__ import annotations

HEADER_SIZE = 5
"""Bytes of the magic byte and the schema id."""

FIRST_MESSAGE = b"\0"
"""The indexes of the first message of a Protobuf file."""


def header_of(schema_id: int) -> bytes:
    """Return the magic byte and a schema id."""
    return b"\0" + schema_id.to_bytes(HEADER_SIZE - 1, "big")


def split(value: bytes) -> tuple[int, bytes]:
    """Return the schema id and the rest of the value. Raises ValueError if there is no header.

    >>> split(header_of(7) + b"rest")
    (7, b'rest')
    """
    if len(value) < HEADER_SIZE or value[0] != 0:
        raise ValueError(f"no Confluent header: begins with {bytes(value[:HEADER_SIZE])!r}")
    return int.from_bytes(value[1:HEADER_SIZE], "big"), value[HEADER_SIZE:]


def split_message_indexes(rest: bytes) -> tuple[list[int], bytes]:
    """Return Protobuf's message indexes and the message after them.

    Raises:
        ValueError: the indexes are cut off, or their count is negative.
    """
    count, position = _zigzag(rest, 0)
    if count == 0:
        return [0], rest[position:]
    if count < 0:
        raise ValueError(f"{count} message indexes")
    indexes = []
    for _ in range(count):
        index, position = _zigzag(rest, position)
        indexes.append(index)
    return indexes, rest[position:]


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while position < len(data) and shift < 35:
        byte = data[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
    raise ValueError(f"the message indexes are cut off at byte {position}")
