"""Records as Python values, field by field: the form from which tuples are made last."""

from __future__ import annotations

from itertools import islice, repeat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeVar

    from wire.records.record import Headers, RecordTuple

    T = TypeVar("T")


class Rows:
    """The fields of consecutive records. `offsets` has one for each record; any other field is a
    sequence as long, or an endless `repeat` of what all records have in common.

    Iterating makes the tuples, (offset, timestamp, key, value, headers), each time anew.

    >>> rows = Rows(range(5, 8), repeat(1700000000000), repeat(None), [b"a", b"b", b"c"])
    >>> list(rows.part(1, 2))
    [(6, 1700000000000, None, b'b', ())]
    """

    __slots__ = ("headers", "keys", "offsets", "timestamps", "values")

    def __init__(
        self,
        offsets: Sequence[int],
        timestamps: Iterable[int],
        keys: Iterable[bytes | None],
        values: Iterable[bytes | None],
        headers: Iterable[Headers] = repeat(()),  # noqa: B008  endless, and without state
    ) -> None:
        self.offsets = offsets
        self.timestamps = timestamps
        self.keys = keys
        self.values = values
        self.headers = headers

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[RecordTuple]:
        # The offsets come first: zip ends with them.
        return zip(  # noqa: B905
            self.offsets, self.timestamps, self.keys, self.values, self.headers
        )

    def value_list(self) -> list[bytes | None]:
        """The values of all records, in a new list."""
        return [value for _, value in zip(self.offsets, self.values)]  # noqa: B905

    def part(self, start: int, stop: int) -> Rows:
        """Records start..stop-1, by number, or those of them that there are."""
        return Rows(
            self.offsets[start:stop],
            _part(self.timestamps, start, stop),
            _part(self.keys, start, stop),
            _part(self.values, start, stop),
            _part(self.headers, start, stop),
        )


def rows_of(records: Sequence[RecordTuple]) -> Rows:
    """The fields of records that are tuples already."""
    return Rows(*zip(*records, strict=True)) if records else NO_ROWS


def joined(parts: list[Rows]) -> Rows:
    """The records of all parts, in their order.

    >>> first = Rows(range(5, 7), repeat(1), repeat(None), [b"a", b"b"])
    >>> later = Rows(range(9, 10), repeat(2), [b"k"], [b"c"])
    >>> list(joined([first, later]))[1:]
    [(6, 1, None, b'b', ()), (9, 2, b'k', b'c', ())]
    """
    if len(parts) == 1:
        return parts[0]
    offsets: list[int] = []
    for part in parts:
        offsets += part.offsets
    sizes = [len(part.offsets) for part in parts]
    return Rows(
        offsets,
        _joined([part.timestamps for part in parts], sizes),
        _joined([part.keys for part in parts], sizes),
        _joined([part.values for part in parts], sizes),
        _joined([part.headers for part in parts], sizes),
    )


def _joined(fields: list[Iterable[T]], sizes: list[int]) -> Iterable[T]:
    if set(map(type, fields)) == {repeat}:
        common: list[T] = list(map(next, fields))  # type: ignore[arg-type]
        if common.count(common[0]) == len(common):
            return fields[0]
    found: list[T] = []
    for field, size in zip(fields, sizes, strict=True):
        found += islice(field, size) if type(field) is repeat else field
    return found


def _part(field: Iterable[T], start: int, stop: int) -> Iterable[T]:
    if type(field) is repeat:
        return field
    sequence: Sequence[T] = field  # type: ignore[assignment]
    return sequence[start:stop]


NO_ROWS = Rows((), (), (), (), ())
