"""Replay: from the log of a coordinator's partition to the state of its shard.

Later records replace earlier ones of the same key, so only the last value of each key is decoded
and replayed: most records of a queue that commits often are superseded long before compaction
removes them. Tombstones are all replayed, and all records of a format whose records add to each
other. Records of unknown types come from another version and
are skipped. Records of a transaction carry their producer's id and count once its commit marker is
read.
"""

from __future__ import annotations

from embedlog.storage.log.checked_read import read_checked
from wire.records.batch import RecordBatch
from wire.records.control import ControlType, parse_control_type
from wire.records.decode.choose import tuples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

    from embedlog.coordinator.records import RecordFormat
    from embedlog.coordinator.shard_context import Shard
    from embedlog.storage.log.checked_read import CheckedBatch
    from embedlog.storage.log.log import Log
    from wire.records.legacy import LegacyBatch
    from wire.schema import Payload


NO_PRODUCER_ID = -1


def replay_log(log: Log, record_format: RecordFormat, shard: Shard) -> int:
    """Replay `log`; return the offset after the last record.

    Raises:
        CorruptRecord: the log is damaged, so the state of the shard is unknown.
        KafkaError: the log refuses the read.
    """
    end_offset = log.log_end_offset
    replay = _Replay(record_format, shard)
    for checked in read_checked(log):
        replay.add(checked)
    replay.flush()
    return end_offset


class _Replay:
    """The replay of one log. It holds back records that a later one may supersede."""

    def __init__(self, record_format: RecordFormat, shard: Shard) -> None:
        self._format = record_format
        self._shard = shard
        self._held: dict[Hashable, tuple[bytes, Payload | None, int, CheckedBatch]] = {}
        """Key -> (key, value, offset, batch), in the order of the offsets. A record that none
        supersedes has a key of its own."""

    def add(self, checked: CheckedBatch) -> None:
        batch = checked.batch
        if batch.is_control or batch.is_transactional:
            # Their records count later than others, so no record before them is held any longer.
            self.flush()
        try:
            if batch.is_control:
                _replay_markers(batch, self._shard)
                return
            rows = tuples(batch) if isinstance(batch, RecordBatch) else batch.records()
            held = self._held
            for offset, _, key, value, _ in rows:
                assert key is not None, offset
                key = bytes(key)
                if value is None or self._format.is_cumulative:
                    held[key, offset] = (key, value, offset, checked)
                else:
                    held.pop(key, None)
                    held[key] = (key, value, offset, checked)
        except ValueError as error:
            raise checked.corrupt(str(error)) from error
        if batch.is_transactional:
            self.flush(batch.producer_id)
        elif self._format.is_cumulative:
            self.flush()

    def flush(self, producer_id: int = NO_PRODUCER_ID) -> None:
        """Replay the held records."""
        for key, value, offset, checked in self._held.values():
            try:
                record = self._format.decode(key, value)
            except ValueError as error:
                raise checked.corrupt(str(error)) from error
            if record is not None:
                self._shard.replay(record, offset=offset, producer_id=producer_id)
        self._held.clear()


def _replay_markers(batch: RecordBatch | LegacyBatch, shard: Shard) -> None:
    for record in batch.records():
        control_type = parse_control_type(record.key)
        if control_type in (ControlType.ABORT, ControlType.COMMIT):
            shard.end_transaction(
                batch.producer_id, is_committed=control_type == ControlType.COMMIT
            )
