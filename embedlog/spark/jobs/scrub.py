"""Checks every file of a data directory in parallel: the table `findings` as a job.

With a state file, closed segments that were sound and have not changed are skipped for a while, so
a daily scrub of a large log reads only new segments. Data that decays on the disk is found when a
segment is read again, after `recheck_ms` at the latest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from embedlog.common import TopicPartition
from embedlog.errors import ConfigError, CorruptRecord
from embedlog.runtime import real_runtime
from embedlog.runtime.files import is_directory
from embedlog.runtime.os_files import absolute
from embedlog.spark.jobs.report import Report
from embedlog.spark.jobs.tasks import run_tasks
from embedlog.spark.jobs.topics import partitions_of
from embedlog.spark.reading.log_tables import NO_PARTITION, finding_row
from embedlog.storage import paths
from embedlog.storage.verification.directory import DirectoryCheck
from embedlog.storage.verification.verified_segments import VerifiedSegment, read_state, write_state

RECHECK_MS = 7 * 86_400_000
_WAVE = 4
_MB = 1_000_000
_RULES = {
    paths.OFFSET_INDEX: "offset index",
    paths.TIME_INDEX: "time index",
    paths.TRANSACTION_INDEX: "transaction index",
    paths.SNAPSHOT: "producer snapshot",
}


def scrub(
    spark: SparkSession,
    path: str,
    topics: Sequence[str] = (),
    *,
    state: str | Path | None = None,
    recheck_ms: int = RECHECK_MS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Check every file of `topics`, or of the whole directory. Changes nothing.

    The report's `rows` are findings: topic, partition, file, position, reason, rule. `state` names
    a file that remembers sound segments; if that file is damaged, that is a finding and everything
    is read. `progress` gets bytes: done, total.

    Raises:
        ConfigError: `path` is not a directory, or `recheck_ms` is negative.
        UnknownTopicOrPartition: a topic does not exist.
    """
    runtime = real_runtime()
    files, clock = runtime.files, runtime.clock
    path, remembered = absolute(path), None if state is None else absolute(str(state))
    if not is_directory(files, path):
        raise ConfigError(f"{path}: not a directory")
    if recheck_ms < 0:
        raise ConfigError(f"recheck_ms={recheck_ms}: expected 0 or more")
    # Findings in the files of the whole directory belong to no partition.
    partitions = [NO_PARTITION, *partitions_of(path, topics, internal=True)]
    now_ms, began_ms = clock.wall_ms(), clock.monotonic_ms()
    found = _Found()
    known = {} if remembered is None else _read_state(remembered, found)
    fresh = {
        name: each for name, each in known.items() if 0 <= now_ms - each.checked_ms < recheck_ms
    }
    sizes = {key: _size(path, key) for key in partitions}
    total, done = sum(sizes.values()), 0
    width = max(1, spark.sparkContext.defaultParallelism) * _WAVE
    for begin in range(0, len(partitions), width):
        wave = partitions[begin : begin + width]
        shares = [(key, _of(fresh, key)) for key in wave]
        for slot, part in run_tasks(spark, partial(_verify, path, now_ms), shares):
            found.add(wave[slot], part)
        done += sum(sizes[key] for key in wave)
        progress(done, total)
    if remembered is not None:
        kept = {} if not topics else {k: v for k, v in known.items() if not _is_of(k, partitions)}
        write_state(files, remembered, {**kept, **found.verified})
    return found.report(max(1, clock.monotonic_ms() - began_ms))


class _Found:
    """The findings and counts of the tasks."""

    def __init__(self) -> None:
        self.verified: dict[str, VerifiedSegment] = {}
        self._rows: list[dict[str, Any]] = []
        self._seen: set[tuple[str, int, str]] = set()
        self._counts: Counter[str] = Counter()

    def add(self, key: TopicPartition, part: dict[str, Any]) -> None:
        """Add the result of one task. Findings in files of the whole directory count once."""
        for file, position, reason in part["findings"]:
            if (file, position, reason) not in self._seen:
                self._seen.add((file, position, reason))
                self.tell(key, CorruptRecord(file, position, reason))
        self._counts.update(part["counts"])
        for name, each in part["verified"].items():
            self.verified[name] = VerifiedSegment.from_json(each)

    def tell(self, key: TopicPartition, finding: CorruptRecord) -> None:
        self._rows.append({**finding_row(key, finding), "rule": _rule(finding)})

    def report(self, elapsed_ms: int) -> Report:
        counts: dict[str, Any] = {
            name: self._counts[name]
            for name in ("partitions", "segments", "skipped", "batches", "bytes", "torn_bytes")
        }
        counts["mb_per_second"] = round(counts["bytes"] / _MB / (elapsed_ms / 1000), 1)
        counts["findings"] = len(self._rows)
        counts["by_rule"] = dict(sorted(Counter(row["rule"] for row in self._rows).items()))
        return Report("scrub", counts, tuple(self._rows))


def _verify(path: str, now_ms: int, share: tuple[TopicPartition, dict[str, Any]]) -> dict[str, Any]:
    key, known = share
    read = 0

    def progress(size: int) -> None:
        nonlocal read
        read += size

    verification = DirectoryCheck(
        real_runtime().files,
        path,
        progress,
        key.__eq__,
        known={name: VerifiedSegment.from_json(each) for name, each in known.items()},
        wall_ms=now_ms,
    )
    findings = [[each.path, each.position, each.reason] for each in verification.findings()]
    return {
        "findings": findings,
        "verified": {name: each.to_json() for name, each in verification.sound.verified.items()},
        "counts": {
            "partitions": len(verification.ends),
            "segments": verification.segment_count,
            "skipped": verification.sound.skipped_count,
            "batches": verification.batch_count,
            "bytes": read,
            "torn_bytes": verification.torn_size,
        },
    }


def _size(path: str, key: TopicPartition) -> int:
    if key == NO_PARTITION:
        return 0
    return DirectoryCheck(real_runtime().files, path, lambda _: None, key.__eq__).size()


def _of(known: dict[str, VerifiedSegment], key: TopicPartition) -> dict[str, Any]:
    return {name: each.to_json() for name, each in known.items() if _is_of(name, [key])}


def _is_of(name: str, partitions: Sequence[TopicPartition]) -> bool:
    found = paths.parse_log_directory(name.partition("/")[0])
    return found is not None and found in partitions


def _read_state(path: str, found: _Found) -> dict[str, VerifiedSegment]:
    try:
        return read_state(real_runtime().files, path)
    except CorruptRecord as error:
        found.tell(NO_PARTITION, error)
        return {}


def _rule(finding: CorruptRecord) -> str:
    """Return a short name for the rule that a finding breaks."""
    for suffix, name in _RULES.items():
        if finding.path.endswith(suffix):
            return name
    if not finding.path.endswith(paths.LOG):
        return "small file"
    reason = finding.reason.lower()
    for word in ("crc", "checksum"):
        if word in reason:
            return "checksum"
    if "epoch" in reason:
        return "leader epoch"
    if "offset" in reason:
        return "offsets"
    return "batch"
