"""A coordinator's log is replayed as if it had been compacted."""

from __future__ import annotations

from typing import Any

from embedlog.coordinator.loading import replay_log
from embedlog.coordinator.records import GROUP_RECORD_TYPES, RecordFormat
from embedlog.coordinator.result import CoordinatorRecord
from embedlog.storage.log.log import Log
from embedlog.storage.validation.origin import AppendOrigin
from tests.storage.logs import NOW, append_marker, new_log
from wire.records.encode.builder import build_batch
from wire.schemas.group_metadata import OffsetCommitKey, OffsetCommitValue

FORMAT = RecordFormat(GROUP_RECORD_TYPES)


class Told:
    """A shard that notes its calls, as (partition, offset committed or None, offset, producer)."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def replay(self, record: CoordinatorRecord, *, offset: int, producer_id: int = -1) -> None:
        value = None if record.value is None else record.value.offset
        self.calls.append((record.key.partition, value, offset, producer_id))

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        self.calls.append((producer_id, is_committed))


def _put(log: Log, *offsets: tuple[int, int | None], producer_id: int = -1) -> None:
    """Append a batch of commits (partition, offset); None for a tombstone."""
    pairs = [
        FORMAT.encode(
            CoordinatorRecord(
                OffsetCommitKey(group="g", topic="t", partition=partition),
                None if offset is None else OffsetCommitValue(offset=offset),
            )
        )
        for partition, offset in offsets
    ]
    batch = build_batch(
        [value for _, value in pairs],
        keys=[key for key, _ in pairs],
        timestamps=NOW,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        transactional=producer_id >= 0,
    )
    log.append_as_leader(batch, leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR)


def _told(log: Log) -> list[Any]:
    shard = Told()
    assert replay_log(log, FORMAT, shard) == log.log_end_offset  # type: ignore[arg-type]
    return shard.calls


def test_only_the_last_value_of_a_key_is_replayed() -> None:
    log = new_log()
    for offset in range(100):
        _put(log, (0, offset), (1, offset))
    _put(log, (0, 500))
    assert _told(log) == [(1, 99, 199, -1), (0, 500, 200, -1)]


def test_tombstones_are_replayed_in_their_place() -> None:
    log = new_log()
    _put(log, (0, 1), (1, 2), (0, None), (1, 3), (0, None))
    assert _told(log) == [(0, 1, 0, -1), (0, None, 2, -1), (1, 3, 3, -1), (0, None, 4, -1)]


def test_records_around_a_transaction_keep_their_order() -> None:
    log = new_log()
    _put(log, (0, 1))
    _put(log, (0, 2), producer_id=7)
    _put(log, (0, 3))
    _put(log, (0, 4))
    append_marker(log, 7, committed=True)
    _put(log, (0, 5))
    assert _told(log) == [
        (0, 1, 0, -1),
        (0, 2, 1, 7),
        (0, 4, 3, -1),
        (7, True),
        (0, 5, 5, -1),
    ]
