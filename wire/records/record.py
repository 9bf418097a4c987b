"""One record as its readers see it.

    Record = (offset, timestamp, key, value, headers)

`offset` numbers the record in its partition, `timestamp` is ms since the epoch (-1: none), `key`
and `value` are bytes or None (a null value is a tombstone), `headers` is a sequence of
(str, bytes | None) pairs in the order they were sent; keys may repeat.
"""

from __future__ import annotations

from _operator import itemgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Buffer = bytes | bytearray | memoryview
    Header = tuple[str, bytes | None]
    Headers = Sequence[Header]
    RecordTuple = tuple[int, int, bytes | None, bytes | None, Headers]

    _RecordBase = tuple[int, int, bytes | None, bytes | None, Headers]
else:
    _RecordBase = tuple


class Record(_RecordBase):
    """A record; a tuple, so that a million of them can be made by `map(Record, ...)`.

    >>> record = Record((7, 1700000000000, None, b"v", ()))
    >>> record.offset, record.value
    (7, b'v')
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def offset(self) -> int:
            """The number of the record in its partition."""
            ...

        @property
        def timestamp(self) -> int:
            """Milliseconds since the epoch, -1 when the record has none."""
            ...

        @property
        def key(self) -> bytes | None:
            """The key, None when null."""
            ...

        @property
        def value(self) -> bytes | None:
            """The value, None for a tombstone."""
            ...

        @property
        def headers(self) -> Headers:
            """The (name, value) pairs, in order."""
            ...

    else:
        offset = property(itemgetter(0))
        timestamp = property(itemgetter(1))
        key = property(itemgetter(2))
        value = property(itemgetter(3))
        headers = property(itemgetter(4))

    def __repr__(self) -> str:
        offset, timestamp, key, value, headers = self
        return f"Record({offset=}, {timestamp=}, {key=}, {value=}, {headers=})"
