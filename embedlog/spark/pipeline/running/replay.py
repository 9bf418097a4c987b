"""Replay, backfill and redrive: runs records through the pipeline again, into its tables.

Each table replaces the rows of these records in one commit, so a second replay changes nothing.
Only records that the stream has finished may be replayed: the stream would write later ones a
second time. Topics and the console do not change, because their rows cannot be replaced.

Rows of an upsert table are states, not records. There a replay always continues to the stream's
position, so that it applies the newest change of each key.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from embedlog.runtime import real_runtime
from embedlog.spark.offsets import Positions
from embedlog.spark.pipeline.batch.processor import BatchProcessor
from embedlog.spark.pipeline.batch.report import BatchReport
from embedlog.spark.pipeline.columns import COORDINATES, OUTPUT
from embedlog.spark.pipeline.errors import ProjectError, ReplayRefused
from embedlog.spark.pipeline.places import check_apart, local_directory
from embedlog.spark.pipeline.project import TABLE_TYPES, Project, Sink, places
from embedlog.spark.pipeline.running.positions import (
    assigned,
    begin_at,
    check_same_topics,
    committed_end,
    offsets_json,
    parse_offsets,
    within,
)
from embedlog.spark.pipeline.running.state import StateDirectory
from embedlog.spark.pipeline.running.topics import read_batch
from embedlog.spark.pipeline.sinks.replacing import scope_of
from embedlog.spark.pipeline.tables.manifest import ONE_TIME
from embedlog.spark.pipeline.tables.parquet import read_table
from embedlog.spark.pipeline.tables.table import DEAD_LETTERS, CommitKey

ReadBatch = Callable[[SparkSession, Project, dict[str, str]], DataFrame]


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """The records to replay: every condition that is given must hold.

    Offsets are JSON as for Spark, with exclusive ends; times are ISO 8601 or milliseconds.
    """

    from_offsets: str | None = None
    to_offsets: str | None = None
    from_time: str | None = None
    to_time: str | None = None
    keys: tuple[str, ...] = ()
    archive: str | None = None
    """If set, a directory of Parquet records, which is read instead of the topics."""


class Replayer:
    """Replays for one project, up to the stream's position: the stream must have run before."""

    def __init__(
        self,
        spark: SparkSession,
        project: Project,
        *,
        into: str | None = None,
        read: ReadBatch = read_batch,
        positions: Callable[[str], Positions] = committed_end,
        reached: Callable[[str], None] = lambda step: None,
    ) -> None:
        self._spark = spark
        self._source = project
        self.project = _elsewhere(project, into) if into is not None else project
        self._is_elsewhere = into is not None
        self._read = read
        checkpoint = StateDirectory(project.state).checkpoint
        topics = project.source.topics
        self._limit = {k: end for k, end in positions(checkpoint).items() if k[0] in topics}
        self._processor = BatchProcessor(self.project, reached)
        for transform in project.transforms:
            if transform.sessions is not None:
                raise ReplayRefused(
                    f"transform {transform.name!r}: a replay of some records would make other "
                    "sessions; run the project with another `state` and other tables"
                )
        if not self._limit:
            raise ReplayRefused(
                f"{project.state}: the pipeline has not finished a batch. Run it first: a "
                "replay ends at the stream's position"
            )
        is_local = project.source.format == "embedlog"
        self._log = project.source.path if is_local else None
        """The data directory, if the source is one."""
        if self._log is not None:
            check_same_topics(checkpoint, self._log)

    def replay(self, wanted: ReplayRange) -> BatchReport:
        """Replay the records of a range.

        Raises:
            ReplayRefused: the range goes beyond the stream's position, or a table cannot replace
                rows.
        """
        ends = parse_offsets(wanted.to_offsets) if wanted.to_offsets else {}
        starts = parse_offsets(wanted.from_offsets) if wanted.from_offsets else {}
        for which, offsets in (("end", ends), ("start", starts)):
            for partition, offset in offsets.items():
                limit = self._limit.get(partition)
                if limit is None or offset > limit:
                    raise ReplayRefused(
                        f"{partition[0]}-{partition[1]}: the {which} {offset} is behind the "
                        f"stream, which is at {limit}: it will read that itself"
                    )
        if wanted.archive is not None:
            records = _archived(self._spark, wanted.archive)
        else:
            records = self._read(self._spark, self._source, self._options(wanted))
        return self._run(records.where(self._condition(wanted, ends)), "replay")

    def redrive(self, where: str = "true", limit: int | None = None) -> BatchReport:
        """Try again the dead letters for which the SQL expression `where` is true, oldest first.

        Letters with `dead_letters.max_attempts` attempts stay. A record that fails again becomes a
        letter with one attempt more. Letters of rules on the output hold rows, not records: replay
        their records.
        """
        table = self._processor.dead_letter_table
        files = table.files(DEAD_LETTERS)
        if not files:
            raise ReplayRefused(f"{table.path}: there are no dead letters")
        letters = self._spark.read.option("mergeSchema", "true").parquet(
            *[each.path for each in files]
        )
        most = self.project.dead_letters.max_attempts
        chosen = letters.where(f.col("attempt") < most).where(where)
        chosen = chosen.where(~self._holds_row())
        chosen = chosen.where("topic IS NOT NULL AND partition IS NOT NULL AND offset IS NOT NULL")
        chosen = chosen.orderBy("timestamp", "topic", "partition", "offset")
        if limit is not None:
            chosen = chosen.limit(limit)
        records = chosen.select(
            "key", "value", "headers", "topic", "partition", "offset", "timestamp",
            (f.col("attempt") + 1).cast("int").alias("attempt"),
        )  # fmt: skip
        if any(each.mode != "append" for each in self.project.sinks):
            records = self._with_later(records)
        return self._run(records, "redrive")

    def _holds_row(self) -> Column:
        """Return whether a letter holds the row of an output rule, not a record to decode."""
        # Earlier versions gave these letters the stage `rule` as well.
        names = [each.name for each in self.project.rules if each.on == "output"]
        is_older = (f.col("error_stage") == "rule") & f.col("error_rule").isin(names)
        return (f.col("error_stage") == OUTPUT) | f.coalesce(is_older, f.lit(False))

    def _with_later(self, letters: DataFrame) -> DataFrame:
        """Add later records of the letters' keys, so that no old record replaces a newer state."""
        (oldest,) = letters.agg(f.min(f.unix_millis("timestamp"))).collect()
        if oldest[0] is None:
            return letters
        # By time, not by offset: a key may have moved to another partition meanwhile.
        starts = begin_at(self._log, oldest[0], self._limit)
        options = {**self._up_to_the_stream(), "startingOffsets": offsets_json(starts)}
        records = self._read(self._spark, self._source, options)
        later = records.join(letters.select("key").distinct(), "key", "left_semi")
        mine = letters.select("topic", "partition", "offset")
        later = later.join(mine, ["topic", "partition", "offset"], "left_anti")
        columns = [name for name in letters.columns if name != "attempt"]
        return letters.unionByName(later.select(*columns), allowMissingColumns=True)

    def _run(self, records: DataFrame, kind: str) -> BatchReport:
        records = records.persist()
        try:
            random = real_runtime().random.bytes(8).hex()
            key = CommitKey(f"{ONE_TIME}{kind}:{random}", 0)
            report = self._processor.run(records, key, scope_of(records))
        finally:
            records.unpersist()
        StateDirectory(self._source.state).event(kind, report.as_dict())
        return report

    def _options(self, wanted: ReplayRange) -> dict[str, str]:
        starts = parse_offsets(wanted.from_offsets) if wanted.from_offsets else {}
        made = self._up_to_the_stream()
        if starts:
            # A partition without a given start begins at its end: it is not replayed.
            all_starts = {each: starts.get(each, end) for each, end in self._limit.items()}
            made["startingOffsets"] = offsets_json(all_starts)
        elif wanted.from_time is not None:
            at_ms = _milliseconds(wanted.from_time)
            made["startingOffsets"] = offsets_json(begin_at(self._log, at_ms, self._limit))
        else:
            made["startingOffsets"] = "earliest"
        return made

    def _up_to_the_stream(self) -> dict[str, str]:
        """Return the options of a read that ends at the stream's position."""
        return {"assign": assigned(self._limit), "endingOffsets": offsets_json(self._limit)}

    def _condition(self, wanted: ReplayRange, ends: Positions) -> Column:
        is_upsert = any(each.mode != "append" for each in self.project.sinks)
        starts = parse_offsets(wanted.from_offsets) if wanted.from_offsets else {}
        chosen = within(
            (key, starts.get(key, 0), limit if is_upsert else ends.get(key, limit))
            for key, limit in self._limit.items()
            if not starts or key in starts
        )
        times = f.unix_millis("timestamp")
        if wanted.from_time is not None:
            chosen = chosen & (times >= _milliseconds(wanted.from_time))
        if wanted.to_time is not None and not is_upsert:
            chosen = chosen & (times < _milliseconds(wanted.to_time))
        if wanted.keys:
            chosen = chosen & f.col("key").isin([each.encode() for each in wanted.keys])
        return chosen


def skipped_sinks(project: Project) -> list[str]:
    """Return the sinks that a replay does not change."""
    return [each.name for each in project.sinks if each.type not in TABLE_TYPES]


def _elsewhere(project: Project, directory: str) -> Project:
    """Return the project with its tables in another directory, as a new version side by side."""
    base = Path(local_directory(Path(), directory))

    def moved(sink: Sink) -> Sink:
        if sink.type not in TABLE_TYPES:
            return sink
        return replace(sink, path=str(base / sink.name))

    letters = replace(project.dead_letters, path=None)
    made = replace(
        project,
        sinks=tuple(map(moved, project.sinks)),
        dead_letters=letters,
        state=str(base / ".state"),
    )
    new = [each._replace(what="the new version") for each in places(made) if not each.is_log]
    check_apart([*places(project), *new], "into")
    return made


def _archived(spark: SparkSession, path: str) -> DataFrame:
    """Read records in Parquet: a pipeline's table whose decode format is `none`, or plain files."""
    try:
        paths: Sequence[str] = read_table(path).paths
    except ProjectError:
        paths = [path]
    if not paths:
        raise ReplayRefused(f"{path}: the archive is empty")
    frame = spark.read.option("mergeSchema", "true").parquet(*paths)
    renamed = {name: name[1:] for name in (*COORDINATES, "_timestamp", "_key", "_headers")}
    frame = frame.withColumnsRenamed({k: v for k, v in renamed.items() if k in frame.columns})
    if "key" not in frame.columns:
        frame = frame.withColumn("key", f.lit(None).cast("binary"))
    needed = ["key", "value", "topic", "partition", "offset", "timestamp"]
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise ReplayRefused(f"{path}: not an archive of records: it lacks {', '.join(missing)}")
    return frame.select(*needed, *(["headers"] if "headers" in frame.columns else []))


def _milliseconds(text: str) -> int:
    if text.isdecimal():
        return int(text)
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ProjectError(f"{text!r}: ISO 8601 or milliseconds since 1970 are needed") from None
    found = found if found.tzinfo else found.replace(tzinfo=datetime.UTC)
    return int(found.timestamp() * 1000)
