"""The logs of replicas, read from outside: whole batches and their records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from embedlog.replication.partition import Partition
from wire.records import iter_batches
from wire.records.batch import RecordBatch
from wire.records.decode.choose import tuples

_ALL = 1 << 30


class Batch(NamedTuple):
    """One batch of a log, byte for byte."""

    base_offset: int
    next_offset: int
    epoch: int
    data: bytes

    def __repr__(self) -> str:
        return f"{self.base_offset}..{self.next_offset - 1}@{self.epoch}"


class Row(NamedTuple):
    """One record."""

    offset: int
    epoch: int
    value: str


def batches(partition: Partition, start: int = 0, end: int | None = None) -> list[Batch]:
    """Return the batches of the log from `start` to `end`, by default its own end."""
    log = partition.log
    end = log.log_end_offset if end is None else end
    found: list[Batch] = []
    while start < end:
        read = log.reader.read(start, max_bytes=_ALL, end_offset=end)
        more = [_batch(each) for each in iter_batches(bytes(read[0])) if _is_whole(each)]
        if not more:
            break
        found += more
        start = found[-1].next_offset
    return found


def _is_whole(batch: object) -> bool:
    assert isinstance(batch, RecordBatch), batch
    return True


def _batch(batch: RecordBatch) -> Batch:
    return Batch(
        batch.base_offset, batch.next_offset, batch.partition_leader_epoch, bytes(batch.buffer)
    )


def rows(data: Iterable[Batch]) -> Iterator[Row]:
    """Return the records of batches, without transaction markers."""
    for each in data:
        yield from rows_of(each.data)


def rows_of(data: bytes) -> Iterator[Row]:
    """Return the records of a record set."""
    for batch in iter_batches(data):
        assert isinstance(batch, RecordBatch)
        if not batch.is_control:
            for offset, _, _, value, _ in tuples(batch):
                yield Row(offset, batch.partition_leader_epoch, bytes(value or b"").decode())
