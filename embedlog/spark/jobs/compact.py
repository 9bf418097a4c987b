"""Packs a table's small files into large ones in one commit: readers see the old or the new ones.

A stream writes a file for each of its tasks and batches. The job packs the files of one part,
partition and directory level into files of about `target_bytes`; rows are copied as they are, in
the order of the files. If another commit has removed one of the files, the commit fails (see
`TableConflict`) and the work is planned again. A later commit of the table deletes the old files
after an hour, like its other removed files; in an Iceberg table they stay for its snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from embedlog.errors import ConfigError
from embedlog.runtime import real_runtime
from embedlog.spark.jobs.packing import Pack, filled, new_key, pack_files
from embedlog.spark.jobs.report import Report
from embedlog.spark.pipeline.errors import ProjectError, TableConflict
from embedlog.spark.pipeline.tables.manifest import ManifestTable
from embedlog.spark.pipeline.tables.stage import make_durable, new_file
from embedlog.spark.pipeline.tables.table import CommitKey, DataFile

TARGET_BYTES = 256 << 20
_ATTEMPTS = 5
_LEVELS_FROM = 2
"""Where partition levels begin in a path below the table: after `data` and the commit."""


def compact(
    spark: SparkSession,
    path: str | Path,
    *,
    target_bytes: int = TARGET_BYTES,
    format: str = "parquet",
    options: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Pack the files of the table at `path` that are smaller than half of `target_bytes`.

    `format` is "parquet" for a pipeline's table with a manifest, "iceberg" (with the `options` of a
    pipeline's sink), or "delta", whose own library does the work. `progress` gets bytes: done,
    total. A second run finds nothing to do.

    Raises:
        ConfigError: `target_bytes` is not positive, or the format is unknown.
        ProjectError: there is no table at `path`.
        TableConflict: other commits came in between, five times in a row.
    """
    if target_bytes < 1:
        raise ConfigError(f"target_bytes={target_bytes}: expected 1 or more")
    table = str(Path(path).resolve())
    if format == "delta":
        return _delta(table, target_bytes)
    if format == "iceberg":
        from embedlog.spark.jobs.compact_iceberg import compact_iceberg

        attempt_once = partial(compact_iceberg, spark, table, options or {}, target_bytes, progress)
    elif format == "parquet":
        if ManifestTable(table).state().version < 0:
            raise ProjectError(f"{path}: no table: there is no commit in _log")
        attempt_once = partial(_try, spark, table, target_bytes, progress)
    else:
        raise ConfigError(f"format={format!r}: expected parquet, iceberg or delta")
    for attempt in range(_ATTEMPTS):
        try:
            return attempt_once()
        except TableConflict:
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError


def _try(
    spark: SparkSession, path: str, target_bytes: int, progress: Callable[[int, int], None]
) -> Report:
    table, key = ManifestTable(path), new_key()
    files = [file for part in table.parts() for file in table.files(part)]
    packs = _packs(path, key, files, target_bytes)
    report = pack_files(spark, table, key, packs, _pack, progress=progress)
    after = len(files) - report.counts["packed"] + len(packs)
    counts = {"files_before": len(files), "files_after": after, **report.counts}
    return replace(report, counts=counts)


def _packs(path: str, key: CommitKey, files: Sequence[DataFile], target_bytes: int) -> list[Pack]:
    """Return groups of neighbouring small files; a single file stays as it is."""
    groups: dict[tuple[Any, ...], list[DataFile]] = {}
    for file in files:
        # The directories between the commit's directory and the file: a partition, or a bucket.
        levels = tuple(file.path.removeprefix(f"{path}/").split("/")[_LEVELS_FROM:-1])
        if file.size_bytes * 2 < target_bytes:
            groups.setdefault((file.part, file.partition, levels), []).append(file)
    return [
        Pack(tuple(some), new_file("/".join((path, "data", key.directory, *levels))))
        for (_, _, levels), members in groups.items()
        for some in filled(members, target_bytes)
    ]


def _pack(stage: str, pack: Pack) -> Mapping[str, Any]:
    """Copy the rows of some files into one durable file in `stage`, in bounded memory."""
    path = new_file(stage)
    schema = pa.unify_schemas(
        [pq.read_schema(each.path) for each in pack.sources], promote_options="permissive"
    )
    rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for each in pack.sources:
            with pq.ParquetFile(each.path) as source:
                for batch in source.iter_batches():
                    writer.write_table(_as(pa.Table.from_batches([batch]), schema))
                    rows += batch.num_rows
    return {"path": path, "rows": rows, "bytes": make_durable(real_runtime().files, path)}


def _as(table: Any, schema: Any) -> Any:
    """Return the columns of a schema; columns that the table lacks are null."""
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _delta(path: str, target_bytes: int) -> Report:
    """Compact with Delta's own library: one commit, which the library repeats after a conflict."""
    try:
        from deltalake import DeltaTable
    except ImportError:
        raise ProjectError("deltalake is missing: pip install 'embedlog[pipeline]'") from None
    if not DeltaTable.is_deltatable(path):
        raise ProjectError(f"{path}: no Delta table")
    found = DeltaTable(path).optimize.compact(target_size=target_bytes)
    before, packed = found["totalConsideredFiles"], found["numFilesRemoved"]
    after = before - packed + found["numFilesAdded"]
    return Report("compact", {"files_before": before, "packed": packed, "files_after": after})
