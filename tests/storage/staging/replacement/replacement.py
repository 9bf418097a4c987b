"""Rewriting for tests: a log of closed segments with records of every kind, its owner, a job."""

from __future__ import annotations

from collections.abc import Sequence

from embedlog.storage.directory.log_manager import LogManager
from embedlog.storage.log.log import Log
from embedlog.storage.log_config import LogConfig
from embedlog.storage.staging.manifest import Replacement, ReplacingFile
from embedlog.storage.staging.replacer import Replacer
from embedlog.storage.staging.rewriting import Rewriter, RewriteRules, SegmentWriter
from embedlog.storage.verification.directory import DirectoryCheck
from embedlog.testing import SimFiles, SimRuntime, sim_runtime
from tests.storage.cleaner.compaction import Row, committed_rows
from tests.storage.logs import DATA, PARTITION, append, append_marker

ERASED = b"k1"


def fill(log: Log) -> None:
    """Append plain records, an idempotent producer's, committed, aborted and open transactions, a
    null key, two leader epochs, and an active segment.
    """
    sequence = 0
    for number in range(24):
        keys = [b"k%d" % (number % 4), None if number % 5 == 0 else b"k1"]
        values = [b"v%d" % number, b"w%d" % number]
        producer = (-1, -1, -1)
        is_transactional = number in (6, 14, 23)
        if number % 3 == 1:
            producer = (9, 0, sequence)
            sequence += 2
        if is_transactional:
            producer = (11, 0, {6: 0, 14: 2, 23: 4}[number])
        append(log, *values, keys=keys, producer=producer, transactional=is_transactional)
        if number in (9, 15):
            append_marker(log, 11, committed=number == 15)
        if number == 12:
            log.epochs.assign(1)
    log.roll()
    append(log, b"active", keys=[ERASED], epoch=1)


class Owned:
    """A manager with one log over a simulated disk, and its replacer."""

    def __init__(self, disk: SimFiles | None = None, **settings: object) -> None:
        self.runtime: SimRuntime = sim_runtime(files=disk)
        self.disk: SimFiles = self.runtime.files
        self.config = LogConfig(**{"segment_bytes": 600, "index_interval_bytes": 100, **settings})
        self.manager = LogManager(self.runtime, DATA, LogConfig(durability=self.config.durability))
        self.log: Log = self.manager.get_or_create(PARTITION, self.config)
        self.commit()  # the opening has flushed it
        self.replacer = Replacer(self.runtime, DATA, self.manager.leftovers.remove_files)

    def commit(self) -> None:
        """Raise the high watermark to the log's end."""
        self.log.offsets.commit(False)

    def fill(self) -> None:
        """The rows that `fill` appends, and the expected ones."""
        log = self.log
        fill(log)
        if self.config.durability == "fsync":
            log.durability.flush()
        self.commit()
        self.manager.checkpoints.write_positions()

    def stage(self, rules: RewriteRules, *, job: str = "job", latest=None) -> list[ReplacingFile]:
        """Rewrite every closed segment."""
        writer = SegmentWriter(self.disk, DATA, PARTITION, job=job, writer="task")
        rewriter = Rewriter(rules, latest)
        made = [writer.write(each.base_offset, rewriter) for each in self.log.segments[:-1]]
        return [each.file for each in made if each.file is not None]

    def replace(self, files: Sequence[ReplacingFile], *, id: str = "1") -> tuple[int, int]:
        """Swap the files in."""
        return self.replacer.replace(self.log, Replacement(id, PARTITION, files))

    def rewrite(self, rules: RewriteRules, **which: object) -> list[ReplacingFile]:
        """Stage and replace, as a job does."""
        files = self.stage(rules, **which)
        if files:
            self.replace(files)
        return files

    def findings(self) -> list[str]:
        """Return the damage."""
        return [str(each) for each in DirectoryCheck(self.disk, DATA, lambda _: None).findings()]


def without(rows: Sequence[Row], key: bytes, *, below: int) -> list[Row]:
    """Return the rows without a key's, below an offset."""
    return [row for row in rows if row[1] != key or row[0] >= below]


def committed(owned: Owned) -> list[Row]:
    """Return the rows of a read_committed reader."""
    return committed_rows(owned.log)
