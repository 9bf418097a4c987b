"""The window of a share partition: from the start offset to the last offset ever acquired.

    start_offset            end_offset
         |  batch  | batch |    |
    -----+---------+-------+----+------------> offsets of the log
    over   in flight  gap        never read

A gap can exist only after loading: it has offsets that were acquired before, and whose state was
never stored. They are read again.
"""

from __future__ import annotations

from _bisect import bisect_right

from embedlog.sharing.delivery import ARCHIVED, AVAILABLE, Cause
from embedlog.sharing.in_flight import InFlightBatch, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from embedlog.coordinator.share.state_client import StateBatch


def _first_of(batch: InFlightBatch) -> int:
    return batch.first


class DeliveryWindow:
    """The records in flight. Requires for every call: the share partition's lock."""

    def __init__(self, start_offset: int, stored: Iterable[StateBatch] = ()) -> None:
        self.start_offset = start_offset
        self.batches: list[InFlightBatch] = []
        """By offset, without overlaps."""
        for each in sorted(stored, key=lambda batch: batch.first_offset):
            if each.last_offset >= start_offset:
                first = max(each.first_offset, start_offset)
                run = Run(first, each.last_offset, each.delivery_state, each.delivery_count)
                self.batches.append(InFlightBatch(first, each.last_offset, [run]))
        self._free_from = start_offset
        """No offset below it is free or in a gap."""
        self.advance()

    @property
    def end_offset(self) -> int:
        """The last offset of the window; one below the start if the window is empty."""
        return self.batches[-1].last if self.batches else self.start_offset - 1

    @property
    def in_flight_count(self) -> int:
        """Number of offsets in the window, in whatever state."""
        return self.end_offset - self.start_offset + 1

    @property
    def complete_count(self) -> int:
        """Number of offsets in the window that are over, or will be when their move is stored."""
        return sum(run.size for batch in self.batches for run in batch.runs if run.will_be_over)

    def runs(self) -> Iterator[Run]:
        for batch in self.batches:
            yield from batch.runs

    def next_fetch_offset(self) -> int:
        """Return the first offset that can be acquired; behind the window if it has none."""
        expected = max(self.start_offset, self._free_from)
        for batch in self.batches[self._slot(expected) :]:
            for run in batch.runs:
                if run.last < expected:
                    continue
                if run.first > expected or run.is_free:
                    self._free_from = expected
                    return expected
                expected = run.last + 1
        self._free_from = expected
        return expected

    def freed(self, offset: int) -> None:
        """Note that the record at `offset` can be acquired again."""
        self._free_from = min(self._free_from, offset)

    def overlapping(self, first: int, last: int) -> list[InFlightBatch]:
        """Return the batches with offsets in [first, last], in order."""
        found: list[InFlightBatch] = []
        for batch in self.batches[self._slot(first) :]:
            if batch.first > last:
                break
            if batch.last >= first:
                found.append(batch)
        return found

    def holding(self, offset: int) -> InFlightBatch | None:
        """Return the batch at `offset`, or the last one before it; None if there is none."""
        slot = bisect_right(self.batches, offset, key=_first_of) - 1
        return self.batches[slot] if slot >= 0 else None

    def _slot(self, offset: int) -> int:
        return max(0, bisect_right(self.batches, offset, key=_first_of) - 1)

    def add(self, batch: InFlightBatch) -> None:
        """Put a new batch into the window."""
        slot = bisect_right(self.batches, batch.first, key=_first_of)
        self.batches.insert(slot, batch)
        free = next((run.first for run in batch.runs if run.is_free), None)
        if free is not None:
            self.freed(free)

    def fill_hole(self, first: int, last: int) -> None:
        """Archive [first, last] where the log has no records: free records, and every gap."""
        position = first
        for batch in self.overlapping(first, last):
            if batch.first > position:
                self._add_archived(position, batch.first - 1)
            position = batch.last + 1
            for run in [run for run in batch.within(first, last) if run.is_free]:
                for part in batch.isolate(max(run.first, first), min(run.last, last)):
                    part.move(Cause.VANISH)
            batch.join()
        if position <= last:
            self._add_archived(position, last)

    def fill_gaps(self, first: int, last: int) -> None:
        """Put free records where [first, last] has no batch."""
        position = first
        for batch in self.overlapping(first, last):
            if batch.first > position:
                self._add_free(position, batch.first - 1)
            position = batch.last + 1
        if position <= last:
            self._add_free(position, last)

    def _add_free(self, first: int, last: int) -> None:
        self.add(InFlightBatch(first, last, [Run(first, last, AVAILABLE, 0)]))

    def _add_archived(self, first: int, last: int) -> None:
        self.add(InFlightBatch(first, last, [Run(first, last, ARCHIVED, 0)]))

    def advance(self) -> bool:
        """Move the start over the records that are over; return whether it moved."""
        start = self.start_offset
        gone = 0
        for batch in self.batches:
            if not batch.runs or batch.runs[0].first > start:
                break
            kept = 0
            for run in batch.runs:
                if not run.is_over:
                    break
                start = run.last + 1
                kept += 1
            if kept < len(batch.runs):
                del batch.runs[:kept]
                break
            gone += 1
        del self.batches[:gone]
        moved = start > self.start_offset
        self.start_offset = start
        return moved

    def begin_at(self, offset: int) -> None:
        """Move the start up to `offset`, and drop all records below it."""
        assert offset >= self.start_offset, (offset, self.start_offset)
        kept: list[InFlightBatch] = []
        for batch in self.batches:
            if batch.first < offset:
                batch.cut_below(offset)
            if batch.runs:
                kept.append(batch)
        self.batches = kept
        self.start_offset = offset
        self.advance()
