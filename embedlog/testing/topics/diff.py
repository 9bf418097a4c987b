"""`explain`: the difference between a topic's records and the expected list, for pytest."""

from __future__ import annotations

from collections.abc import Sequence

from embedlog.testing.topics.comparing import (
    Comparable,
    Expected,
    InAnyOrder,
    aligned,
    counted,
    expected_list,
    paired,
)
from embedlog.testing.topics.matching import rec
from embedlog.testing.topics.record import LogRecord

_ALIGNED_MAX = 500
"""Longer lists are compared by place: an alignment takes the square of the length."""
_LINES_MAX = 60


def explain(left: object, right: object) -> list[str] | None:
    """Return the lines of `pytest_assertrepr_compare` for `left == right`; None for other values.

    >>> with Kafka(topics={"t": 1}) as kafka:
    ...     topic = kafka.topic("t")
    ...     topic.put_many([b"a", b"c"])
    ...     print("\\n".join(explain(topic, [rec(value=b"a"), rec(value=b"b")])))
    [<t[0]@0: key=None, value=b'a'>, <t[0]@1: key=None, value=b'c'>]
    t: 2 records, expected 2
      = <t[0]@0: key=None, value=b'a'>
      ! <t[0]@1: key=None, value=b'c'>
          value: expected b'b', got b'c'
    """
    if not isinstance(left, Comparable | InAnyOrder):
        if not isinstance(right, Comparable | InAnyOrder):
            return None
        left, right = right, left
    try:
        expected = expected_list(right)
    except TypeError:
        return None
    assert isinstance(left, Comparable | InAnyOrder)
    found = left.compared()
    if isinstance(left, InAnyOrder):
        title, lines = f"{left.records.title}, in any order", _in_any_order(expected, found)
    else:
        title, lines = left.title, _in_order(expected, found)
    if len(lines) > _LINES_MAX:
        lines = _around_differences(lines)
    return [f"{title}: {counted(len(found))}, expected {len(expected)}", *lines]


def _in_order(expected: Sequence[Expected], found: Sequence[LogRecord]) -> list[str]:
    pairs: list[tuple[Expected | None, LogRecord | None]]
    if max(len(expected), len(found)) <= _ALIGNED_MAX:
        pairs = aligned(expected, found)
    else:
        longest = max(len(expected), len(found))
        pairs = [
            (
                expected[place] if place < len(expected) else None,
                found[place] if place < len(found) else None,
            )
            for place in range(longest)
        ]
    return [line for one, record in pairs for line in _lines(one, record)]


def _in_any_order(expected: Sequence[Expected], found: Sequence[LogRecord]) -> list[str]:
    pairs = paired(expected, found)
    missing = [each for place, each in enumerate(expected) if place not in pairs.values()]
    lines = []
    for number, record in enumerate(found):
        lines += _lines(expected[pairs[number]] if number in pairs else None, record)
    for each in missing:
        lines += _lines(each, None)
    return lines


def _lines(expected: Expected | None, record: LogRecord | None) -> list[str]:
    if record is None:
        return [f"  - missing: {expected!r}"]
    if expected is None:
        return [f"  + not expected: {record!r}"]
    if expected == record:
        return [f"  = {record!r}"]
    if isinstance(expected, rec):
        return [f"  ! {record!r}", *(f"      {each}" for each in expected.problems(record))]
    return [f"  ! {record!r}", f"      expected {expected!r}"]


def _around_differences(lines: list[str]) -> list[str]:
    """Leave out the records that match, and the rest of a long list."""
    differing = [line for line in lines if not line.startswith("  = ")]
    shown = differing[:_LINES_MAX]
    if len(differing) > len(shown):
        shown.append(f"  ... {len(differing) - len(shown)} more lines")
    return [f"  (matching records are left out: {len(lines) - len(differing)})", *shown]
