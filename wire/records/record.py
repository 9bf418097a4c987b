"""One record, as a tuple.

    Record = (offset, timestamp, key, value, headers)

`offset` numbers the record in its partition, `timestamp` is ms since the epoch (-1: none), `key`
and `value` are bytes or None (a null value is a tombstone), `headers` is a sequence of
(str, bytes | None) pairs in the order of the producer; keys may repeat.
"""

from __future__ import annotations

from _operator import itemgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    Buffer = bytes | bytearray | memoryview
    Header = tuple[str, bytes | None]
    Headers = Sequence[Header]
    RecordTuple = tuple[int, int, bytes | None, bytes | None, Headers]

    _RecordBase = tuple[int, int, bytes | None, bytes | None, Headers]
else:
    _RecordBase = tuple


def item(index: int) -> Any:
    """Return a property for the tuple's item at `index`."""
    return property(itemgetter(index))


class Record(_RecordBase):
    """One record. It is a tuple, so that `map(Record, ...)` makes a million of them quickly.

    >>> record = Record((7, 1700000000000, None, b"v", ()))
    >>> record.offset, record.value
    (7, b'v')
    """

    __slots__ = ()

    offset: Final[int] = item(0)
    """The number of the record in its partition."""
    timestamp: Final[int] = item(1)
    """Milliseconds since the epoch, -1 for none."""
    key: Final[bytes | None] = item(2)
    """The key, None for null."""
    value: Final[bytes | None] = item(3)
    """The value, None for a tombstone."""
    headers: Final[Headers] = item(4)
    """The (name, value) pairs, in order."""

    def __repr__(self) -> str:
        offset, timestamp, key, value, headers = self
        return f"Record({offset=}, {timestamp=}, {key=}, {value=}, {headers=})"
