"""Writing seeds: batches that the leader of a partition appends, as for a producer.

The append goes through the leader and waits for the in-sync replicas. It is no request, so fault
rules and the timeline of the test do not see it. A timestamp beyond message.timestamp.before.max.ms
or message.timestamp.after.max.ms is written all the same: the limits are checked against the
record's own time. On topics with LogAppendTime the given time is the append time.

Retention holds for seeds as for all records: the first run comes 30 s after the start of the
cluster, then one every log.retention.check.interval.ms (5 minutes). A run removes a segment whose
newest record is older than retention.ms.

A gap of offsets is a batch without records, which compaction leaves as well: every client passes
over it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from embedlog.client.producer.partitioners import POSITIVE, murmur2
from embedlog.errors import ConfigError, IllegalState, TimedOut
from embedlog.replication.replica_manager import CURRENT_MAGIC
from embedlog.runtime.outer_call import outer
from embedlog.storage.validation.origin import AppendOrigin
from embedlog.testing.names import hint
from embedlog.testing.topics.record import Formats, LogRecord
from embedlog.testing.topics.seeds import Seed
from wire.records import CODEC_NAMES, build_batch
from wire.records.encode.builder import seal
from wire.records.format import CHECKED_HEAD

if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.replication.partition import Partition
    from embedlog.storage.log_config import LogConfig
    from embedlog.testing.topics.logs import Logs

_BATCH_COUNT_MAX = 1000
_BATCH_SIZE_MAX = 256 << 10
_RECORD_OVERHEAD = 32
_DELTA_MAX = 2**31 - 1
_COMMIT_TIMEOUT_MS = 10_000
_NO_TIMESTAMP = -1


def codec_of(name: str | None) -> int:
    """Return the id of a codec.

    Raises:
        ConfigError: there is no such codec.
    """
    if name is None:
        return 0
    if name not in CODEC_NAMES:
        raise ConfigError(f"compression={name!r}: {hint(name, CODEC_NAMES)}")
    return CODEC_NAMES.index(name)


class Seeder:
    """Writes seeds to one topic."""

    def __init__(self, logs: Logs, topic: str, formats: Formats) -> None:
        self._logs = logs
        self._topic = topic
        self._formats = formats

    def write(self, seeds: Sequence[Seed], *, compression: str | None = None) -> list[LogRecord]:
        """Append the seeds, and return them as records in the same order.

        The partitions are checked first; then each partition gets its seeds in the given order.
        """
        codec = codec_of(compression)
        by_partition: dict[int, list[int]] = {}
        self._logs.check(self._topic)
        count = self._logs.partition_count(self._topic)
        for place, each in enumerate(seeds):
            by_partition.setdefault(self._partition_of(each, count), []).append(place)
        written: dict[int, LogRecord] = {}
        for index, places in by_partition.items():
            offsets = self._write_to(index, [seeds[place] for place in places], codec)
            for place, (offset, timestamp) in zip(places, offsets, strict=True):
                each = seeds[place]
                written[place] = LogRecord(
                    self._topic,
                    index,
                    offset,
                    timestamp,
                    each.key,
                    each.value,
                    each.headers,
                    self._formats,
                )
        return [written[place] for place in range(len(seeds))]

    def _partition_of(self, seed: Seed, count: int) -> int:
        chosen = seed.partition
        if chosen is not None:
            if type(chosen) is not int or not 0 <= chosen < count:
                self._logs.check_partition(self._topic, chosen)  # raises
            return chosen
        if seed.key is None:
            return self._logs.next_turn(self._topic) % count
        return (murmur2(seed.key) & POSITIVE) % count

    def _write_to(self, index: int, seeds: list[Seed], codec: int) -> Iterator[tuple[int, int]]:
        """Append to a partition; return offset and timestamp of each seed."""
        core, partition = self._logs.leader(self._topic, index)
        wall_ms = self._logs.runtime.clock.wall_ms()
        config = partition.log.config
        for each in seeds:
            each.timestamp = wall_ms if each.timestamp is None else each.timestamp
        places: list[tuple[int, int]] = []
        for batch in _batches(seeds, config):
            at_offset = batch[0].at_offset
            if at_offset is not None:
                _skip_to(core, partition, at_offset)
            times = [each.timestamp or 0 for each in batch]
            first = append(
                core,
                partition,
                build_batch(
                    [each.value for each in batch],
                    keys=[each.key for each in batch],
                    timestamps=times,
                    headers=[each.headers for each in batch],
                    codec=codec,
                ),
                now_ms=_time_of_append(times, config, wall_ms),
            )
            places += [(first + number, time) for number, time in enumerate(times)]
        return iter(places)


def skip(logs: Logs, topic: str, count: int, index: int) -> int:
    """Leave a gap of `count` offsets at the end of a partition; return the next offset."""
    if type(count) is not int or count < 1:
        raise ConfigError(f"skip({count!r}): expected a number of offsets from 1 on")
    core, partition = logs.leader(topic, index)
    end = partition.log.log_end_offset + count
    _skip_to(core, partition, end)
    return end


def _skip_to(core: Broker, partition: Partition, offset: int) -> None:
    end = partition.log.log_end_offset
    if offset < end:
        raise IllegalState(
            f"{partition.topic_partition} ends at offset {end}: no record can get offset {offset}"
        )
    while end < offset:
        count = min(offset - end, _DELTA_MAX)
        append(
            core,
            partition,
            _empty_batch(count),
            now_ms=core.replica_manager.runtime.clock.wall_ms(),
        )
        end += count


def _empty_batch(count: int) -> bytes:
    """Return a batch of no records that takes `count` offsets."""
    no_producer = (-1, -1, -1)
    head = CHECKED_HEAD.pack(0, count - 1, _NO_TIMESTAMP, _NO_TIMESTAMP, *no_producer, 0)
    return seal(0, -1, head, [b""])


@outer
def append(core: Broker, partition: Partition, batch: bytes, *, now_ms: int) -> int:
    """Append as the leader, and wait until the in-sync replicas have the batch.

    Return the first offset. `now_ms` is the wall time of the append.

    Raises:
        KafkaError: the errors of a produce request with acks=all.
        TimedOut: replicas that count as in sync do not follow. The records stay in the log.
    """
    manager, scheduler = core.replica_manager, core.replica_manager.runtime.scheduler
    info = partition.append(
        batch,
        acks=-1,
        origin=AppendOrigin.COORDINATOR,  # a client's batch needs as many records as offsets
        magic_limits=CURRENT_MAGIC,
        now_ms=now_ms,
    )
    manager.appended(partition, is_awaited=True)
    if core.log_manager.tasks.is_resting:
        core.log_manager.tasks.stir()
    if partition.log.offsets.high_watermark <= info.last_offset:
        # The operation outlives the wait, whose error says more.
        pending: Any = manager.await_append(2 * _COMMIT_TIMEOUT_MS, partition, info)
        if not scheduler.wait(pending, _COMMIT_TIMEOUT_MS):
            raise TimedOut(
                f"{partition.topic_partition}: the in-sync replicas {partition.isr} did not get "
                f"offset {info.last_offset} in {_COMMIT_TIMEOUT_MS / 1000:g} s"
            )
        pending.result()
    scheduler.drive()
    return info.first_offset


def _batches(seeds: list[Seed], config: LogConfig) -> Iterator[list[Seed]]:
    """Yield seeds in batches that the broker takes, each with seeds of similar times."""
    size_max = min(_BATCH_SIZE_MAX, config.max_message_bytes // 2, config.segment_bytes // 2)
    batch: list[Seed] = []
    size, least, most = 0, 0, 0
    for each in seeds:
        time = each.timestamp or 0
        more = _RECORD_OVERHEAD + len(each.value or b"") + len(each.key or b"")
        more += sum(len(name) + len(value or b"") + 16 for name, value in each.headers)
        is_far = max(most, time) - min(least, time) > _spread_max(config)
        if batch and (
            each.at_offset is not None
            or is_far
            or size + more > size_max
            or len(batch) == _BATCH_COUNT_MAX
        ):
            yield batch
            batch = []
        if not batch:
            size, least, most = 0, time, time
        batch.append(each)
        size, least, most = size + more, min(least, time), max(most, time)
    if batch:
        yield batch


def _spread_max(config: LogConfig) -> int:
    return 0 if config.log_append_time else config.message_timestamp_before_max_ms


def _time_of_append(times: list[int], config: LogConfig, wall_ms: int) -> int:
    """Return the wall time for an append: now, unless the topic would refuse the timestamps."""
    is_ordinary = (
        not config.log_append_time
        and wall_ms - min(times) <= config.message_timestamp_before_max_ms
        and max(times) - wall_ms <= config.message_timestamp_after_max_ms
    )
    return wall_ms if is_ordinary else max(times)
