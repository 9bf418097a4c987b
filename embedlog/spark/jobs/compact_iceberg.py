"""Packs the small files of an Iceberg table into large ones, in one snapshot.

Rows are read with the table's newest schema, even if columns were added or renamed after their file
was written. A file of an older partition spec, or with delete files of another engine, stays as it
is. The old files belong to older snapshots and are deleted with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from embedlog.errors import ConfigError
from embedlog.runtime import real_runtime
from embedlog.spark.jobs.packing import Pack, filled, new_key, pack_files
from embedlog.spark.jobs.report import Report
from embedlog.spark.pipeline.errors import ProjectError, TableConflict
from embedlog.spark.pipeline.tables.iceberg import IcebergFormat, path_of
from embedlog.spark.pipeline.tables.stage import make_durable, new_file
from embedlog.spark.pipeline.tables.table import CommitKey, DataFile

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True)
class IcebergPack(Pack):
    """A pack whose file has the columns of the table's schema `schema_id`."""

    table: str
    options: Mapping[str, str]
    schema_id: int


def compact_iceberg(
    spark: SparkSession,
    path: str,
    options: Mapping[str, str],
    target_bytes: int,
    progress: Callable[[int, int], None],
) -> Report:
    """Pack the small files of the table at `path` once; see `compact`.

    Raises:
        ConfigError: the table is partitioned by more than the values of columns.
        ProjectError: there is no table.
        TableConflict: other commits came in between.
    """
    format = IcebergFormat(path, options)
    table = format.table()
    if table is None:
        raise ProjectError(f"{path}: no Iceberg table")
    for field in table.spec().fields:
        if str(field.transform) != "identity":
            raise ConfigError(f"{path}: partitioned by {field}: only identity can be compacted")
    key = new_key()
    packs = packs_of(table, path, options, key, target_bytes)

    def check() -> None:
        table = format.table()
        if table is None or table.schema().schema_id != packs[0].schema_id:
            # Columns that were dropped meanwhile must not come back with our files.
            raise TableConflict(f"{path}: another commit changed the schema")

    report = pack_files(spark, format, key, packs, copy_pack, progress=progress, check=check)
    count = len(format.files())
    before = count + report.counts["packed"] - len(packs)
    return replace(report, counts={"files_before": before, "files_after": count, **report.counts})


def packs_of(
    table: Table, path: str, options: Mapping[str, str], key: CommitKey, target_bytes: int
) -> list[IcebergPack]:
    """Return groups of small files of one partition, sorted by name; a single file stays."""
    groups: dict[str, list[DataFile]] = {}
    for task in table.scan().plan_files():
        file = task.file
        if (
            file.file_size_in_bytes * 2 < target_bytes
            and file.spec_id == table.spec().spec_id
            and not task.delete_files
        ):
            each = DataFile(path_of(file.file_path), file.record_count, file.file_size_in_bytes)
            groups.setdefault(repr(file.partition), []).append(each)
    schema_id = table.schema().schema_id
    packs = []
    for members in groups.values():
        members.sort(key=lambda each: each.path)
        for some in filled(members, target_bytes):
            where = new_file(f"{path}/data/{key.directory}")
            packs.append(IcebergPack(tuple(some), where, path, options, schema_id))
    return packs


def copy_pack(stage: str, pack: IcebergPack) -> Mapping[str, Any]:
    """Copy the rows of some files into one durable file in `stage`, one file in memory at a time.

    A conflict is returned, not raised: after an exception Spark would repeat the attempt in vain.
    """
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow

    format = IcebergFormat(pack.table, pack.options)
    table = format.table()
    if table is None or table.schema().schema_id != pack.schema_id:
        return {"conflict": "another commit changed the schema"}
    tasks = {path_of(task.file.file_path): task for task in table.scan().plan_files()}
    gone = [each.path for each in pack.sources if each.path not in tasks]
    if gone:
        return {"conflict": f"another commit took {gone[0]} away"}
    # Without field ids: pyiceberg finds the columns of added files by name.
    schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    path = new_file(stage)
    rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for each in pack.sources:
            for batch in scan.to_record_batches([tasks[each.path]]):
                writer.write_table(pa.Table.from_batches([batch]).cast(schema))
                rows += batch.num_rows
    return {"path": path, "rows": rows, "bytes": make_durable(real_runtime().files, path)}
