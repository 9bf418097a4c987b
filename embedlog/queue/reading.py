"""Reads partitions from the consumer's positions to their present ends."""

from __future__ import annotations

from bisect import bisect_right

from embedlog.errors import TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from embedlog.client.consumer.consumer import Consumer
    from embedlog.client.consumer.record import ConsumerRecord

_SLICE_MS = 50
_EMPTY_MAX = 600
"""Reading fails after this many slices in a row without a record."""


def read_to_end(
    consumer: Consumer, partitions: Iterable[tuple[str, int]]
) -> Iterator[ConsumerRecord]:
    """Yield the records of assigned partitions up to the ends that they have now.

    Raises:
        TimedOut: no record comes for 30 s, though there are some.
    """
    ends = consumer.end_offsets(partitions)
    empty = 0
    while any(consumer.position(each) < end for each, end in ends.items()):
        records = consumer.poll(_SLICE_MS)
        yield from records
        empty = 0 if records else empty + 1
        if empty > _EMPTY_MAX:
            left = ", ".join(map(str, ends))
            raise TimedOut(f"no record of {left} came within {_EMPTY_MAX * _SLICE_MS} ms")


def read_one(consumer: Consumer, key: tuple[str, int], offset: int) -> ConsumerRecord | None:
    """Return the record at an offset; None if it was removed."""
    (first,) = consumer.beginning_offsets([key]).values()
    (end,) = consumer.end_offsets([key]).values()
    if not first <= offset < end:
        return None
    consumer.assign([key])
    consumer.seek(key, offset)
    record = next(read_to_end(consumer, [key]), None)
    return record if record is not None and record.offset == offset else None


def undone_records(
    consumer: Consumer, key: tuple[str, int], start: int, done: Sequence[tuple[int, int]]
) -> Iterator[ConsumerRecord]:
    """Yield the records of a partition from `start` on that are not in the `done` ranges.

    Each range is (first, last); they are in order.
    """
    for first, last in done:
        if first <= start <= last:
            start = last + 1
    consumer.assign([key])
    consumer.seek(key, start)
    for record in read_to_end(consumer, [key]):
        index = bisect_right(done, record.offset, key=lambda each: each[0]) - 1
        if index < 0 or done[index][1] < record.offset:
            yield record
