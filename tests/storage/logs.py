"""Makes logs for tests, and checks the invariants of every log."""

from __future__ import annotations

from collections.abc import Sequence

from embedlog.common import TopicPartition
from embedlog.runtime import Runtime
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import LogConfig
from embedlog.storage.validation.origin import AppendOrigin
from embedlog.testing import SimFiles, SimRuntime, sim_runtime
from wire.records.batch import RecordBatch, iter_batches
from wire.records.encode.builder import build_batch

NOW = 1_700_000_000_000
PARTITION = TopicPartition("events", 0)
DATA = "data"


def batch(
    *values: bytes | None,
    timestamps: int | Sequence[int] = NOW,
    keys: Sequence[bytes | None] | None = None,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    **fields: int,
) -> bytes:
    """Return a batch as a client sends it; `producer` is (id, epoch, first sequence)."""
    producer_id, producer_epoch, base_sequence = producer
    return build_batch(
        list(values),
        timestamps=timestamps,
        keys=keys,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        **fields,
    )


def append(log: Log, *values: bytes | None, epoch: int = 0, now_ms: int = NOW, **fields) -> int:
    """Append one batch as the leader; return its first offset."""
    records = batch(*values, **fields)
    return log.append_as_leader(records, leader_epoch=epoch, now_ms=now_ms).first_offset


def append_marker(log: Log, producer_id: int, *, committed: bool, epoch: int = 0) -> int:
    """End a producer's transaction; return the marker's offset."""
    marker = build_batch(
        [bytes(2) + (7).to_bytes(4, "big")],
        keys=[bytes(2) + int(committed).to_bytes(2, "big")],
        timestamps=NOW,
        producer_id=producer_id,
        producer_epoch=epoch,
        transactional=True,
        control=True,
    )
    info = log.append_as_leader(marker, leader_epoch=0, now_ms=NOW, origin=AppendOrigin.COORDINATOR)
    return info.first_offset


def batches(log: Log, start: int | None = None) -> list[RecordBatch]:
    """Return every batch from `start` on, read span by span."""
    found: list[RecordBatch] = []
    offset = log.offsets.log_start_offset if start is None else start
    while offset < log.log_end_offset:
        read = log.reader.read(offset, max_bytes=1 << 30, end_offset=log.log_end_offset)
        assert len(read.records), (offset, log)
        for one in iter_batches(read.records):
            assert isinstance(one, RecordBatch)
            found.append(one)
        assert read.next_offset > offset
        offset = read.next_offset
    return found


def values(log: Log, start: int | None = None) -> list[bytes | None]:
    """Return every record's value from `start` on."""
    first = log.offsets.log_start_offset if start is None else start
    return [
        record.value
        for one in batches(log, first)
        for record in one.records()
        if record.offset >= first
    ]


def manager(
    disk: SimFiles | None = None, *, config: LogConfig | None = None, runtime: Runtime | None = None
) -> LogManager:
    """Return a manager of simulated data, on an earlier run's `disk` if there is one."""
    if runtime is None:
        runtime = sim_runtime(files=disk)
    return LogManager(runtime, DATA, config or LogConfig())


def new_log(*, disk: SimFiles | None = None, runtime: SimRuntime | None = None, **settings) -> Log:
    """Return an empty log (or the one on `disk`) with these settings."""
    config = LogConfig(**settings)
    log = manager(disk, config=config, runtime=runtime).get_or_create(PARTITION, config=config)
    check(log)
    return log


def uncleanable(owner: LogManager) -> dict[TopicPartition, str]:
    """Return the logs that compaction has failed on, and why."""
    cleaner = owner.tasks.cleaner
    if cleaner is None:
        return {}
    return {log.topic_partition: why for log, (_, why) in cleaner.uncleanable.items()}


def check(log: Log) -> None:
    """Raise unless all invariants of a log between two operations hold."""
    end = log.log_end_offset
    assert (
        0
        <= log.offsets.log_start_offset
        <= log.offsets.last_stable_offset
        <= log.offsets.high_watermark
        <= end
    ), log
    assert 0 <= log.durability.synced_offset <= end
    segments = log.segments
    assert segments[0].base_offset <= log.offsets.log_start_offset
    for segment, following in zip(segments, segments[1:], strict=False):
        assert segment.next_offset <= following.base_offset
    expected = segments[0].base_offset
    epoch = -1
    for segment in segments:
        size = segment.size
        position = 0
        largest = -1
        for one in iter_batches(segment.file.view(0, size)):
            assert isinstance(one, RecordBatch)
            assert one.base_offset == expected, (one, expected)
            assert one.is_valid_crc(), one
            assert one.partition_leader_epoch >= epoch
            for offset in {one.base_offset, one.last_offset}:
                assert segment.indexes.position_of(offset, size) == position
            epoch, expected = one.partition_leader_epoch, one.next_offset
            largest = max(largest, one.max_timestamp)
            position += one.size
        assert position == size, (segment, position)
        assert segment.largest()[0] == largest
        assert segment.next_offset == expected
    assert log.epochs.latest >= epoch
