"""Comparing records with an expected list: in order, or in any order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from embedlog.testing.topics.matching import rec
from embedlog.testing.topics.record import LogRecord, short

_SHOWN_MAX = 20

Expected = rec | LogRecord


class Comparable(ABC):
    """Records that `==` compares with a list of `rec`, in the order of partitions and offsets."""

    _compared: list[LogRecord] | None = None

    @property
    @abstractmethod
    def title(self) -> str:
        """The name of the records in messages."""

    @abstractmethod
    def _records(self) -> list[LogRecord]:
        """Return the records."""

    def compared(self) -> list[LogRecord]:
        """Return the records of the last comparison, for an explanation of it."""
        return self._records() if self._compared is None else self._compared

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        expected = expected_list(other)
        found = self._compared = self._records()
        return len(found) == len(expected) and all(map(_matches, expected, found))

    __hash__ = None  # type: ignore[assignment]

    def in_any_order(self) -> InAnyOrder:
        """Return the records for a comparison in which the order does not count.

        >>> with Kafka(topics={"t": 2}) as kafka:
        ...     kafka.topic("t").put_many([b"a", b"b"])
        ...     kafka.topic("t").in_any_order() == [rec(value=b"b"), rec(value=b"a")]
        [<t[0]@0: key=None, value=b'a'>, <t[1]@0: key=None, value=b'b'>]
        True
        """
        return InAnyOrder(self)

    def __repr__(self) -> str:
        return listed(self.title, self._records())


class InAnyOrder:
    """Records without an order: see `Topic.in_any_order`."""

    def __init__(self, records: Comparable) -> None:
        self.records = records
        self._compared: list[LogRecord] | None = None

    def compared(self) -> list[LogRecord]:
        """Return the records of the last comparison, for an explanation of it."""
        return self.records.compared() if self._compared is None else self._compared

    def __eq__(self, other: object) -> bool:
        expected = expected_list(other)
        found = self._compared = list(self.records._records())
        pairs = paired(expected, found)
        return len(found) == len(expected) and len(pairs) == len(expected)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.records!r}, in any order"


def expected_list(other: object) -> Sequence[Expected]:
    """Return the right side of a comparison.

    Raises:
        TypeError: it is no list, or holds something other than `rec` and `LogRecord`.
    """
    if not isinstance(other, list | tuple):
        raise TypeError(
            f"records are compared with a list, such as [rec(value=...)], not with {short(other)}"
        )
    for place, each in enumerate(other):
        if not isinstance(each, rec | LogRecord):
            raise TypeError(
                f"item {place} is {short(each)}: records are compared with rec(...), "
                f"such as rec(value={short(each)})"
            )
    return other


def _matches(expected: Expected, record: LogRecord) -> bool:
    return expected.matches(record) if isinstance(expected, rec) else expected == record


def paired(expected: Sequence[Expected], found: Sequence[LogRecord]) -> dict[int, int]:
    """Return record -> expectation by their places, as many pairs as possible.

    An expectation may match several records, so an earlier pair gives way to a better one.
    """
    fits = [[n for n, each in enumerate(found) if _matches(one, each)] for one in expected]
    pairs: dict[int, int] = {}

    def take(place: int, tried: set[int]) -> bool:
        for number in fits[place]:
            if number in tried:
                continue
            tried.add(number)
            if number not in pairs or take(pairs[number], tried):
                pairs[number] = place
                return True
        return False

    for place in range(len(expected)):
        take(place, set())
    return pairs


def aligned(
    expected: Sequence[Expected], found: Sequence[LogRecord]
) -> list[tuple[Expected | None, LogRecord | None]]:
    """Return both lists side by side, with the most matches that the order allows.

    An entry beside None has no counterpart; the two of a pair may differ.
    """
    rows, columns = len(expected), len(found)
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    fits = [[_matches(one, each) for each in found] for one in expected]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            both = best[row + 1][column + 1] + 1 if fits[row][column] else 0
            best[row][column] = max(both, best[row + 1][column], best[row][column + 1])
    pairs: list[tuple[Expected | None, LogRecord | None]] = []
    left: list[Expected] = []
    extra: list[LogRecord] = []

    def flush() -> None:
        for place in range(max(len(left), len(extra))):
            pairs.append(
                (
                    left[place] if place < len(left) else None,
                    extra[place] if place < len(extra) else None,
                )
            )
        left.clear()
        extra.clear()

    row = column = 0
    while row < rows and column < columns:
        if fits[row][column] and best[row][column] == best[row + 1][column + 1] + 1:
            flush()
            pairs.append((expected[row], found[column]))
            row, column = row + 1, column + 1
        elif best[row + 1][column] >= best[row][column + 1]:
            left.append(expected[row])
            row += 1
        else:
            extra.append(found[column])
            column += 1
    left += expected[row:]
    extra += found[column:]
    flush()
    return pairs


def listed(title: str, records: Sequence[LogRecord]) -> str:
    """Return a title and the records, one a line; the middle of a long list is left out."""
    if not records:
        return f"{title}: no records"
    return "\n  ".join([f"{title}: {counted(len(records))}", *lines_of(records)])


def counted(count: int) -> str:
    """Return a number of records as text."""
    return "1 record" if count == 1 else f"{count} records"


def lines_of(items: Sequence[Any]) -> list[str]:
    """Return the `repr` of each item; the middle of a long list is left out."""
    if len(items) <= _SHOWN_MAX:
        return [repr(each) for each in items]
    half = _SHOWN_MAX // 2
    left_out = f"... {len(items) - 2 * half} more ..."
    return [*map(repr, items[:half]), left_out, *map(repr, items[-half:])]
