"""Commits batches to a table until all are in; continues after a killed process.

    python -m tests.spark.pipeline.committer_process FORMAT PATH COUNT

Prints `ready`, then the number of each committed batch. Does the tasks' work itself, without Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex

import pyarrow as pa
import pyarrow.parquet as pq

from embedlog.spark.pipeline.tables.delta import DeltaFormat
from embedlog.spark.pipeline.tables.iceberg import IcebergFormat
from embedlog.spark.pipeline.tables.manifest import ManifestTable
from embedlog.spark.pipeline.tables.table import CommitKey, DataFile, TableFormat, sweep

APP = "query"
REPLACED_EVERY = 4
"""One batch in this many removes the earlier files and writes their rows again."""


def open_table(
    kind: str, path: str, reached: Callable[[str], None] = lambda step: None
) -> TableFormat:
    if kind == "delta":
        return DeltaFormat(path, reached=reached)
    if kind == "iceberg":
        return IcebergFormat(path, {}, reached=reached)
    return ManifestTable(path, reached=reached)


def stage(table: TableFormat, key: CommitKey, numbers: list[int]) -> DataFile:
    path = Path(table.path, "data", key.directory, f"{token_hex(8)}.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), path)
    return DataFile(str(path), len(numbers), path.stat().st_size)


def main(kind: str, path: str, count: int) -> None:
    table = open_table(kind, path)
    done = table.version_of(APP)
    sweep(path, APP, after=done)
    print("ready", flush=True)
    for version in range(max(0, done), count):
        # Repeat the last batch, as after a crash before Spark's own commit.
        key = CommitKey(APP, version)
        numbers, removes = [version], []
        if version % REPLACED_EVERY == REPLACED_EVERY - 1 and version > done:
            removes = table.files()[-2:]
            for file in removes:
                numbers += pq.read_table(file.path)["n"].to_pylist()
        table.commit(key, [stage(table, key, numbers)], removes)
        print(version, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
