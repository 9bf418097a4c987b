"""Records that a test puts into a log, from the values that it gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from embedlog.testing.topics.formats.basic import BYTES, Format
from embedlog.testing.topics.matching import rec
from embedlog.testing.topics.record import Formats, LogRecord
from embedlog.testing.topics.times import milliseconds_of

Headers = Mapping[str, Any] | Iterable[tuple[str, Any]]
"""Names with values of bytes, str or None."""


@dataclass(slots=True)
class Seed:
    """A record to write, with bytes."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int | None = None
    """Milliseconds; None stands for the time of the append."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    """None: the key decides; without a key, the partitions take turns."""
    at_offset: int | None = None
    """The offset that the record must get; None: the next offset of the log."""


def seed(
    value: Any,
    key: Any,
    formats: Formats,
    *,
    timestamp: int | datetime | None = None,
    headers: Headers | None = None,
    partition: int | None = None,
    at_offset: int | None = None,
) -> Seed:
    """Return a record to write from a test's values."""
    return Seed(
        _bytes_of(value, formats.value, "value"),
        _bytes_of(key, formats.key, "key"),
        None if timestamp is None else milliseconds_of(timestamp),
        headers_of(headers),
        partition,
        at_offset,
    )


def seed_of(given: Any, formats: Formats) -> Seed:
    """Return a record to write from an item of `put_many`: a value, a `rec` or a `LogRecord`.

    The offset of a `rec` is kept, the offset of a `LogRecord` is not.
    """
    if isinstance(given, LogRecord):
        return Seed(given.value, given.key, given.timestamp, given.headers)
    if not isinstance(given, rec):
        return seed(given, None, formats)
    fields = given.given
    if "value" not in fields:
        raise TypeError(f"{given!r} has no value to write; None is a tombstone")
    return seed(
        fields["value"],
        fields.get("key"),
        formats,
        timestamp=fields.get("timestamp"),
        headers=fields.get("headers"),
        partition=fields.get("partition"),
        at_offset=fields.get("offset"),
    )


def _bytes_of(given: Any, chosen: Format | None, what: str) -> bytes | None:
    """Return the bytes of a key or value. Bytes stay as they are, in spite of a format."""
    if given is None or isinstance(given, bytes):
        return given
    if isinstance(given, bytearray | memoryview):
        return bytes(given)
    if chosen is not None and chosen is not BYTES:
        return chosen.encode(given)
    if isinstance(given, str):
        return given.encode()
    raise TypeError(
        f"{what} {given!r} is {type(given).__name__}, not bytes, str or None: "
        f'name a format, such as kafka.topic(..., {what}="json")'
    )


def headers_of(given: Headers | None) -> tuple[tuple[str, bytes | None], ...]:
    """Return headers as pairs of name and bytes."""
    if given is None:
        return ()
    pairs: Sequence[Any] = list(given.items() if isinstance(given, Mapping) else given)
    made = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f"headers {given!r}: expected pairs of a name and bytes, str or None")
        made.append((pair[0], _bytes_of(pair[1], None, f"header {pair[0]!r}:")))
    return tuple(made)
