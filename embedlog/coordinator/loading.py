"""Replay: from the log of a coordinator's partition to the state of its shard.

Later records replace earlier ones. Records of unknown types come from another version and are
skipped. Records of a transaction carry their producer's id and count once its commit marker is
read.
"""

from __future__ import annotations

from embedlog.storage.log.checked_read import read_checked
from wire.records.batch import RecordBatch
from wire.records.control import ControlType, parse_control_type
from wire.records.decode.choose import tuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.records import RecordFormat
    from embedlog.coordinator.shard_context import Shard
    from embedlog.storage.log.log import Log
    from wire.records.legacy import LegacyBatch


NO_PRODUCER_ID = -1


def replay_log(log: Log, record_format: RecordFormat, shard: Shard) -> int:
    """Replay every record of `log`; return the offset after the last one.

    Raises:
        CorruptRecord: the log is damaged, so the state of the shard is unknown.
        KafkaError: the log refuses the read.
    """
    end_offset = log.log_end_offset
    for checked in read_checked(log):
        try:
            _replay_batch(checked.batch, record_format, shard)
        except ValueError as error:
            raise checked.corrupt(str(error)) from error
    return end_offset


def _replay_batch(
    batch: RecordBatch | LegacyBatch, record_format: RecordFormat, shard: Shard
) -> None:
    if batch.is_control:
        _replay_markers(batch, shard)
        return
    producer_id = batch.producer_id if batch.is_transactional else NO_PRODUCER_ID
    rows = tuples(batch) if isinstance(batch, RecordBatch) else batch.records()
    for offset, _, key, value, _ in rows:
        assert key is not None, offset
        record = record_format.decode(key, value)
        if record is not None:
            shard.replay(record, offset=offset, producer_id=producer_id)


def _replay_markers(batch: RecordBatch | LegacyBatch, shard: Shard) -> None:
    for record in batch.records():
        control_type = parse_control_type(record.key)
        if control_type in (ControlType.ABORT, ControlType.COMMIT):
            shard.end_transaction(
                batch.producer_id, is_committed=control_type == ControlType.COMMIT
            )
