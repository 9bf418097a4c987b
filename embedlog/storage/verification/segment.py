"""The rules of a segment and its indexes, for `verify`; each violation is a `CorruptRecord`.

Batches               Each is whole, has a known format and a right checksum. Offsets continue.
                      Leader epochs do not fall, and agree with the epoch cache.
Offset index          Each entry names an existing batch.
Time index            Each entry has the largest timestamp so far, and names the first batch with
                      that timestamp.
Transaction index     Each entry is an abort marker. Its transaction's first offset and last stable
                      offset are compared if the log is complete from offset 0.

Two kinds of damage go unnoticed: a changed base offset that still lies within a gap left by
compaction, and an entry of the time index that names another record of its batch (Kafka may name
any of them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from embedlog.errors import CorruptRecord
from embedlog.runtime.files import File, Files
from embedlog.storage import paths
from embedlog.storage.foreign.segment import READ_SIZE
from embedlog.storage.foreign.tail import ends_transaction
from embedlog.storage.segments.scan import is_zeros
from embedlog.storage.state_files.leader_epochs import LeaderEpochs
from embedlog.storage.verification.index_claims import IndexClaims
from wire.records.batch import RecordBatch, iter_batches
from wire.records.crc32c import crc32c
from wire.records.errors import RecordsError
from wire.records.format import (
    ATTRIBUTES_POSITION,
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TRANSACTIONAL_BIT,
)

PAGE_SIZE = 4096


class SegmentCheck:
    """The check of one segment. It reads every batch once."""

    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: int,
        *,
        epochs: LeaderEpochs | None,
        gaps_below: int,
        progress: Callable[[int], None],
        transactions: dict[int, int] | None = None,
    ) -> None:
        """Prepare the check; `progress` is called with each number of bytes read.

        `transactions` has the transactions that are open where the segment begins: producer id ->
        first offset. `findings` updates it. It is None if earlier segments are missing.
        """
        self._files = files
        self._epochs = epochs
        self._gaps_below = gaps_below
        self._progress = progress
        self.path = paths.segment_file(directory, base_offset)
        self._claims = IndexClaims(files, directory, base_offset)
        self._transactions = transactions
        self.next_offset = base_offset
        self.epoch = -1
        self.largest = -1
        self._is_largest = False
        """True if the last batch read has a larger timestamp than every earlier batch."""
        self._base = base_offset
        """Base offset of the last batch read."""
        self.batch_count = 0
        self.end = 0
        """Position behind the last good batch. Zeros, a bad batch or the file's end follow."""
        self.tail: memoryview | None = None
        """After damage: the rest of the file, from the begin of the page in which `end` lies."""

    def findings(self, epoch: int) -> Iterator[CorruptRecord]:
        """Read everything and yield the damage.

        `epoch` is the leader epoch of the last batch of the segment before.
        """
        self.epoch = epoch
        yield from self._claims.load()
        try:
            file = self._files.open(self.path, writable=False)
            yield from self._batches(file)
        except FileNotFoundError:
            return  # retention has removed the segment
        except CorruptRecord as error:
            self._find_tail(file)
            yield error
            return
        yield from self._claims.unmatched()

    def _batches(self, file: File) -> Iterator[CorruptRecord]:
        """Read the batches; yield damage of the indexes, raise damage of a batch."""
        size, position = file.size(), 0
        while position < size:
            view = self._view(file, position, size)
            read = 0
            while read < len(view):
                needed = self._batch(view, read, position + read, size)
                if needed == 0 or needed > len(view) - read:
                    break
                yield from self._claims.check(
                    position + read,
                    self._base,
                    self.next_offset - 1,
                    self.largest,
                    is_first=self._is_largest,
                )
                read += needed
                self.end = position + read
            if not read:
                if is_zeros(file.view(position, size - position)):
                    break  # a broker reserves room in advance: zeros at the end are no damage
                reason = f"no batch in the {size - position} bytes that remain"
                raise CorruptRecord(self.path, position, reason)
            position += read
            self._progress(read)

    def _view(self, file: File, position: int, size: int) -> memoryview:
        try:
            view = file.view(position, min(READ_SIZE, size - position))
            needed = int.from_bytes(view[8:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
            if len(view) < needed <= size - position:
                view = file.view(position, needed)
        except ValueError as error:
            raise CorruptRecord(self.path, position, str(error)) from None
        return view

    def _batch(self, view: memoryview, at: int, position: int, size: int) -> int:
        """Check the batch at `at` in `view`; return its size, even if it exceeds the view.

        Return 0 if zeros begin there instead of a batch.
        """
        if len(view) - at < HEADER_SIZE:
            if position + len(view) - at < size:
                return HEADER_SIZE
            return 0 if is_zeros(view[at:]) else self._legacy(view, at, position, size)
        fields = HEADER.unpack_from(view, at)
        base_offset, length, epoch, magic, crc = fields[:5]
        attributes, delta, timestamp = fields[5], fields[6], fields[8]
        needed: int = length + LOG_OVERHEAD
        if length == 0:
            return 0
        if magic != 2:
            return self._legacy(view, at, position, size)
        if needed < HEADER_SIZE or position + needed > size:
            reason = f"a batch of {needed} bytes, {size - position} remain"
            raise CorruptRecord(self.path, position, reason)
        if at + needed > len(view):
            return needed
        computed = crc32c(view[at + ATTRIBUTES_POSITION : at + needed])
        if computed != crc:
            raise CorruptRecord(self.path, position, f"crc {computed:#010x}, stored {crc:#010x}")
        self._continue(position, base_offset, base_offset + delta, epoch)
        if attributes & CONTROL_BIT:
            self._note_marker(RecordBatch(view[at : at + needed]))
        elif attributes & TRANSACTIONAL_BIT and self._transactions is not None:
            producer_id = RecordBatch(view[at : at + needed]).producer_id
            self._transactions.setdefault(producer_id, base_offset)
        self._note_time(timestamp)
        return needed

    def _legacy(self, view: memoryview, at: int, position: int, size: int) -> int:
        try:
            batch = next(iter_batches(view, at), None)
            if batch is None:
                length = int.from_bytes(view[at + 8 : at + LOG_OVERHEAD], "big", signed=True)
                if position + length + LOG_OVERHEAD <= size and at > 0:
                    return length + LOG_OVERHEAD
                raise CorruptRecord(self.path, position, "no whole message set")
            if not batch.is_valid_crc():
                raise CorruptRecord(self.path, position, "wrong crc")
        except RecordsError as error:
            raise CorruptRecord(self.path, position, str(error)) from None
        self._continue(position, batch.base_offset, batch.last_offset, self.epoch)
        self._note_time(batch.max_timestamp)
        return batch.size

    def _note_time(self, timestamp: int) -> None:
        self._is_largest = timestamp > self.largest
        self.largest = max(self.largest, timestamp)

    def _note_marker(self, marker: RecordBatch) -> None:
        is_commit = ends_transaction(marker)
        if is_commit is None:
            return
        first, stable = -1, -1
        if self._transactions is not None:
            first = self._transactions.pop(marker.producer_id, -1)
            stable = min(self._transactions.values(), default=marker.next_offset)
        if not is_commit:
            self._claims.aborts[marker.base_offset] = (marker.producer_id, first, stable)

    def _continue(self, position: int, base_offset: int, last_offset: int, epoch: int) -> None:
        expected = self.next_offset
        is_next = base_offset == expected or expected < base_offset <= self._gaps_below
        if not is_next or last_offset < base_offset:
            reason = f"offsets {base_offset}..{last_offset}, expected {expected}"
            raise CorruptRecord(self.path, position, reason)
        # Look up the last offset: the first records of the batch may have been deleted, and the
        # cache no longer has an epoch for these records.
        known = -1 if self._epochs is None else self._epochs.epoch_for_offset(last_offset)
        if epoch < self.epoch or known not in (-1, epoch):
            expected = max(known, self.epoch)
            reason = f"leader epoch {epoch} at offset {base_offset}, expected {expected}"
            raise CorruptRecord(self.path, position, reason)
        self.epoch = epoch
        self._base = base_offset
        self.next_offset = last_offset + 1
        self.batch_count += 1

    def _find_tail(self, file: File) -> None:
        size = file.size()
        start = self.end - self.end % PAGE_SIZE
        self.tail = file.view(start, size - start) if self.end < size else None
