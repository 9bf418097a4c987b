"""Ready-made functions for key.serializer, value.serializer and their opposites.

    producer = cluster.producer(value_serializer=text_serializer)

A serializer takes a value and returns bytes or None; a deserializer takes bytes or None.
"""

from __future__ import annotations

from struct import Struct

_INT64 = Struct(">q")


def text_serializer(value: str | None) -> bytes | None:
    """UTF-8 of a text; None stays None."""
    return None if value is None else value.encode()


def text_deserializer(data: bytes | None) -> str | None:
    """The text behind UTF-8 bytes; None stays None."""
    return None if data is None else data.decode()


def integer_serializer(value: int | None) -> bytes | None:
    """8 bytes, big-endian, as Kafka's LongSerializer."""
    return None if value is None else _INT64.pack(value)


def integer_deserializer(data: bytes | None) -> int | None:
    """The integer behind 8 bytes, big-endian."""
    return None if data is None else int(_INT64.unpack(data)[0])


def json_serializer(value: object) -> bytes:
    """UTF-8 of the JSON text of any value that has one, None included."""
    from json import dumps

    return dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def json_deserializer(data: bytes | None) -> object:
    """The value behind JSON; None (a tombstone) stays None."""
    from json import loads

    return None if data is None else loads(data)
