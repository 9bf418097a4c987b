"""Makes and cleans compacted logs for tests, and checks their invariants."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from embedlog.storage.cleaner.cleaner import LogCleaner
from embedlog.storage.cleaner.settings import DefaultSettings
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import LogConfig
from embedlog.testing import SimFiles, SimRuntime, sim_runtime
from tests.storage.logs import DATA, PARTITION, append, uncleanable
from wire.records.batch import RecordBatch, iter_batches

SETTINGS = {
    "cleanup_policy": "compact",
    "segment_bytes": 400,
    "index_interval_bytes": 100,
    "min_cleanable_dirty_ratio": 0.0,
    "delete_retention_ms": 3_600_000,
}
BACKOFF_MS = 15_000

Row = tuple[int, bytes | None, bytes | None]
"""(offset, key, value)."""


class Compacted:
    """A manager with one compacted log, and its clock."""

    def __init__(
        self,
        disk: SimFiles | None = None,
        *,
        cleaner: DefaultSettings | None = None,
        **settings: object,
    ) -> None:
        self.runtime: SimRuntime = sim_runtime(files=disk)
        self.config = LogConfig(**{**SETTINGS, **settings})
        self.manager = LogManager(
            self.runtime,
            DATA,
            LogConfig(durability=self.config.durability),
            cleaner_settings=cleaner,
        )
        self.log: Log = self.manager.get_or_create(PARTITION, self.config)

    @property
    def now_ms(self) -> int:
        """Wall time."""
        return self.runtime.clock.wall_ms()

    def put(self, *pairs: tuple[str | None, str | None], **fields) -> int:
        """Append one batch of (key, value), and commit it; return its first offset."""
        keys = [None if key is None else key.encode() for key, _ in pairs]
        values = [None if value is None else value.encode() for _, value in pairs]
        first = append(self.log, *values, keys=keys, now_ms=self.now_ms, **fields)
        self.commit()
        return first

    def commit(self) -> None:
        """Raise the high watermark to the log's end."""
        self.log.offsets.update_high_watermark(self.log.log_end_offset)

    def clean(self, each: Callable[[], object] = lambda: None) -> None:
        """Let the cleaner do everything that is due; `each` is called after every slice."""
        self.log.roll()
        self.wait(2 * BACKOFF_MS, each)
        assert uncleanable(self.manager) == {}

    def clean_at_once(self) -> None:
        """Clean everything while time stands still."""
        tasks = self.manager.tasks
        cleaner = LogCleaner(
            self.manager.logs,
            DefaultSettings(),
            self.runtime.clock,
            checkpoint=self.manager.checkpoints.write_positions,
            remove=tasks.unlink_later,
        )
        while cleaner.run_once() is not None:
            pass
        assert cleaner.uncleanable == {}

    def wait(self, delay_ms: int, each: Callable[[], object] = lambda: None) -> None:
        """Let time pass and the manager do its work."""
        clock = self.runtime.clock
        end = clock.monotonic_ms() + delay_ms
        self.manager.tasks.stir()
        while (now_ms := clock.monotonic_ms()) < end:
            delay = self.manager.tasks.run_once(now_ms)
            each()
            assert delay is not None
            clock.advance(min(delay, end - now_ms))

    def reopened(self, *, cleanly: bool = True, **settings: object) -> Compacted:
        """Return the same directory in the next process."""
        if cleanly:
            self.manager.close()
        again = Compacted(self.runtime.files.survivor(), **settings)
        again.runtime.clock.advance(self.now_ms - again.now_ms)
        again.commit()
        return again


def rows(log: Log) -> list[Row]:
    """Return every record that a read from the log's start gets."""
    return [
        (record.offset, record.key, record.value)
        for one in batches_read(log)
        if not one.is_control
        for record in one.records()
    ]


def committed_rows(log: Log) -> list[Row]:
    """Return the records of a read_committed reader, which gets the aborted transactions of a fetch
    answer.
    """
    end = log.offsets.last_stable_offset
    aborted = log.transactions.aborted(log.offsets.log_start_offset, end)
    waiting = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
    skipped: set[int] = set()
    found: list[Row] = []
    for one in batches_read(log):
        if one.next_offset > end:
            break
        while waiting and waiting[-1].first_offset <= one.last_offset:
            skipped.add(waiting.pop().producer_id)
        if one.is_control:
            for record in one.records():
                if record.key == bytes(4):
                    skipped.discard(one.producer_id)
        elif not (one.is_transactional and one.producer_id in skipped):
            found += [(record.offset, record.key, record.value) for record in one.records()]
    return found


def batches_read(log: Log) -> list[RecordBatch]:
    """Yield every batch, read as a consumer reads: span by span, each from the end of the one
    before.
    """
    found: list[RecordBatch] = []
    offset = log.offsets.log_start_offset
    while offset < log.log_end_offset:
        read = log.reader.read(offset, max_bytes=300, end_offset=log.log_end_offset)
        for one in iter_batches(read.records):
            assert isinstance(one, RecordBatch)
            found.append(one)
        assert read.next_offset > offset or not len(read.records)
        if read.next_offset == offset:
            break  # the log's end was compacted away
        offset = read.next_offset
    return found


def check_compacted(log: Log) -> None:
    """Raise unless all invariants of a compacted log hold."""
    expected = log.segments[0].base_offset
    assert (
        expected
        <= log.offsets.log_start_offset
        <= log.offsets.last_stable_offset
        <= log.offsets.high_watermark
    )
    for segment, following in zip(log.segments, log.segments[1:], strict=False):
        assert segment.next_offset <= following.base_offset
    for segment in log.segments:
        size = segment.size
        position, largest = 0, -1
        assert segment.base_offset >= expected
        for one in iter_batches(segment.file.view(0, size)):
            assert isinstance(one, RecordBatch)
            assert one.is_valid_crc(), one
            assert one.base_offset >= max(expected, segment.base_offset), one
            for offset in {one.base_offset, one.last_offset}:
                assert segment.indexes.position_of(offset, size) == position
            for record in one.records():
                assert one.base_offset <= record.offset <= one.last_offset
            expected = one.next_offset
            largest = max(largest, one.max_timestamp)
            position += one.size
        assert position == size
        assert segment.largest()[0] == largest
        assert segment.next_offset >= expected
    assert [one.base_offset for one in batches_read(log)] == [
        one.base_offset for one in stored_batches(log)
    ]


def stored_batches(log: Log) -> list[RecordBatch]:
    """Yield every batch in the files, from the log's start on."""
    return [
        one
        for segment in log.segments
        for one in iter_batches(segment.file.view(0, segment.size))
        if isinstance(one, RecordBatch) and one.last_offset >= log.offsets.log_start_offset
    ]


def latest(pairs: Iterable[Row]) -> dict[bytes | None, bytes]:
    """Return key -> last value, without deleted keys: the state of a reader of the whole topic."""
    known: dict[bytes | None, bytes] = {}
    for _, key, value in pairs:
        if value is None:
            known.pop(key, None)
        else:
            known[key] = value
    return known
