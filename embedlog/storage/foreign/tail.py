"""Following the last segment of a log that another process writes, up to the published offset.

A torn batch at the end is no damage: the log's owner is writing it, or a crash left it. Readers do
not get it. A bad batch with good batches behind it is damage, because a log is written in order.
"""

from __future__ import annotations

from embedlog.errors import CorruptRecord, KafkaError
from embedlog.storage import paths
from embedlog.storage.foreign.segment import ForeignSegment
from embedlog.storage.producers import snapshot as producer_snapshot
from embedlog.storage.producers.state import read_marker
from embedlog.storage.segments.scan import has_good_batch_after
from wire.records.batch import RecordBatch
from wire.records.format import CONTROL_BIT, LOG_OVERHEAD, TRANSACTIONAL_BIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embedlog.runtime.files import Files
    from embedlog.storage.foreign.segment import Batch, Head

_ENTRY_HEAD = bytes(LOG_OVERHEAD)


class ForeignTail:
    """Reads the last segment as it grows, and tracks the open transactions."""

    def __init__(self, segment: ForeignSegment, open_transactions: Mapping[int, int]) -> None:
        self.segment = segment
        self.position = 0
        self.next_offset = segment.base_offset
        self.open_transactions = dict(open_transactions)
        """Producer id -> first offset of its open transaction."""
        self.damage: CorruptRecord | None = None
        """Damage at `position`, which hides the later records; None without damage."""

    def skim(self, limit: int | None) -> None:
        """Advance to the last batch by reading headers only, below `limit` if it is not None.

        The last batch is left to `advance`, which checks it: it may be half written. Requires: the
        machine has not restarted since the batches were written.
        """
        former: Head | None = None
        for head in self.segment.heads(self.position, self.next_offset):
            if limit is not None and head.last_offset >= limit:
                break
            if former is not None and not self._pass(former):
                return
            former = head

    def _pass(self, head: Head) -> bool:
        """Advance past a batch; return False if it is a damaged control batch."""
        if head.attributes & CONTROL_BIT:
            try:
                track(self.open_transactions, self.segment.batch_of(head))
            except CorruptRecord:
                return False
        elif head.attributes & TRANSACTIONAL_BIT:
            self.open_transactions.setdefault(head.producer_id, head.base_offset)
        self.segment.mark(head.base_offset, head.position)
        self.next_offset = head.last_offset + 1
        self.position = head.position + head.size
        return True

    def advance(self, limit: int | None) -> None:
        """Read and check the new batches, below offset `limit` if it is not None; set `damage`."""
        self.damage = None
        stopped = self._read(limit)
        if stopped is None or self._is_zeros():
            if limit is not None and self.next_offset < limit and stopped is not None:
                self.damage = stopped
            return
        position = self.position
        is_followed = has_good_batch_after(
            self.segment.remaining(position), 0, self.next_offset, beyond=1
        )
        # Read the bad batch again: it may have been half written at the first read. Good batches
        # behind it were written after it: if it is still bad now, it is damaged.
        stopped = self._read(limit)
        is_published = limit is not None and self.next_offset < limit
        if stopped is not None and position == self.position and (is_followed or is_published):
            self.damage = stopped

    def _read(self, limit: int | None) -> CorruptRecord | None:
        """Advance to the end or to the first bad batch; return that batch's error, else None."""
        try:
            for position, batch in self.segment.batches(self.position):
                if limit is not None and batch.last_offset >= limit:
                    return None
                if batch.base_offset < self.next_offset:
                    reason = f"offset {batch.base_offset}, expected {self.next_offset}"
                    return CorruptRecord(self.segment.path, position, reason)
                self.segment.mark(batch.base_offset, position)
                track(self.open_transactions, batch)
                self.next_offset = batch.last_offset + 1
                self.position = position + batch.size
        except CorruptRecord as error:
            return error
        return None

    def _is_zeros(self) -> bool:
        """Return whether only reserved room follows, or the file ends at `position`."""
        return bytes(self.segment.remaining(self.position)[:LOG_OVERHEAD]) in (b"", _ENTRY_HEAD)

    @property
    def last_stable_offset(self) -> int:
        return min(self.open_transactions.values(), default=self.next_offset)


def track(open_transactions: dict[int, int], batch: Batch) -> None:
    """Record in `open_transactions` a transaction that begins or ends with `batch`."""
    if not isinstance(batch, RecordBatch) or not batch.is_transactional:
        return
    if not batch.is_control:
        open_transactions.setdefault(batch.producer_id, batch.base_offset)
    elif ends_transaction(batch) is not None:
        open_transactions.pop(batch.producer_id, None)


def ends_transaction(batch: RecordBatch) -> bool | None:
    """Return True if a control batch commits its producer's transaction, False if it aborts it.

    None if the batch is no transaction marker.

    Raises:
        CorruptRecord: the marker is malformed.
    """
    try:
        marker = read_marker(batch)
    except KafkaError as error:
        raise CorruptRecord(f"marker at offset {batch.base_offset}", 0, str(error)) from None
    return None if marker is None else marker[0]


def transactions_at(files: Files, directory: str, bases: Sequence[int]) -> dict[int, int]:
    """Return the transactions that are open where the last segment begins.

    They are found by the newest good producer snapshot and the segments from its offset on, or by
    reading all segments if there is no good snapshot.
    """
    found: dict[int, int] = {}
    first = len(bases) - 1
    while True:
        path = paths.segment_file(directory, bases[first], paths.SNAPSHOT)
        try:
            entries = producer_snapshot.decode(files.read(path), path)
        except (FileNotFoundError, CorruptRecord):
            if first == 0:
                break
            first -= 1
        else:
            begins = ((each.producer_id, each.current_txn_first_offset) for each in entries)
            found = {producer_id: offset for producer_id, offset in begins if offset >= 0}
            break
    for base in bases[first:-1]:
        for _, batch in ForeignSegment(files, directory, base).batches():
            track(found, batch)
    return found
