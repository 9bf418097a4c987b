"""What tasks do for a table: they write Parquet files that nobody sees yet, and tell their names.

Each attempt of a task writes files with random names, so a retried or speculative one never
touches another's. Only the names that the driver collects come into a commit, and only their files
into the table's directories: see `sinks.stage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from embedlog.runtime import real_runtime
from embedlog.spark.pipeline.sinks.stage import close_stage, make_durable, new_file, open_stage
from embedlog.spark.pipeline.sinks.table import (
    ROWS,
    CommitKey,
    DataFile,
    parse_partition,
    partition_text,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_STAGED = "path string, row_count bigint, size_bytes bigint, partition string"
_OPEN_MAX = 64
"""Files that a task has open at a time, when the table is partitioned."""


def stage(
    frame: DataFrame,
    table: str,
    key: CommitKey,
    *,
    partition_by: Sequence[str] = (),
    part: str = ROWS,
    bucket: str | None = None,
    is_shuffled: bool = True,
) -> list[DataFile]:
    """Write `frame` to files under the table's directory; none of them is visible yet.

    Rows of one partition come into one file, as a shuffle brings them together; without it each
    task has a file of each partition, with its rows in their order. `bucket` names a column that is
    in the names of directories only, for `upserts`.
    """
    partition_by = (bucket,) if bucket is not None else tuple(partition_by)
    if partition_by and is_shuffled:
        frame = frame.repartition(*partition_by).sortWithinPartitions(*partition_by)
    where = open_stage(table, key.directory)
    run = _writer(where, partition_by, bucket is not None)
    won = frame.mapInArrow(run, _STAGED).collect()
    partitions = [parse_partition(row.partition) for row in won]
    places = [
        f"{table}/data/{key.directory}{_levels(partition)}/{row.path.rpartition('/')[2]}"
        for row, partition in zip(won, partitions, strict=True)
    ]
    close_stage(where, dict(zip([row.path for row in won], places, strict=True)))
    return [
        DataFile(place, row.row_count, row.size_bytes, part, () if bucket is not None else values)
        for row, place, values in zip(won, places, partitions, strict=True)
    ]


def _levels(partition: Sequence[tuple[str, str | None]]) -> str:
    """The directories of a partition, as Hive names them."""
    return "".join(
        f"/{quote(column)}={quote(value or '__null__', safe='')}" for column, value in partition
    )


def _writer(
    where: str, partition_by: tuple[str, ...], is_dropping: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = _TaskFiles(where, partition_by, is_dropping)
        for batch in batches:
            if batch.num_rows:
                writer.write(batch)
        yield from writer.finish()

    return run


class _TaskFiles:
    """The files of one attempt of one task, by partition."""

    def __init__(self, where: str, partition_by: tuple[str, ...], is_dropping: bool) -> None:
        self._where = where
        self._partition_by = partition_by
        self._dropped = partition_by if is_dropping else ()
        self._open: dict[str, tuple[Any, str]] = {}
        self._done: list[tuple[str, int, int, str]] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows to the files of their partitions."""
        if not self._partition_by:
            self._append((), batch)
            return
        for partition, rows in _split(batch, self._partition_by):
            self._append(partition, rows)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Make all files durable; a row for each."""
        import pyarrow as pa

        for name in list(self._open):
            self._close(name)
        if self._done:
            columns = [pa.array(list(each)) for each in zip(*self._done, strict=True)]
            yield pa.RecordBatch.from_arrays(
                columns, names=["path", "row_count", "size_bytes", "partition"]
            )

    def _append(self, partition: tuple[tuple[str, str | None], ...], batch: Any) -> None:
        import pyarrow.parquet as pq

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
        import pyarrow.parquet as pq

        writer, path = self._open.pop(name)
        writer.close()
        size = make_durable(real_runtime().files, path)
        self._done.append((path, pq.read_metadata(path).num_rows, size, name))


def _split(
    batch: pa.RecordBatch, columns: tuple[str, ...]
) -> Iterator[tuple[tuple[tuple[str, str | None], ...], pa.RecordBatch]]:
    """The rows of each combination of values; text of a value as Hive writes it."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

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
