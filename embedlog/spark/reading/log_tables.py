"""`option("table", ...)`: the parts of a log as rows, without decoding a record.

batches      a row for each record batch, from its header alone
segments     a row for each segment file
partitions   a row for each partition: its offsets and size
groups       a row for each committed offset, with its lag
findings     a row for each damage: a scrub, which reads every file and checks every rule
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from embedlog.common import TopicPartition
from embedlog.errors import CorruptRecord
from embedlog.runtime import real_runtime
from embedlog.spark.access.directory import DirectoryAccess
from embedlog.spark.errors import IllegalArgument
from embedlog.spark.options import SourceOptions
from embedlog.spark.reading.columns import arrow_schema
from embedlog.spark.reading.planning import subscribed
from embedlog.storage.verification.directory import DirectoryCheck
from wire.records.batch import RecordBatch
from wire.records.legacy import LegacyBatch

Row = dict[str, Any]

_ROW_COUNT = 10_000
NO_PARTITION = TopicPartition("", 0)
"""Stands for the files of the data directory itself, which belong to no partition."""
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class LogTable:
    """The columns of a table, and a function that yields its rows for one partition."""

    ddl: str
    rows: Callable[[DirectoryAccess, TopicPartition], Iterable[Row]]


class TableReader(DataSourceReader):
    """A batch read of a table, with a task for each partition of the log."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        if options.path is None:
            raise IllegalArgument(
                f"the table {options.table!r} is read from a log directory: the option path is "
                "missing"
            )
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Return the partitions of the subscription, or of all topics."""
        with self._access() as access:
            if self._options.table == "groups":
                return [InputPartition(NO_PARTITION)]
            found = subscribed(access, self._options.subscription)
            if self._options.table == "findings" and self._options.subscription is None:
                found = [NO_PARTITION, *access.all_partitions()]
            return [InputPartition(key) for key in found]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if partition.value is None:
            return
        schema = arrow_schema(self._schema)
        with self._access() as access:
            rows = iter(TABLES[self._options.table].rows(access, partition.value))
            while some := list(islice(rows, _ROW_COUNT)):
                columns = [[row[name] for row in some] for name in schema.names]
                arrays = [
                    pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _access(self) -> closing[DirectoryAccess]:
        options = self._options
        assert options.path is not None, "it was checked"
        return closing(DirectoryAccess(options.path, read_committed=options.read_committed))


def _partitions(access: DirectoryAccess, key: TopicPartition) -> Iterator[Row]:
    part = access.part(key)
    sizes = [size for _, _, size in _files(access, key)]
    yield {
        "topic": key.topic,
        "partition": key.partition,
        "logStartOffset": part.log_start_offset,
        "highWatermark": part.high_watermark,
        "lastStableOffset": part.last_stable_offset,
        "segments": len(sizes),
        "sizeBytes": sum(sizes),
    }


def _segments(access: DirectoryAccess, key: TopicPartition) -> Iterator[Row]:
    found = _files(access, key)
    ends = [base for base, _, _ in found[1:]] + [access.part(key).high_watermark]
    for (base, path, size), end in zip(found, ends, strict=True):
        yield {
            "topic": key.topic,
            "partition": key.partition,
            "baseOffset": base,
            "nextOffset": end,
            "isActive": base == found[-1][0],
            "sizeBytes": size,
            "path": path,
        }


def _files(access: DirectoryAccess, key: TopicPartition) -> list[tuple[int, str, int]]:
    files = real_runtime().files
    found = []
    for base, path in access.part(key).segment_paths():
        stat = files.stat(path)
        if stat is not None:  # removed meanwhile
            found.append((base, path, stat.size))
    return found


def _batches(access: DirectoryAccess, key: TopicPartition) -> Iterator[Row]:
    for batch in access.part(key).stored_batches():
        yield {"topic": key.topic, "partition": key.partition, **_batch(batch)}


def _batch(batch: RecordBatch | LegacyBatch) -> Row:
    row = {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "records": batch.record_count,
        "sizeBytes": batch.size,
        "magic": batch.magic,
        "compression": _CODECS[batch.codec],
        "timestampType": batch.timestamp_type,
        "maxTimestamp": batch.max_timestamp * 1000,
        "leaderEpoch": -1,
        "producerId": -1,
        "producerEpoch": -1,
        "baseSequence": -1,
        "isTransactional": False,
        "isControl": False,
    }
    if isinstance(batch, RecordBatch):
        row.update(
            leaderEpoch=batch.partition_leader_epoch,
            producerId=batch.producer_id,
            producerEpoch=batch.producer_epoch,
            baseSequence=batch.base_sequence,
            isTransactional=batch.is_transactional,
            isControl=batch.is_control,
        )
    return row


def _groups(access: DirectoryAccess, _key: TopicPartition) -> Iterator[Row]:
    stored = access.all_committed()
    bounds = access.bounds({each.topic_partition for each in stored})
    for each in stored:
        pair = bounds.get(each.topic_partition)
        yield {
            "group": each.group,
            "topic": each.topic_partition.topic,
            "partition": each.topic_partition.partition,
            "offset": each.offset,
            "leaderEpoch": each.leader_epoch,
            "metadata": each.metadata,
            "committed": each.timestamp * 1000,
            "endOffset": None if pair is None else pair[1],
            "lag": None if pair is None else max(0, pair[1] - each.offset),
        }


def _findings(access: DirectoryAccess, key: TopicPartition) -> Iterator[Row]:
    files = real_runtime().files

    def verify(chosen: TopicPartition) -> Iterator[CorruptRecord]:
        return DirectoryCheck(files, access.path, lambda _: None, chosen.__eq__).findings()

    # Every verification first checks the files that belong to no partition: report them only once.
    shared = set() if key == NO_PARTITION else {str(each) for each in verify(NO_PARTITION)}
    for finding in verify(key):
        if str(finding) not in shared:
            yield finding_row(key, finding)


def finding_row(key: TopicPartition, finding: CorruptRecord) -> Row:
    """Return the row of a damage in the files of `key`."""
    return {
        "topic": key.topic or None,
        "partition": key.partition if key.topic else None,
        "file": finding.path,
        "position": finding.position,
        "reason": finding.reason,
    }


TABLES = {
    "findings": LogTable(
        "topic string, partition int, file string, position bigint, reason string", _findings
    ),
    "partitions": LogTable(
        "topic string, partition int, logStartOffset bigint, highWatermark bigint, "
        "lastStableOffset bigint, segments int, sizeBytes bigint",
        _partitions,
    ),
    "segments": LogTable(
        "topic string, partition int, baseOffset bigint, nextOffset bigint, isActive boolean, "
        "sizeBytes bigint, path string",
        _segments,
    ),
    "batches": LogTable(
        "topic string, partition int, baseOffset bigint, lastOffset bigint, records int, "
        "sizeBytes int, magic int, compression string, timestampType int, maxTimestamp timestamp, "
        "leaderEpoch int, producerId bigint, producerEpoch int, baseSequence int, "
        "isTransactional boolean, isControl boolean",
        _batches,
    ),
    "groups": LogTable(
        "group string, topic string, partition int, offset bigint, leaderEpoch int, "
        "metadata string, committed timestamp, endOffset bigint, lag bigint",
        _groups,
    ),
}
