"""Rewrites closed segments of a data directory: erasure, compaction, compression, larger batches.

Offsets do not change, so consumers, checkpoints and committed offsets stay valid. The tasks read
and stage; the owner of the directory (or the job, if there is no owner) checks the staged files and
swaps them in: see `embedlog.storage.staging`. A segment that changed meanwhile is refused and tried
again; the report names the segments that were not rewritten. If the job is killed, the log stays
whole and each segment is the old or the new one; run the job again to continue.

The active segment is never touched; with `roll`, a new one begins first. The report lists the
records to erase in this segment. Copies elsewhere (archives, replicas, quarantined files) stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

import embedlog
from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.errors import ConfigError, CorruptRecord
from embedlog.runtime import real_runtime
from embedlog.runtime.os_files import absolute
from embedlog.spark.access.directory import INTERNAL_TOPICS, stored_topic_id
from embedlog.spark.committer import commit
from embedlog.spark.jobs.report import Report
from embedlog.spark.jobs.tasks import run_tasks
from embedlog.spark.jobs.topics import partitions_of
from embedlog.spark.sink.options import CODECS
from embedlog.storage.staging import exchange
from embedlog.storage.staging.manifest import Replacement, ReplacingFile
from embedlog.storage.staging.rewriting import Rewriter, RewriteRules, SegmentWriter
from wire.records.errors import RecordsError

_ATTEMPTS = 3
_SEGMENTS_MAX = 16
"""Most segments of a task's manifest: the owner swaps them in under the partition's lock."""
_SIZE_MAX = 256 << 20
"""Most bytes of segments in one task; a larger segment has a task of its own."""
_WAVE = 4
"""Tasks for each core in one wave. A wave's files take disk space until they are swapped in."""
_OFFSETS_MAX = 1_000
_TIMEOUT_MS = 120_000


@dataclass(frozen=True, slots=True)
class _Share:
    """A task's work: closed segments of one partition, by base offset."""

    key: TopicPartition
    bases: tuple[int, ...]
    size: int


def rewrite(
    spark: SparkSession,
    path: str,
    topics: Sequence[str] = (),
    *,
    keys: Iterable[bytes] = (),
    compact: bool = False,
    compression: str | None = None,
    level: int | None = None,
    batch_size: int = 0,
    roll: bool = False,
    timeout_ms: int = _TIMEOUT_MS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Rewrite the closed segments of `topics`, or of all topics except internal ones.

    Every record with one of `keys` is erased. `compact` keeps the last committed record of each
    key, tombstones, and records without a key; a task holds the keys of one partition in memory.
    `compression` and `level` are Kafka's names. Batches without a producer id that are smaller than
    `batch_size` bytes are joined up to that size. `progress` gets bytes: done, total. A damaged
    segment is not changed, and is in the report.

    Raises:
        ConfigError: there is nothing to do, or the codec is unknown.
        UnknownTopicOrPartition: a topic does not exist.
        TimedOut: the owner does not answer.
    """
    path, erased = absolute(path), frozenset(keys)
    if compression is not None and compression not in CODECS:
        raise ConfigError(f"compression={compression!r}: expected one of {', '.join(CODECS)}")
    if batch_size < 0:
        raise ConfigError(f"batch_size={batch_size}: expected 0 or more")
    if not (erased or compact or compression is not None or batch_size or roll):
        raise ConfigError("keys, compact, compression, batch_size or roll: nothing is to be done")
    codec = None if compression is None else CODECS[compression]
    rules = RewriteRules(erased=erased, codec=codec, level=level, batch_size=batch_size)
    job = _Job(spark, path, rules, compact=compact, timeout_ms=timeout_ms)
    for topic in topics:
        if topic in INTERNAL_TOPICS:
            raise ConfigError(f"{topic} is written by its coordinator only")
    partitions = partitions_of(path, topics, internal=False)
    if roll:
        for key in partitions:
            job.roll(key)
    job.run(partitions, progress)
    left = dict(_left(spark, path, partitions, erased)) if erased else {}
    return job.report(partitions, left)


class _Job:
    """One run and its results by partition."""

    def __init__(
        self, spark: SparkSession, path: str, rules: RewriteRules, *, compact: bool, timeout_ms: int
    ) -> None:
        self._spark = spark
        self._path = path
        self._rules = rules
        self._compact = compact
        self._timeout_ms = timeout_ms
        self._runtime = real_runtime()
        self._counts: dict[TopicPartition, dict[str, int]] = {}
        self._refused: dict[TopicPartition, str] = {}
        self._damaged: dict[TopicPartition, list[str]] = {}

    def roll(self, key: TopicPartition) -> None:
        self._commit(Replacement(self._new_id(), key, is_roll=True))

    def run(
        self, partitions: Sequence[TopicPartition], progress: Callable[[int, int], None]
    ) -> None:
        """Rewrite the partitions; rewrite those with refused segments again."""
        pending = list(partitions)
        for _ in range(_ATTEMPTS):
            shares = [share for key in pending for share in _shares(self._path, key, self._compact)]
            total, done = sum(share.size for share in shares), 0
            self._refused = {}
            for key in pending:
                self._damaged.pop(key, None)
                self._counts.setdefault(key, dict(_NOTHING)).update(dict.fromkeys(_OF_ATTEMPT, 0))
            width = max(1, self._spark.sparkContext.defaultParallelism) * _WAVE
            for begin in range(0, len(shares), width):
                wave = shares[begin : begin + width]
                self._run_wave(wave)
                done += sum(share.size for share in wave)
                progress(done, total)
            pending = [key for key in pending if key in self._refused]
            if not pending:
                break

    def report(
        self, partitions: Sequence[TopicPartition], left: dict[TopicPartition, list[int]]
    ) -> Report:
        rows: list[dict[str, Any]] = []
        for key in partitions:
            row: dict[str, Any] = {"topic": key.topic, "partition": key.partition, **_NOTHING}
            row.update(self._counts.get(key, {}))
            if key in self._refused:
                row["refused"] = self._refused[key]
            if self._damaged.get(key):
                row["damaged"] = self._damaged[key]
            if left.get(key):
                row["left_count"] = len(left[key])
                row["left_offsets"] = left[key][:_OFFSETS_MAX]
            rows.append(row)
        counts = {name: sum(row[name] for row in rows) for name in _NOTHING}
        counts["refused"] = len(self._refused)
        counts["damaged"] = sum(map(len, self._damaged.values()))
        counts["left"] = sum(map(len, left.values()))
        return Report("rewrite", counts, tuple(rows))

    def _run_wave(self, shares: Sequence[_Share]) -> None:
        job = self._new_id()
        work = partial(_rewrite_share, self._path, self._rules, job, self._compact)
        files = self._runtime.files
        try:
            for slot, found in run_tasks(self._spark, work, shares):
                self._hand_over(shares[slot].key, found)
        finally:
            if not exchange.is_wanted(files, self._path, job):
                exchange.discard(files, self._path, job)
            exchange.tidy(files, self._path)

    def _hand_over(self, key: TopicPartition, found: dict[str, Any]) -> None:
        counts = self._counts.setdefault(key, dict(_NOTHING))
        self._damaged.setdefault(key, []).extend(found["damaged"])
        staged = [ReplacingFile.from_json(each) for each in found["files"]]
        try:
            for begin in range(0, len(staged), _SEGMENTS_MAX):
                some = staged[begin : begin + _SEGMENTS_MAX]
                self._commit(Replacement(self._new_id(), key, some, topic_id=found["topic_id"]))
                counts["rewritten"] += len(some)
        except (errors.KafkaStorageError, errors.UnknownTopicOrPartition) as error:
            self._refused[key] = str(error)
            return
        for name, count in found["counts"].items():
            counts[name] += count

    def _commit(self, replacement: Replacement) -> None:
        commit(self._path, replacement, timeout_ms=self._timeout_ms, runtime=self._runtime)

    def _new_id(self) -> str:
        return self._runtime.random.uuid().hex()


_NOTHING = dict.fromkeys(
    ("segments", "rewritten", "records", "erased", "superseded", "bytes_before", "bytes_after"), 0
)
_OF_ATTEMPT = ("segments", "records", "bytes_before", "bytes_after")
"""Counts that begin at 0 again when a partition with refused segments is rewritten as a whole."""


def _shares(path: str, key: TopicPartition, is_whole: bool) -> Iterator[_Share]:
    """Yield groups of neighbouring closed segments for the tasks; all in one if `is_whole`."""
    files = real_runtime().files
    with embedlog.open_reader(path) as reader:
        found = reader.partition(*key).segment_paths()[:-1]
    bases: list[int] = []
    total = 0
    for base, name in found:
        stat = files.stat(name)
        if stat is None or stat.size == 0:
            continue
        if bases and not is_whole and (
            total + stat.size > _SIZE_MAX or len(bases) == _SEGMENTS_MAX
        ):  # fmt: skip
            yield _Share(key, tuple(bases), total)
            bases, total = [], 0
        bases.append(base)
        total += stat.size
    if bases:
        yield _Share(key, tuple(bases), total)


def _rewrite_share(
    path: str, rules: RewriteRules, job: str, is_compacting: bool, share: _Share
) -> dict[str, Any]:
    runtime = real_runtime()
    with embedlog.open_reader(path) as reader:
        part = reader.partition(*share.key)
        try:
            topic_id = stored_topic_id(path, share.key).hex()
        except (FileNotFoundError, CorruptRecord):
            topic_id = ""
        latest = _latest(part, share.bases[-1]) if is_compacting else None
    rewriter = Rewriter(rules, latest)
    name = runtime.random.uuid().hex()
    writer = SegmentWriter(runtime.files, path, share.key, job=job, writer=name)
    made, damaged = [], []
    for base in share.bases:
        try:
            made.append(writer.write(base, rewriter))
        except FileNotFoundError:
            continue  # retention has removed it meanwhile
        except (CorruptRecord, RecordsError) as error:
            damaged.append(f"segment {base}: {error}")
    return {
        "topic_id": topic_id,
        "damaged": damaged,
        "files": [each.file.to_json() for each in made if each.file is not None],
        "counts": {
            "segments": len(made),
            "records": rewriter.record_count,
            "erased": rewriter.erased_count,
            "superseded": rewriter.superseded_count,
            "bytes_before": sum(each.former_size for each in made),
            "bytes_after": sum(each.size for each in made),
        },
    }


def _latest(part: Any, last_base: int) -> dict[bytes, int]:
    """Return the offset of each key's last committed record in the closed segments."""
    bases = [base for base, _ in part.segment_paths()]
    end = next((base for base in bases if base > last_base), part.high_watermark)
    latest: dict[bytes, int] = {}
    for record in part.records(isolation_level="read_committed"):
        if record.offset >= end:
            break
        if record.key is not None:
            latest[bytes(record.key)] = record.offset
    return latest


def _left(
    spark: SparkSession, path: str, partitions: Sequence[TopicPartition], erased: frozenset[bytes]
) -> Iterator[tuple[TopicPartition, list[int]]]:
    """Yield the offsets of the active segment's records that should be erased."""

    def work(key: TopicPartition) -> list[int]:
        with embedlog.open_reader(path) as reader:
            part = reader.partition(*key)
            start = max(part.segment_paths()[-1][0], part.log_start_offset)
            if start >= part.high_watermark:
                return []
            return [
                record.offset
                for record in part.records(start)
                if record.key is not None and bytes(record.key) in erased
            ]

    for slot, found in run_tasks(spark, work, partitions):
        yield partitions[slot], found
