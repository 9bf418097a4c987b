"""Which records of a batch compaction keeps. The first line that fits a record decides:

    a record at or above the round's end         stays
    a record of an aborted transaction           is removed
    a record without a key                       is removed
    a record with a later record of its key      is removed
    the latest record of a key, a tombstone      stays until its batch's delete horizon
    the latest record of a key, with a value     stays
    a transaction marker                         stays until its batch's delete horizon

A tombstone is a record with a null value. The delete horizon (KIP-534) gives readers time: the
first round that keeps a tombstone, or a marker whose transaction has no batches left, writes now +
delete.retention.ms into the batch. A reader that has read older values has that long to reach it.

A batch without records is removed, with two exceptions whose header stays: the last batch of a
producer (the next batch is checked against its sequence and epoch), and the batch that ends where
the round ends (it marks the end offset). A batch that keeps all its records is copied unchanged.
"""

from __future__ import annotations

from itertools import repeat

from wire.records.batch import RecordBatch
from wire.records.decode.loop import parse_records
from wire.records.encode.builder import build_batch
from wire.records.format import DECOMPRESSED_SIZE_MAX
from wire.records.retain import empty_batch, retain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from embedlog.storage.cleaner.offset_map import OffsetMap
    from embedlog.storage.cleaner.transactions import CleanedTransactions
    from wire.records.legacy import LegacyBatch

COLUMNS_COUNT_MIN = 32
"""Batches of this many records or more are read with numpy, which is faster from about 30 to 40
records on (measured with keys of varying length)."""


class BatchFilter:
    """Applies the rules at the top of the file to one round's batches, in offset order."""

    def __init__(
        self,
        latest: OffsetMap,
        transactions: CleanedTransactions,
        *,
        end: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        """`latest` has the last offset below `end` of each key; `now_ms` is wall time."""
        self._latest = latest.latest
        self._transactions = transactions
        self._end = end
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._last_of_producers: Mapping[int, tuple[int, int]] = {}

    def protect(self, last_of_producers: Mapping[int, tuple[int, int]]) -> None:
        """Set the producers whose last batch must stay: id -> (last data offset or -1, epoch)."""
        self._last_of_producers = last_of_producers

    def filter(self, batch: RecordBatch) -> memoryview | bytes | None:
        """Return what stays of the next batch: its own bytes, a smaller batch, or None."""
        is_settled = self._transactions.read(batch)
        if batch.base_offset >= self._end:
            return batch.buffer
        horizon = batch.delete_horizon_ms
        has_expired = horizon is not None and horizon <= self._now_ms
        is_mortal = False
        kept: Collection[int]
        if batch.is_control:
            kept = () if is_settled and has_expired else range(batch.record_count)
            is_mortal = is_settled
        elif is_settled:
            kept = ()
        else:
            kept, is_mortal = self._latest_records(batch, has_expired)
        if not kept:
            return self._emptied(batch)
        if is_mortal and horizon is None:
            horizon = self._now_ms + self._delete_retention_ms
            return retain(batch, kept, delete_horizon_ms=horizon)
        if len(kept) == batch.record_count:
            return batch.buffer
        return retain(batch, kept)

    def _latest_records(self, batch: RecordBatch, has_expired: bool) -> tuple[list[int], bool]:
        """Return the indexes of the remaining records, and whether one of them is a tombstone."""
        keys, offsets, tombstones = read_fields(batch)
        latest = self._latest
        if len(keys) >= COLUMNS_COUNT_MIN:
            import numpy as np

            found = np.fromiter(map(latest, keys, repeat(-1)), np.int64, len(keys))
            kept = np.flatnonzero(np.asarray(offsets) >= found).tolist()
        else:
            kept = [
                index
                for index, (key, offset) in enumerate(zip(keys, offsets, strict=True))
                if offset >= latest(key, -1)
            ]
        if not tombstones:
            return kept, False
        if has_expired:
            return [index for index in kept if index not in tombstones], False
        return kept, any(index in tombstones for index in kept)

    def _emptied(self, batch: RecordBatch) -> bytes | None:
        if not self._is_last_of_producer(batch) and batch.next_offset != self._end:
            return None
        return empty_batch(batch)

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        last = self._last_of_producers.get(batch.producer_id)
        if last is None:
            return False
        last_data_offset, epoch = last
        if last_data_offset >= 0:
            return batch.last_offset == last_data_offset
        return batch.is_control and batch.producer_epoch == epoch


def read_fields(
    batch: RecordBatch, limit: int = DECOMPRESSED_SIZE_MAX
) -> tuple[Sequence[bytes | None], Sequence[int], Collection[int]]:
    """Return (keys, offsets, indexes of the records with a null value) of a batch."""
    count = batch.record_count
    if count < COLUMNS_COUNT_MIN:
        data = bytes(batch.payload(limit))
        found = parse_records(data, count)
        base_offset = batch.base_offset
        return (
            [None if size < 0 else data[at : at + size] for _, _, at, size, _, _, _, _ in found],
            [base_offset + fields[1] for fields in found],
            [index for index, fields in enumerate(found) if fields[5] < 0],
        )
    import numpy as np

    from wire.records.decode.choose import columns

    fields = columns(batch, limit)
    nulls = np.flatnonzero(fields.value_sizes < 0)
    return fields.keys(), fields.offsets.tolist(), set(nulls.tolist()) if len(nulls) else ()


def modernised(batch: LegacyBatch) -> Iterator[RecordBatch]:
    """Convert an old message set: yield a batch of magic 2 for each record, with its offset.

    One batch cannot hold all records, because their offsets may have gaps.
    """
    batch.check_crc()
    for record in batch.records():
        yield RecordBatch(
            build_batch(
                [record.value],
                keys=[record.key],
                timestamps=record.timestamp,
                base_offset=record.offset,
            )
        )
