"""Which records of the window, and of the log behind it, a fetch of one member gets.

A batch of the window gives its free records. New records enter the window as batches: whole batches
of the log in the mode BATCH_OPTIMIZED, the exact number in the mode RECORD_LIMIT.

Records that were often in vain come in ever smaller parts, so that a bad record at last comes
alone: see `_Throttle`.
"""

from __future__ import annotations

from _bisect import bisect_right
from _operator import itemgetter

from embedlog.common import Value
from embedlog.sharing.delivery import AVAILABLE
from embedlog.sharing.in_flight import InFlightBatch, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Final

    from embedlog.sharing.in_flight import AcquisitionLock
    from embedlog.sharing.window import DeliveryWindow

    Extent = tuple[int, int]
    """First and last offset of a batch of the log."""
    Acquired = tuple[int, int, int]
    """First and last offset, and delivery count, this delivery included."""
    Piece = tuple[Run, int, int]
    """Neighbouring free records: their run, first and last offset."""

BATCH_OPTIMIZED: Final = 0
RECORD_LIMIT: Final = 1

_base_of = itemgetter(0)


class Wish(Value):
    """What a fetch wants of a partition, and what its group allows."""

    member_id: str
    mode: int
    record_count_max: int
    batch_size: int
    """Offsets after which a new range of the answer begins, at the next border of the log."""
    lock_count_max: int
    """The limit of offsets in the window."""
    delivery_limit: int
    lock_duration_ms: int
    is_ordered: bool = False
    """Whether records of one key are delivered one after another; see `key_order`."""


def countable(window: DeliveryWindow, wish: Wish) -> bool:
    """Return whether the window has a free record, or room for new ones."""
    has_room = window.in_flight_count < wish.lock_count_max
    return has_room or window.next_fetch_offset() <= window.end_offset


class Acquisition:
    """Acquires records for one fetch. Requires: the share partition's lock."""

    def __init__(
        self,
        window: DeliveryWindow,
        wish: Wish,
        make_lock: Callable[[InFlightBatch], AcquisitionLock],
    ) -> None:
        """`make_lock` makes and starts the lock for the acquired records of a batch."""
        self._window = window
        self._wish = wish
        self._make_lock = make_lock
        self._throttle = _Throttle(wish.delivery_limit)
        self._left = 0
        self._is_over = False
        self.acquired: list[Acquired] = []

    def run(self, fetch_offset: int, extents: Sequence[Extent]) -> list[Acquired]:
        """Acquire from the batches of the log that were read at `fetch_offset`."""
        window, wish = self._window, self._wish
        last = extents[-1][1]
        self._left = min(wish.record_count_max, wish.lock_count_max - window.in_flight_count)
        if self._left <= 0:
            if fetch_offset > window.end_offset:
                return []
            last = min(last, window.end_offset)
            self._left = min(wish.record_count_max, window.end_offset - fetch_offset + 1)
        first = max(extents[0][0], window.start_offset)
        if first > fetch_offset:
            window.fill_hole(fetch_offset, first - 1)
        position = first
        for batch in window.overlapping(first, last):
            if self._is_enough:
                break
            if batch.first > position:
                self._take_new(position, batch.first - 1, extents)
                if self._is_enough:
                    break
            self._take_free(batch, first, last)
            position = batch.last + 1
        if position <= last and not self._is_enough:
            self._take_new(position, last, extents)
        return self.acquired

    def take(self, chosen: Iterable[tuple[InFlightBatch, list[Piece]]]) -> list[Acquired]:
        """Acquire chosen free records of the window, at most the wished number in any mode."""
        self._left = self._wish.record_count_max
        for batch, pieces in chosen:
            if self._is_enough:
                break
            self._take_pieces(batch, pieces, strict=True)
        return self.acquired

    @property
    def _is_enough(self) -> bool:
        return self._is_over or self._left <= 0

    def _take_free(self, batch: InFlightBatch, first: int, last: int) -> None:
        """Take the free records of a batch of the window within [first, last]."""
        pieces = [
            (run, max(run.first, first), min(run.last, last))
            for run in batch.within(first, last)
            if run.is_free
        ]
        self._take_pieces(batch, pieces, strict=self._wish.mode == RECORD_LIMIT)

    def _take_pieces(self, batch: InFlightBatch, pieces: Iterable[Piece], *, strict: bool) -> None:
        """Take free records of a batch; with `strict` no more than are left to take."""
        ranges: list[Acquired] = []
        taken: list[Run] = []
        parts: list[Extent] = []
        budget = self._left
        for run, lowest, highest in pieces:
            allowed = self._throttle.allowed(batch, run, has_some=bool(self.acquired or ranges))
            if allowed is not None:
                highest = min(highest, lowest + allowed - 1)
            if strict:
                highest = min(highest, lowest + budget - 1)
            if highest < lowest:
                break
            self._throttle.count(highest - lowest + 1)
            budget -= highest - lowest + 1
            ranges.append((lowest, highest, run.count + 1))
            if (lowest, highest) == (run.first, run.last):
                taken.append(run)
            else:
                parts.append((lowest, highest))
            if (strict and budget <= 0) or self._throttle.is_spent:
                break
        self._is_over = self._throttle.has_begun
        if ranges:
            lock = self._make_lock(batch)
            for run in taken:
                run.acquire(self._wish.member_id, lock)
            if parts:
                firsts = {lowest for lowest, _ in parts}
                edges = [edge for lowest, highest in parts for edge in (lowest, highest + 1)]
                for run in batch.isolate(parts[0][0], parts[-1][1], edges):
                    if run.first in firsts:
                        run.acquire(self._wish.member_id, lock)
            batch.join()
            self._tell(ranges)

    def _take_new(self, first: int, last: int, extents: Sequence[Extent]) -> None:
        """Bring [first, last] into the window, as far as the limits allow."""
        limit = self._left
        if self._wish.mode == RECORD_LIMIT:
            taken = min(last, first + limit - 1)
            end = min(last, max(taken, _end_of(extents, taken)))
            self._bring_in(first, taken, end)
            return
        if limit < last - first + 1:
            wanted = first + limit - 1
            last = min(last, max(wanted, _end_of(extents, wanted)))
        begin = first
        for _, end in extents:
            if begin <= end < last and end - begin + 1 >= self._wish.batch_size:
                self._bring_in(begin, end, end)
                begin = end + 1
        self._bring_in(begin, last, last)

    def _bring_in(self, first: int, taken: int, last: int) -> None:
        """Put [first, last] into the window as one batch, and acquire it up to `taken`."""
        runs = [Run(first, taken, AVAILABLE, 0)]
        if taken < last:
            runs.append(Run(taken + 1, last, AVAILABLE, 0))
        batch = InFlightBatch(first, last, runs)
        runs[0].acquire(self._wish.member_id, self._make_lock(batch))
        self._window.add(batch)
        self._tell([(first, taken, 1)])

    def _tell(self, ranges: list[Acquired]) -> None:
        """Add ranges of one batch to the answer; join neighbours with the same count."""
        joined: list[Acquired] = []
        for first, last, count in ranges:
            self._left -= last - first + 1
            if joined and joined[-1][1] + 1 == first and joined[-1][2] == count:
                joined[-1] = (joined[-1][0], last, count)
            else:
                joined.append((first, last, count))
        self.acquired += joined


class Taken:
    """What a fetch gets of a partition: batches of the log, and which of their records."""

    __slots__ = ("acquired", "records")

    def __init__(self, records: memoryview, acquired: list[Acquired]) -> None:
        self.records = records
        self.acquired = acquired

    @property
    def count(self) -> int:
        """Number of acquired offsets."""
        return sum(last - first + 1 for first, last, _ in self.acquired)


class _Throttle:
    """The rule for records that were delivered often: one bad record must not hold up a batch.

    From half of the limit on they come first in an answer and without others, at most the size of
    their batch, halved for each delivery since; before the last delivery, one record alone.
    """

    def __init__(self, delivery_limit: int) -> None:
        self._limit = delivery_limit
        self._from = max(2, (delivery_limit + 1) // 2)
        self.has_begun = False
        self._budget = 0

    @property
    def is_spent(self) -> bool:
        """Whether the answer has all records that it may have."""
        return self.has_begun and self._budget <= 0

    def allowed(self, batch: InFlightBatch, run: Run, *, has_some: bool) -> int | None:
        """Return how many records of a free run may be taken; None for no limit."""
        is_last_try = self._limit > 2 and run.count >= self._limit - 1
        if self.has_begun:
            return 0 if is_last_try else self._budget
        if run.count < self._from:
            return None
        self.has_begun = True
        if has_some:
            return 0
        halvings = run.count - self._from + 1
        self._budget = 1 if is_last_try else max(1, batch.size >> halvings)
        return self._budget

    def count(self, taken: int) -> None:
        """Count records that were taken."""
        if self.has_begun:
            self._budget -= taken


def _end_of(extents: Sequence[Extent], offset: int) -> int:
    """Return the last offset of the batch that holds `offset`, or of the batch before it."""
    slot = bisect_right(extents, offset, key=_base_of) - 1
    return extents[max(0, slot)][1]
