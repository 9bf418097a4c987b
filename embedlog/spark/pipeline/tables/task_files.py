"""The tasks' part of a write: they write Parquet files that no reader sees, and return the names.

Each attempt of a task writes files with random names, so a repeated or speculative attempt never
touches the files of another attempt. A commit, and the table's directories, get only files whose
names the driver collects: see `tables.stage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from embedlog.runtime import real_runtime
from embedlog.spark.pipeline.tables.stage import close_stage, make_durable, new_file, open_stage
from embedlog.spark.pipeline.tables.table import (
    ROWS,
    CommitKey,
    DataFile,
    parse_partition,
    partition_text,
)

_STAGED = "path string, row_count bigint, size_bytes bigint, partition string"
_OPEN_MAX = 64
"""Files that a task has open at a time, in a partitioned table."""
_NAME_MAX = 180
"""Longest name of a partition's directory in bytes, without a hash: file systems take 255."""


class StagedFile(NamedTuple):
    """A durable file of a task that has succeeded."""

    path: str
    row_count: int
    size_bytes: int
    partition: str
    """See `partition_text`."""


def stage(
    frame: DataFrame,
    table: str,
    key: CommitKey,
    *,
    partition_by: Sequence[str] = (),
    part: str = ROWS,
    bucket: str | None = None,
) -> list[DataFile]:
    """Write `frame` to files in the table's directory that no reader sees yet.

    A shuffle brings the rows of one partition together into one file. `bucket` names a column that
    exists in the names of directories only, for `upserts`.
    """
    partition_by = (bucket,) if bucket is not None else tuple(partition_by)
    if partition_by:
        frame = frame.repartition(*partition_by).sortWithinPartitions(*partition_by)
    where = open_stage(table, key.directory)
    run = _writer(where, partition_by, bucket is not None)
    won = [StagedFile(*row) for row in frame.mapInArrow(run, _STAGED).collect()]
    return give_places(won, where, table, key, part=part, has_values=bucket is None)


def give_places(
    won: Sequence[StagedFile],
    where: str,
    table: str,
    key: CommitKey,
    *,
    part: str = ROWS,
    has_values: bool = True,
) -> list[DataFile]:
    """Close the stage `where`, and move the files of its winners to the table.

    With `has_values` the values in the directories' names are columns of the table.
    """
    partitions = [parse_partition(file.partition) for file in won]
    places = [
        f"{table}/data/{key.directory}{_levels(partition)}/{file.path.rpartition('/')[2]}"
        for file, partition in zip(won, partitions, strict=True)
    ]
    close_stage(where, dict(zip([file.path for file in won], places, strict=True)))
    return [
        DataFile(place, file.row_count, file.size_bytes, part, values if has_values else ())
        for file, place, values in zip(won, places, partitions, strict=True)
    ]


def _levels(partition: Sequence[tuple[str, str | None]]) -> str:
    """Return the directories of a partition, named as Hive does; long names end with a hash."""
    names = [
        f"{quote(column, safe='')}={quote(value or '__null__', safe='')}"
        for column, value in partition
    ]
    return "".join(
        f"/{name}"
        if len(name) <= _NAME_MAX
        else f"/{name[:_NAME_MAX]}~{sha256(name.encode()).hexdigest()}"
        for name in names
    )


def _writer(
    where: str, partition_by: tuple[str, ...], is_dropping: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = TaskFiles(where, partition_by, is_dropping=is_dropping)
        for batch in batches:
            files.write(batch)
        won = files.finish()
        if won:
            columns = [pa.array(list(each)) for each in zip(*won, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, names=list(StagedFile._fields))

    return run


class TaskFiles:
    """The files of one attempt of a task, by partition, each with its rows in their order."""

    def __init__(
        self, where: str, partition_by: tuple[str, ...], *, is_dropping: bool = False
    ) -> None:
        """With `is_dropping` the partition's columns exist in the names of directories only."""
        self._where = where
        self._partition_by = partition_by
        self._dropped = partition_by if is_dropping else ()
        self._open: dict[str, tuple[Any, str]] = {}
        self._done: list[StagedFile] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        if not self._partition_by:
            self._append((), batch)
            return
        for partition, rows in _split(batch, self._partition_by):
            self._append(partition, rows)

    def finish(self) -> list[StagedFile]:
        for name in list(self._open):
            self._close(name)
        return self._done

    def _append(self, partition: tuple[tuple[str, str | None], ...], batch: Any) -> None:
        name = partition_text(partition)
        if name not in self._open:
            if len(self._open) >= _OPEN_MAX:
                self._close(next(iter(self._open)))
            path = new_file(self._where)
            schema = batch.drop_columns(list(self._dropped)).schema
            self._open[name] = pq.ParquetWriter(path, schema, compression="zstd"), path
        writer, _ = self._open[name]
        writer.write_batch(batch.drop_columns(list(self._dropped)))

    def _close(self, name: str) -> None:
        writer, path = self._open.pop(name)
        writer.close()
        size = make_durable(real_runtime().files, path)
        self._done.append(StagedFile(path, pq.read_metadata(path).num_rows, size, name))


def _split(
    batch: pa.RecordBatch, columns: tuple[str, ...]
) -> Iterator[tuple[tuple[tuple[str, str | None], ...], pa.RecordBatch]]:
    """Yield the rows of each combination of values; values become text as Hive writes it."""
    codes, kinds = np.zeros(batch.num_rows, np.int64), []
    for name in columns:
        text = pc.cast(batch.column(name), pa.string())
        encoded = text.dictionary_encode(null_encoding="encode")
        kinds.append(encoded.dictionary.to_pylist())
        codes = codes * len(kinds[-1]) + encoded.indices.to_numpy()
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        values: list[str | None] = []
        left = int(code)
        for kind in reversed(kinds):
            left, slot = divmod(left, len(kind))
            values.insert(0, kind[slot])
        partition = tuple(zip(columns, values, strict=True))
        yield partition, batch if len(rows) == len(codes) else batch.take(pa.array(rows))
