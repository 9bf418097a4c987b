"""Confluent's header of a value; `registry` has the schemas of its ids.

byte  0      0, the magic byte
bytes 1..4   schema id, big-endian
Protobuf     then the indexes of the message in its file: their count and the indexes, as zig-zag
             varints; a lone 0 means the first message
"""

from __future__ import annotations

from typing import Any

from embedlog.spark.pipeline.errors import DecodeError, ProjectError
from embedlog.spark.pipeline.project import Decode


def split(value: bytes) -> tuple[int, bytes]:
    """Return the schema id and the rest of the value. Raises DecodeError if there is no header."""
    if len(value) < 5 or value[0] != 0:
        raise DecodeError(f"no Confluent header: begins with {bytes(value[:5])!r}")
    return int.from_bytes(value[1:5], "big"), value[5:]


def split_message_indexes(rest: bytes) -> tuple[list[int], bytes]:
    """Return Protobuf's message indexes and the message after them.

    Raises:
        DecodeError: the indexes are cut off, or their count is negative or exceeds the bytes.
    """
    count, position = _zigzag(rest, 0)
    if count == 0:
        return [0], rest[position:]
    if not 0 < count <= len(rest):
        raise DecodeError(f"{count} message indexes in {len(rest)} bytes")
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
    raise DecodeError(f"the message indexes are cut off at byte {position}")


def row_of(decode: Decode, schema: Any) -> Any:
    """Return the type of the rows in values of `schema`; for Debezium's envelope, of `after`."""
    if decode.envelope != "debezium":
        return schema
    after = next((each for each in schema.fields if each.name == "after"), None)
    if after is None or not hasattr(after.type, "fields"):
        raise ProjectError(f"{decode.schema}: no Debezium envelope: `after` is no record")
    return after.type
