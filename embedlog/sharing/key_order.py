"""The order of keys: records of one key are delivered one after another, in the order of the log.

A group wants it by the setting `embedlog.share.key.order`. A record is delivered when each earlier
record of its key is over: acknowledged, archived or gone from the log. A record that is acquired,
comes back, or waits for its dead letter blocks its key, and no other key. Records without a key
have no order.

Only the log has the keys, so that records enter the window, free, before they are acquired. The
window ends at the limit of locks: if records of one key fill it, the keys behind it wait.
"""

from __future__ import annotations

from embedlog.sharing import log_read
from embedlog.sharing.acquisition import Acquisition, Taken
from wire.records.batch import iter_batches
from wire.records.errors import RecordsError
from wire.records.format import CONTROL_BIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Final

    from embedlog.replication.partition import Partition
    from embedlog.sharing.acquisition import Piece, Wish
    from embedlog.sharing.in_flight import AcquisitionLock, InFlightBatch
    from embedlog.sharing.window import DeliveryWindow
    from wire.records.batch import RecordBatch
    from wire.records.legacy import LegacyBatch

    Chosen = list[tuple[InFlightBatch, list[Piece]]]
    """Free records of batches, in order."""

_STEP_COUNT: Final = 256
"""Records whose keys are read at once, at most."""
_STEP_SIZE: Final = 1 << 20
"""Bytes of the log that are read at once; a larger batch is read alone."""


class KeyOrder:
    """The keys of the records in a window. Requires for every call: the share partition's lock."""

    def __init__(self, window: DeliveryWindow, partition: Partition) -> None:
        self._window = window
        self._partition = partition
        self._end = window.start_offset
        """Keys are known, and offsets have a batch, up to the offset before it."""
        self._keys: dict[int, int] = {}
        """Offset -> hash of the key. Keys with equal hashes are in one order, which harms little.
        """

    def next_offset(self, wish: Wish) -> int | None:
        """Return the first offset that a fetch might get; None if it has to wait."""
        self._follow_start()
        chosen = self._free(1)
        if chosen:
            return _first_of(chosen)
        return self._end if self._has_room(wish) else None

    def acquire(
        self,
        wish: Wish,
        max_bytes: int,
        isolation: int,
        start_lock: Callable[[InFlightBatch, int], AcquisitionLock],
        *,
        min_one: bool,
    ) -> Taken | None:
        """Acquire records as `SharePartition.acquire` does, of each key at most one."""
        window = self._window
        while True:
            self._follow_start()
            chosen = self._free(wish.record_count_max)
            count = sum(last - first + 1 for _, pieces in chosen for _, first, last in pieces)
            if count < wish.record_count_max and self._look_ahead(wish, isolation):
                continue
            if not chosen:
                return None
            first, last = _first_of(chosen), _last_of(chosen)
            read = log_read.read(
                self._partition, first, max_bytes, isolation, last_wanted=last, min_one=min_one
            )
            if read is None:
                return None
            if self._archive_lost(read, first, chosen):
                continue
            acquisition = Acquisition(
                window, wish, lambda batch: start_lock(batch, wish.lock_duration_ms)
            )
            acquired = acquisition.take(_up_to(chosen, read.extents[-1][1]))
            return Taken(read.part(acquired[0][0], acquired[-1][1]), acquired)

    def _follow_start(self) -> None:
        log_read.follow_log_start(self._window, self._partition)
        self._end = max(self._end, self._window.start_offset)

    def _free(self, count_max: int) -> Chosen:
        """Return the first records that may be acquired: free ones whose key is not busy."""
        keys = self._keys
        busy: set[int] = set()
        chosen: Chosen = []
        for batch in self._window.batches:
            pieces: list[Piece] = []
            for run in batch.runs:
                if run.is_over:
                    continue
                begin = -1
                end = min(run.last + 1, self._end)
                for offset in range(run.first, end):
                    key = keys.get(offset)
                    if key in busy or count_max <= 0 or not run.is_free:
                        if begin >= 0:
                            pieces.append((run, begin, offset - 1))
                            begin = -1
                    else:
                        count_max -= 1
                        begin = offset if begin < 0 else begin
                    if key is not None:
                        busy.add(key)
                if begin >= 0:
                    pieces.append((run, begin, end - 1))
            if pieces:
                chosen.append((batch, pieces))
            if count_max <= 0:
                break
        return chosen

    def _has_room(self, wish: Wish) -> bool:
        """Return whether the window has records with unknown keys, or may have more records."""
        window = self._window
        return self._end <= window.end_offset or window.in_flight_count < wish.lock_count_max

    def _look_ahead(self, wish: Wish, isolation: int) -> bool:
        """Bring more batches into the window, free, and note their keys; return whether any came.

        Holes of the log are archived.
        """
        window, partition, begin = self._window, self._partition, self._end
        if not self._has_room(wish):
            return False
        last_wanted = begin + _STEP_COUNT - 1
        read = log_read.read(partition, begin, _STEP_SIZE, isolation, last_wanted=last_wanted)
        if read is None:
            return False
        self._keys = {
            offset: key for offset, key in self._keys.items() if offset >= window.start_offset
        }
        for (base, last), batch in zip(read.extents, iter_batches(read.records), strict=False):
            if not self._has_room(wish):
                break
            if base > self._end:
                window.fill_hole(self._end, base - 1)
                self._end = base
            window.fill_gaps(self._end, last)
            self._keys.update(each for each in _keys_of(batch) if each[0] >= self._end)
            self._end = last + 1
        window.advance()
        return True

    def _archive_lost(self, read: log_read.ShareRead, first: int, chosen: Chosen) -> bool:
        """Archive chosen records that have gone from the log, or turned out to be aborted data.

        Return whether there were any.
        """
        lost = [
            extent
            for extent in read.aborted
            for _, pieces in chosen
            if any(begin <= extent[1] and end >= extent[0] for _, begin, end in pieces)
        ]
        base = read.extents[0][0]
        if base > first:
            lost.append((first, base - 1))
        for begin, end in lost:
            self._window.fill_hole(max(begin, self._window.start_offset), min(end, self._end - 1))
        self._window.advance()
        return bool(lost)


def _up_to(chosen: Chosen, last: int) -> Iterator[tuple[InFlightBatch, list[Piece]]]:
    """Yield the records up to an offset."""
    for batch, pieces in chosen:
        yield batch, [(run, begin, min(end, last)) for run, begin, end in pieces if begin <= last]


def _first_of(chosen: Chosen) -> int:
    _, pieces = chosen[0]
    return pieces[0][1]


def _last_of(chosen: Chosen) -> int:
    _, pieces = chosen[-1]
    return pieces[-1][2]


def _keys_of(batch: RecordBatch | LegacyBatch) -> list[tuple[int, int]]:
    """Return offset and hash of each key; nothing for a batch that cannot be decoded."""
    if batch.attributes & CONTROL_BIT:
        return []
    try:
        return [
            (record.offset, hash(bytes(record.key)))
            for record in batch.records()
            if record.key is not None
        ]
    except RecordsError:
        return []
