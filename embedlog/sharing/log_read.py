"""Reading the log for a share group: whole batches as views, their offsets, and aborted data."""

from __future__ import annotations

from embedlog import errors
from embedlog.replication.partition import Isolation
from wire.records.batch import iter_batches
from wire.records.format import CONTROL_BIT, TRANSACTIONAL_BIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.replication.partition import Partition
    from embedlog.sharing.acquisition import Acquired, Extent
    from embedlog.sharing.window import DeliveryWindow


class ShareRead:
    """Batches of a log: `extents` are their offsets, `ends` their ends in `records`."""

    __slots__ = ("aborted", "ends", "extents", "records")

    def __init__(self, records: memoryview) -> None:
        self.records = records
        self.extents: list[Extent] = []
        self.ends: list[int] = []
        self.aborted: list[Extent] = []
        """Batches of aborted transactions; empty unless the read is read_committed."""

    def part(self, first: int, last: int) -> memoryview:
        """Return the batches from offset `first` to offset `last`, both included."""
        begin = 0
        end = 0
        for (base, latest), batch_end in zip(self.extents, self.ends, strict=True):
            if latest < first:
                begin = batch_end
            if base <= last:
                end = batch_end
        return self.records[begin:end]


def next_offset(window: DeliveryWindow, partition: Partition) -> int:
    """Return the offset to read at. First move the window's start to the log's start if needed."""
    log_start = partition.log.offsets.log_start_offset
    if window.start_offset < log_start:
        window.begin_at(log_start)
    return window.next_fetch_offset()


def read(
    partition: Partition, offset: int, max_bytes: int, isolation: int, *, min_one: bool = True
) -> ShareRead | None:
    """Return whole batches from `offset` on; None if there are none within `max_bytes`.

    With `min_one` the first batch is returned even if it is larger.

    Raises:
        CorruptMessage: the log is damaged at the offset.
    """
    log = partition.log
    end_offset = partition.end_offset(isolation)
    if offset >= end_offset:
        return None
    try:
        found = log.reader.read(offset, max_bytes=max_bytes, end_offset=end_offset, min_one=min_one)
    except errors.OffsetOutOfRange:
        return None  # the log start has just moved
    except errors.CorruptRecord as error:
        raise errors.CorruptMessage(str(error)) from error
    if not found.records:
        return None
    made = ShareRead(found.records)
    transactional: list[tuple[int, Extent]] = []
    position = 0
    for batch in iter_batches(found.records):
        position += len(batch.buffer)
        extent = (batch.base_offset, batch.last_offset)
        made.extents.append(extent)
        made.ends.append(position)
        if batch.attributes & TRANSACTIONAL_BIT and not batch.attributes & CONTROL_BIT:
            transactional.append((batch.producer_id, extent))
    if transactional and isolation == Isolation.LAST_STABLE:
        gone = log.transactions.aborted(offset, found.next_offset)
        made.aborted = [
            (base, last)
            for producer_id, (base, last) in transactional
            if any(
                each.producer_id == producer_id and each.first_offset <= base < each.last_offset
                for each in gone
            )
        ]
    return made


def without(acquired: list[Acquired], first: int, last: int) -> list[Acquired]:
    """Return the ranges without the offsets [first, last]."""
    kept: list[Acquired] = []
    for begin, end, count in acquired:
        if end < first or begin > last:
            kept.append((begin, end, count))
            continue
        if begin < first:
            kept.append((begin, first - 1, count))
        if end > last:
            kept.append((last + 1, end, count))
    return kept
