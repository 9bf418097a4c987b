"""The content of logs in the end: data, aborted data, dead letters."""

from __future__ import annotations

from embedlog.replication.partition import Partition
from tests.simulation.cluster.logs import batches
from tests.simulation.share.history import Content, Letter
from wire.records import iter_batches
from wire.records.batch import RecordBatch
from wire.records.control import ControlType, control_type_of
from wire.records.decode.choose import tuples


def content(partition: Partition) -> Content:
    """Return the content of a partition that the group shares."""
    offsets = partition.log.offsets
    found = Content(offsets.log_start_offset, offsets.high_watermark)
    undecided: dict[int, set[int]] = {}
    for batch in _batches(partition):
        if batch.is_control:
            decided = undecided.pop(batch.producer_id, set())
            if control_type_of(batch) == ControlType.ABORT:
                found.aborted |= decided
            continue
        rows = tuples(batch)
        here = {offset for offset, *_ in rows}
        found.records |= here
        found.keys |= {offset: bytes(key) for offset, _, key, *_ in rows if key is not None}
        if batch.is_transactional:
            undecided.setdefault(batch.producer_id, set()).update(here)
    found.records = {each for each in found.records if each < found.end}
    return found


def letters(partition: Partition) -> list[Letter]:
    """Return the dead letters of a partition."""
    found: list[Letter] = []
    for batch in _batches(partition):
        for _, _, _, _, headers in tuples(batch):
            told = {name: bytes(value or b"").decode() for name, value in headers}
            place = told["__dlq.errors.topic"], int(told["__dlq.errors.partition"])
            offset = int(told["__dlq.errors.offset"])
            found.append(Letter(place, offset, told["__dlq.errors.message"]))
    return found


def _batches(partition: Partition) -> list[RecordBatch]:
    offsets = partition.log.offsets
    rows = batches(partition, offsets.log_start_offset, offsets.high_watermark)
    made: list[RecordBatch] = []
    for row in rows:
        for batch in iter_batches(row.data):
            assert isinstance(batch, RecordBatch)
            made.append(batch)
    return made
