"""Copies topics to a Parquet table: every record once, however often the job runs or is killed.

The table has a manifest (`tables.manifest`). Each commit adds the files of a range of offsets and
stores the offsets that the archive has reached, where the next run continues. There is no other
state and no Spark checkpoint. The table's properties:

    {"archive": {"id": "...", "isolation": "read_uncommitted", "topics": {
        "orders": {"id": "<topic id>", "starts": {"0": 0}, "offsets": {"0": 1200}}}}}

`starts` are the first offsets of the archive by partition, `offsets` its end offsets. All runs have
the same isolation level: with another one, the log may end before the archive does.

The table has the columns of Spark's Kafka source with `headers`, and `date`, the UTC day of the
timestamp. Each file belongs to a topic and a day, and holds records of one partition in the order
of offsets.

In a data directory the job publishes its progress after each commit. Retention waits for it in
topics whose `embedlog.retention.archived` is true. The table must then stay at its path; use
`LogDirectoryReader.withdraw_archived` to give up an archive.

Tasks read the log and write the files, Arrow batch by Arrow batch. With 10 million records of 100 B
a record takes 1 us of a processor, against 14 us through Spark's rows.

A lock allows one run at a time. It ends with its process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql.datasource import InputPartition

import embedlog
from embedlog.common import TopicPartition
from embedlog.errors import ConfigError
from embedlog.runtime import real_runtime
from embedlog.runtime.files import make_directory
from embedlog.spark.errors import DataLoss
from embedlog.spark.jobs.report import Report
from embedlog.spark.jobs.tasks import run_tasks
from embedlog.spark.jobs.topics import JobTopics
from embedlog.spark.offsets import Positions, limited
from embedlog.spark.pipeline.errors import ProjectError
from embedlog.spark.pipeline.places import local_directory
from embedlog.spark.pipeline.tables.manifest import ManifestTable, TableState
from embedlog.spark.pipeline.tables.stage import open_stage
from embedlog.spark.pipeline.tables.table import CommitKey, DataFile, sweep_uncommitted
from embedlog.spark.pipeline.tables.task_files import StagedFile, TaskFiles, give_places
from embedlog.spark.reading.batch_reader import BatchReader

APP = "archive"
PROPERTY = "archive"
COMMIT_RECORDS = 10_000_000
"""Approximate records of a commit: the most that a killed run has to repeat."""
_LOCK = "_archive.lock"
_COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")
_PARTITIONED_BY = ("topic", "date")


def archive(
    spark: SparkSession,
    topics: JobTopics,
    table: str | Path,
    *,
    commit_records: int = COMMIT_RECORDS,
    allow_loss: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
    reached: Callable[[str], None] = lambda step: None,
) -> Report:
    """Add the records since the last run, in commits of about `commit_records` records.

    The first commit makes the table at `table`. With `allow_loss` the job continues although
    records left the log before they were archived. `progress` gets offsets: done, total.

    Raises:
        ConfigError: `commit_records` is not positive.
        DataLoss: records between the archive's end and the log's start no longer exist, or the
            archive is ahead of the log.
        ProjectError: the table is not an archive, a topic was recreated since the last run or
            during this one, or earlier runs had another isolation level.
        UnknownTopicOrPartition: a topic does not exist.
        DirectoryLocked: another run is active.
    """
    if commit_records < 1:
        raise ConfigError(f"commit_records={commit_records}: expected 1 or more")
    path = local_directory(Path(), str(table))
    files = real_runtime().files
    make_directory(files, path, sync=True)
    with closing(files.lock(f"{path}/{_LOCK}")):
        run = _Run(spark, topics, ManifestTable(path, reached=reached))
        return run.all(commit_records, allow_loss, progress, reached)


def archived_ranges(state: TableState) -> dict[TopicPartition, tuple[int, int]]:
    """Return (first offset, end offset) of the archive by partition."""
    known = state.properties.get(PROPERTY, {"topics": {}})["topics"]
    return {
        TopicPartition(topic, int(number)): (each["starts"][number], end)
        for topic, each in known.items()
        for number, end in each["offsets"].items()
    }


class _Run:
    def __init__(self, spark: SparkSession, topics: JobTopics, table: ManifestTable) -> None:
        self._spark = spark
        self._topics = topics
        self._table = table
        self._state = table.state()
        self._ids = topics.ids()
        self._check_table()
        self._check_ids(self._ids)

    def all(
        self,
        commit_records: int,
        allow_loss: bool,
        progress: Callable[[int, int], None],
        reached: Callable[[str], None],
    ) -> Report:
        version = self._state.apps.get(APP, -1)
        sweep_uncommitted(self._table, APP)
        bounds = self._topics.bounds()
        first = position = self._starts(bounds, allow_loss)
        self._publish()  # a killed run may not have published its last commit
        ends = {key: end for key, (_, end) in bounds.items()}
        total = sum(ends.values()) - sum(first.values())
        records = size = commits = 0
        progress(0, total)
        while position != ends:
            until = limited(position, ends, commit_records)
            version += 1
            added = self._commit(CommitKey(APP, version), position, until, reached)
            position = until
            records += sum(each.row_count for each in added)
            size += sum(each.size_bytes for each in added)
            commits += 1
            progress(sum(position.values()) - sum(first.values()), total)
        rows = tuple(
            {"topic": k.topic, "partition": k.partition, "from": first[k], "to": ends[k]}
            for k in sorted(ends)
        )
        counts = {"records": records, "bytes": size, "commits": commits}
        return Report("archive", counts, rows)

    def _commit(
        self, key: CommitKey, begin: Positions, until: Positions, reached: Callable[[str], None]
    ) -> Sequence[DataFile]:
        path = self._table.path
        reader = self._topics.reader(begin, until)
        where = open_stage(path, key.directory)
        tasks = run_tasks(self._spark, partial(_write_part, where, reader), reader.partitions())
        won = [StagedFile(*file) for _, found in tasks for file in found]
        adds = give_places(won, where, path, key)
        reached("archive: staged")
        # No id is used twice: if a topic's id is unchanged, all records read are of this topic.
        self._check_ids(self._topics.ids())
        self._table.commit(key, adds, properties={PROPERTY: self._property(begin, until)})
        reached("archive: committed")
        self._publish()
        return adds

    def _publish(self) -> None:
        known = self._state.properties.get(PROPERTY)
        if known is None or self._topics.path is None:
            return
        with embedlog.open_reader(self._topics.path) as reader:
            # Publish topics of earlier runs as well: a publication replaces the one before it.
            there = {
                (name, number) for name in reader.topics() for number in reader.partitions(name)
            }
            offsets = {
                (key.topic, key.partition): offset
                for key, (_, offset) in archived_ranges(self._state).items()
                if (key.topic, key.partition) in there
            }
            ids = {name: each["id"] for name, each in known["topics"].items()}
            reader.publish_archived(known["id"], offsets, topic_ids=ids)

    def _starts(
        self, bounds: Mapping[TopicPartition, tuple[int, int]], allow_loss: bool
    ) -> Positions:
        known = archived_ranges(self._state)
        starts = {}
        for key, (start, end) in bounds.items():
            _, archived = known.get(key, (start, start))
            if archived > end:
                raise DataLoss(f"{key} ends at {end}, and is archived up to {archived}")
            if archived < start and not allow_loss:
                raise DataLoss(
                    f"{key} begins at {start}, and is archived up to {archived}: the records "
                    "between are gone. Set the topic's embedlog.retention.archived before they go"
                )
            starts[key] = max(archived, start)
        return starts

    def _check_table(self) -> None:
        state, path = self._state, self._table.path
        found = state.properties.get(PROPERTY)
        if found is None:
            if state.version >= 0:
                raise ProjectError(f"{path}: is a table, but not of an archive")
            return
        if found["isolation"] != self._topics.isolation:
            raise ProjectError(
                f"{path}: was read with {found['isolation']}, and cannot go on with "
                f"{self._topics.isolation}"
            )

    def _check_ids(self, ids: Mapping[str, str]) -> None:
        path = self._table.path
        found = self._state.properties.get(PROPERTY, {"topics": {}})
        for name, topic_id in ids.items():
            known = found["topics"].get(name, {"id": self._ids[name]})["id"]
            if known != topic_id:
                raise ProjectError(
                    f"{path}: has records of a topic {name} with the id {known}. The one in "
                    f"{self._topics.place} has the id {topic_id}: it was made anew, and needs a "
                    "table of its own"
                )

    def _property(self, begin: Positions, until: Positions) -> Mapping[str, Any]:
        before = self._state.properties.get(PROPERTY)
        new_id = real_runtime().random.bytes(12).hex()
        made = before or {"id": new_id, "isolation": self._topics.isolation, "topics": {}}
        for name, topic_id in self._ids.items():
            offsets = {str(k.partition): until[k] for k in sorted(until) if k.topic == name}
            starts = {str(k.partition): begin[k] for k in sorted(begin) if k.topic == name}
            starts |= made["topics"].get(name, {}).get("starts", {})
            made["topics"][name] = {"id": topic_id, "starts": starts, "offsets": offsets}
        self._state.properties[PROPERTY] = made
        return made


def _write_part(where: str, reader: BatchReader, part: InputPartition) -> list[StagedFile]:
    """Write a part of the log as files in the stage `where`. Runs in a task."""
    files = TaskFiles(where, _PARTITIONED_BY)
    for batch in reader.read(part):
        files.write(_with_date(batch))
    return files.finish()


def _with_date(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns of the table; `date` is the UTC day of the timestamp."""
    days = pc.cast(pc.cast(batch.column("timestamp"), pa.date32()), pa.string())
    return batch.select(list(_COLUMNS)).append_column("date", days)
