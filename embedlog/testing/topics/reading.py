"""Reading records from a partition's log: no request, no consumer, no group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from embedlog.errors import ConfigError, OffsetOutOfRange
from embedlog.replication.partition import Isolation
from embedlog.testing.names import hint
from embedlog.testing.topics.record import Formats, LogRecord
from wire.records.batch import RecordBatch, iter_batches

if TYPE_CHECKING:
    from embedlog.replication.partition import Partition
    from embedlog.storage.segments.indexes.transaction import AbortedTransaction
    from wire.records.legacy import LegacyBatch

_READ_SIZE = 1 << 20
_ISOLATIONS = {
    "read_committed": Isolation.LAST_STABLE,
    "read_uncommitted": Isolation.HIGH_WATERMARK,
}


def isolation_of(name: str) -> int:
    """Return the number of an isolation level. Raises ConfigError for an unknown name."""
    found = _ISOLATIONS.get(name)
    if found is None:
        raise ConfigError(f"isolation={name!r}: {hint(name, _ISOLATIONS)}")
    return found


def read_records(
    partition: Partition, start: int, end: int, *, isolation: int, formats: Formats
) -> Iterator[LogRecord]:
    """Yield the records of [start, end) that a consumer would get; `end` is a visible offset.

    Markers are left out, and with `Isolation.LAST_STABLE` records of aborted transactions as well.
    """
    topic, index = partition.topic_partition
    offset = max(start, partition.log.offsets.log_start_offset)
    is_committed_only = isolation == Isolation.LAST_STABLE
    aborted = partition.log.transactions.aborted(offset, end) if is_committed_only else []
    while offset < end:
        try:
            found = partition.log.reader.read(offset, max_bytes=_READ_SIZE, end_offset=end)
        except OffsetOutOfRange:
            begin = partition.log.offsets.log_start_offset
            if begin <= offset:
                return  # the log was cut
            offset = begin  # DeleteRecords or retention came first
            continue
        view, following = found[0], found[1]
        for batch in iter_batches(view):
            following = max(following, batch.next_offset)
            if batch.is_control or _is_in(batch, aborted):
                continue
            for at, timestamp, key, value, headers in batch.records():
                if offset <= at < end:
                    yield LogRecord(
                        topic, index, at, timestamp, key, value, tuple(headers), formats
                    )
        if following <= offset:
            return
        offset = following


def _is_in(batch: RecordBatch | LegacyBatch, aborted: list[AbortedTransaction]) -> bool:
    return (
        isinstance(batch, RecordBatch)
        and batch.is_transactional
        and any(
            each.producer_id == batch.producer_id
            and each.first_offset <= batch.base_offset <= each.last_offset
            for each in aborted
        )
    )
