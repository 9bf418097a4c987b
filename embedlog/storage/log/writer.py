"""Appending a batch to a log: choose the segment, write the bytes, publish them."""

from __future__ import annotations

from embedlog.storage.log.durability import SYNC_WINDOW_SIZE, LogDurability
from embedlog.storage.log_health import HARMLESS_ERRORS, LogHealth
from embedlog.storage.producers.append import write_snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog import errors
    from embedlog.runtime import Random
    from embedlog.runtime.files import Bytes
    from embedlog.storage.log.transactions import LogTransactions
    from embedlog.storage.log_config import LogConfig
    from embedlog.storage.segments.chain import SegmentChain
    from embedlog.storage.segments.segment import Segment


class LogWriter:
    """The writer of one log. Every method requires the partition lock.

    It writes a batch after the published end, and publishes it by one assignment (`Segment.end`).
    Whatever interrupts the append, a reader sees all of the batch or nothing.
    """

    __slots__ = (
        "_age_max",
        "_chain",
        "_config",
        "_durability",
        "_health",
        "_interval",
        "_random",
        "_transactions",
    )

    def __init__(
        self,
        chain: SegmentChain,
        durability: LogDurability,
        transactions: LogTransactions,
        health: LogHealth,
        random: Random,
    ) -> None:
        """`configure` must follow."""
        self._chain = chain
        self._durability = durability
        self._transactions = transactions
        self._health = health
        self._random = random

    def configure(self, config: LogConfig) -> None:
        self._config = config
        self._interval = config.index_interval_bytes
        jitter = min(config.segment_jitter_ms, config.segment_age_ms)
        self._age_max = config.segment_age_ms - (self._random.below(jitter) if jitter > 0 else 0)
        self._chain.zeroed = config.durability == "fsync"
        active = self._chain.segments[-1]
        active.limits.forget()
        active.file.zeroed = self._chain.zeroed

    def append(
        self,
        segment: Segment,
        buffers: Sequence[Bytes],
        size: int,
        *,
        first_offset: int,
        last_offset: int,
        latest: int,
        now_ms: int,
    ) -> None:
        """Write one batch, already stamped with its offsets and epoch, and publish it.

        `segment` is the log's last segment; if it is full, the batch goes into a new one. `latest`
        is the batch's largest timestamp, `now_ms` is wall time.
        """
        limits = segment.limits
        _, position, largest, holder = segment.end
        if (
            position + size > limits.size_max
            or last_offset > limits.offset_max
            or latest > limits.time_max
            or latest < 0
        ):
            segment = self._segment_for(
                segment,
                size,
                first_offset=first_offset,
                last_offset=last_offset,
                latest=latest,
                now_ms=now_ms,
            )
            _, position, largest, holder = segment.end
        if latest > largest:
            largest, holder = latest, last_offset
        try:
            segment.file.write(buffers, size, position)
        except OSError as error:
            raise self._write_failed(segment, error) from error
        # This publishes the batch. If an interrupt prevents the rest of the append, the next append
        # brings the state up to date.
        segment.end = (last_offset + 1, position + size, largest, holder)
        segment.modified_ms = now_ms
        segment.indexes.count(last_offset, position, size, self._interval, segment.end)

    def _segment_for(
        self,
        segment: Segment,
        size: int,
        *,
        first_offset: int,
        last_offset: int,
        latest: int,
        now_ms: int,
    ) -> Segment:
        """Return the segment for the next `size` bytes: the last, or a new one if the last is full.

        At durability `fsync` this also syncs if the bytes would exceed the sync window, whose end
        is one of the segment's limits.
        """
        position = segment.end[1]
        if segment.limits.is_reached(
            self._config,
            self._age_max,
            base_offset=segment.base_offset,
            position=position,
            size=size,
            last_offset=last_offset,
            latest=latest,
            now_ms=now_ms,
            entry_count=len(segment.indexes.load(position)[0]) if position else 0,
        ):
            segment = self.roll(first_offset, now_ms)
        if segment.file.zeroed:
            self._durability.keep_window(segment, size)
            window_end = segment.synced_size + SYNC_WINDOW_SIZE
            segment.limits.size_max = min(segment.limits.size_max, window_end)
        if segment.end[1] == 0:
            segment.limits.first_timestamp = latest
        return segment

    def _write_failed(self, segment: Segment, error: OSError) -> errors.KafkaError:
        error.filename = segment.path  # the error of a call on a descriptor has no file name
        segment.limits.forget()
        try:
            segment.file.cut_to(segment.size)
        except OSError as second:
            if second.errno not in HARMLESS_ERRORS:
                return self._health.poison(second)
            segment.file.distrust_capacity()
        return self._health.refused(error)

    def roll(self, base_offset: int, now_ms: int | None = None) -> Segment:
        """Finish the last segment; begin and return one at `base_offset`.

        If the last segment is empty and already begins there, return it. `now_ms` is wall time.
        """
        chain, durability = self._chain, self._durability
        former = chain.segments[-1]
        if former.size == 0 and former.base_offset == base_offset:
            return former
        segment = chain.new(base_offset, now_ms)
        is_kept, is_durable = self._config.durability != "memory", chain.zeroed
        try:
            if is_kept:
                # This cuts the file to its content. It comes before the sync, because recovery does
                # not look for zeros at the end of a synced segment.
                former.finish()
                producers = self._transactions.producers
                write_snapshot(chain.files, chain.directory, producers, base_offset)
            if is_durable or (durability.synced_offset >= base_offset and is_kept):
                # Sync even if all its records are synced: the cut must be synced too, because a
                # recovery that begins in the next segment does not look for zeros in this one.
                durability.sync_cut(former)
            segment.file.create()
        except OSError as error:
            raise self._health.refused(error) from error
        if is_durable:
            durability.sync_name(segment)
        chain.segments = (*chain.segments, segment)
        return segment
