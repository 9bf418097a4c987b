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

_NOTHING = memoryview(b"")


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
    follow_log_start(window, partition)
    return window.next_fetch_offset()


def follow_log_start(window: DeliveryWindow, partition: Partition) -> None:
    """Drop records below the log's start."""
    log_start = partition.log.offsets.log_start_offset
    if window.start_offset < log_start:
        window.begin_at(log_start)


def readable_size(partition: Partition, offset: int, max_bytes: int, isolation: int) -> int:
    """Return the size of the batches that a read would return.

    Raises:
        CorruptMessage: the log is damaged at the offset.
    """
    return len(_records(partition, offset, max_bytes, isolation, min_one=True)[0])


def read(
    partition: Partition,
    offset: int,
    max_bytes: int,
    isolation: int,
    *,
    last_wanted: int,
    min_one: bool = True,
) -> ShareRead | None:
    """Return whole batches from `offset` on; None if there are none within `max_bytes`.

    The last batch is the one at `last_wanted` or an earlier one. With `min_one` the first batch is
    returned even if it is larger.

    Raises:
        CorruptMessage: the log is damaged at the offset.
    """
    records, next_offset = _records(partition, offset, max_bytes, isolation, min_one=min_one)
    if not records:
        return None
    made = ShareRead(records)
    transactional: list[tuple[int, Extent]] = []
    position = 0
    for batch in iter_batches(records):
        position += len(batch.buffer)
        extent = (batch.base_offset, batch.last_offset)
        made.extents.append(extent)
        made.ends.append(position)
        if batch.attributes & TRANSACTIONAL_BIT and not batch.attributes & CONTROL_BIT:
            transactional.append((batch.producer_id, extent))
        if batch.last_offset >= last_wanted:
            break  # the rest of the view may have thousands of batches
    if transactional and isolation == Isolation.LAST_STABLE:
        gone: dict[int, list[Extent]] = {}
        for each in partition.log.transactions.aborted(offset, next_offset):
            extents = gone.setdefault(each.producer_id, [])
            extents.append((each.first_offset, each.last_offset))
        made.aborted = [
            (base, last)
            for producer_id, (base, last) in transactional
            if any(first <= base < marker for first, marker in gone.get(producer_id, ()))
        ]
    return made


def _records(
    partition: Partition, offset: int, max_bytes: int, isolation: int, *, min_one: bool
) -> tuple[memoryview, int]:
    """Return a view of whole batches, perhaps none, and the offset behind them."""
    end_offset = partition.end_offset(isolation)
    if offset >= end_offset:
        return _NOTHING, offset
    try:
        found = partition.log.reader.read(
            offset, max_bytes=max_bytes, end_offset=end_offset, min_one=min_one
        )
    except errors.OffsetOutOfRange:
        return _NOTHING, offset  # the log start has just moved
    except errors.CorruptRecord as error:
        raise errors.CorruptMessage(str(error)) from error
    return found.records, found.next_offset


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
