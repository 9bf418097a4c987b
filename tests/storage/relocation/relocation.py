"""Moves for tests: two data directories, a log with records of every kind, and its mover."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedlog.common import TopicPartition
from embedlog.storage import paths
from embedlog.storage.data_directories import DataDirectories
from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import LogConfig
from embedlog.storage.relocation.leftovers import settle
from embedlog.storage.relocation.relocations import Relocations
from embedlog.testing import SimFiles, SimRuntime, sim_runtime
from tests.storage.cleaner.compaction import committed_rows, rows
from tests.storage.logs import PARTITION, check
from tests.storage.staging.replacement.replacement import fill

HERE, THERE = "here", "there"
SLICES_MAX = 10_000


class Metadata:
    """The log's directory as the controller knows it, which outlives every process."""

    def __init__(self) -> None:
        self.directory_id: bytes | None = None
        self._placed: bytes | None = None

    def placed(self, _topic_partition: TopicPartition, directory_id: bytes) -> None:
        """Note the log's directory; `report` follows."""
        self._placed = directory_id

    def report(self) -> None:
        """Keep it."""
        self.directory_id = self._placed or self.directory_id

    def close(self) -> None:
        """Nothing."""


class Moving:
    """Opened again on another one's `disk`, or with a log of everything in `HERE`."""

    def __init__(
        self,
        disk: SimFiles | None = None,
        *,
        rate: int | None = None,
        slice_size: int = 4 << 20,
        last_size: int = 0,
        metadata: Metadata | None = None,
        **settings: object,
    ) -> None:
        self.runtime: SimRuntime = sim_runtime(files=disk)
        self.disk: SimFiles = self.runtime.files
        self.rate = rate
        self.config = LogConfig(**{"segment_bytes": 600, "index_interval_bytes": 100, **settings})
        level = LogConfig(durability=self.config.durability)
        self.here = LogManager(self.runtime, HERE, level)
        self.there = LogManager(self.runtime, THERE, level)
        self.here.directory.id, self.there.directory.id = b"h" * 16, b"t" * 16
        self.metadata = metadata or Metadata()
        self.both = DataDirectories((self.here, self.there))
        self.both.keeper = self.metadata
        settle(self.both.managers, lambda _: self.metadata.directory_id)
        for manager in self.both.managers:
            manager.configure(PARTITION.topic, self.config)
        self.relocations = Relocations(
            self.runtime,
            self.both,
            lambda: self.rate,
            slice_size=slice_size,
            last_size=last_size,
        )
        is_new = self.both.holder(PARTITION) is None
        known = self.metadata.directory_id
        self.log: Log = self.both.get_or_create(PARTITION, directory_id=known)
        self.both.report()
        if is_new:
            self.here.opener.identify(self.log, bytes(15) + b"i")
            fill(self.log)
            self.commit()
            self.log.offsets.increment_log_start_offset(3)
            self.here.checkpoints.write_positions()

    def commit(self) -> None:
        """Raise the high watermark to the log's end."""
        if self.config.durability == "fsync":
            self.log.durability.flush()
        self.log.offsets.commit(self.config.durability == "fsync")

    def compact(self) -> None:
        """Make the log a compacted one."""
        config = LogConfig(
            segment_bytes=600,
            index_interval_bytes=100,
            durability=self.config.durability,
            cleanup_policy="compact",
            min_cleanable_dirty_ratio=0.0,
        )
        for manager in self.both.managers:
            manager.configure(PARTITION.topic, config)

    def ask(self, target: LogManager | None = None) -> None:
        """Request the move, to `THERE` by default."""
        self.relocations.start(PARTITION, (target or self.there).directory.path)

    def resume(self) -> None:
        """Continue the moves of an earlier process."""
        for topic_partition, target in self.relocations.take_cut_short().items():
            self.relocations.start(topic_partition, target.directory.path)

    def go_on(self, between: Callable[[], object] = lambda: None) -> int:
        """Make slices until the move is done; return how many."""
        for count in range(SLICES_MAX):
            if self.relocations.run_once(0) is None:
                return count
            between()
        raise AssertionError("the move does not end")

    def move(self, target: LogManager | None = None) -> None:
        """Request the move, and make it."""
        self.ask(target)
        self.go_on()

    @property
    def place(self) -> str:
        """Return the data directory of the log."""
        [holder] = [each for each in self.both.managers if each.has(PARTITION)]
        assert holder.get(PARTITION) is self.log
        assert self.log.directory == paths.log_directory(holder.directory.path, PARTITION)
        return holder.directory.path

    def names(self, data: str) -> list[str]:
        """Return the directories of logs in one data directory, copies included."""
        return [name for name in self.disk.list(data) if name.startswith(PARTITION.topic)]

    def check(self) -> None:
        """Raise unless there is one log, whole, and nothing else."""
        assert self.log.failure is None, self.log.failure
        check(self.log)
        other = THERE if self.place == HERE else HERE
        assert self.names(self.place) == ["events-0"]
        assert self.names(other) == []
        assert not self.disk.stat(f"{self.log.directory}/{paths.COPIED_HERE}")

    def close(self) -> None:
        """Close both."""
        self.relocations.stop()
        for manager in self.both.managers:
            manager.close()

    def told(self) -> tuple[Any, ...]:
        """Return everything that a reader or a producer may get from the log."""
        log = self.log
        producers = sorted(
            (one.producer_id, one.producer_epoch, one.last_sequence, one.current_txn_first_offset)
            for one in log.transactions.producers
        )
        return (
            rows(log),
            committed_rows(log),
            log.offsets.log_start_offset,
            log.offsets.high_watermark,
            log.offsets.last_stable_offset,
            log.transactions.aborted(0, log.log_end_offset),
            log.epochs.cache.entries,
            log.topic_id,
            producers,
        )
