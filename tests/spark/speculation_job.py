"""A race of two attempts of one task, for each sink: the first attempt waits until it has lost.

    python -m tests.spark.speculation_job MASTER DIRECTORY

Prints a line of JSON for each sink: the attempts that have written, by task and number. The topic
is `t` of DIRECTORY/log, the tables are DIRECTORY/parquet, and so on.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedlog.spark.pipeline.running.spark_session import open_session
from embedlog.spark.pipeline.sinks.write import TableWrite, open_table, write_table
from embedlog.spark.pipeline.tables.table import CommitKey
from tests.spark.pipeline.support import project

if TYPE_CHECKING:
    import pyarrow as pa

ROWS, SIZE = 4_000, 1_000
"""Half of a task's rows are more than Spark buffers of them."""
TABLES = ("parquet", "delta", "iceberg")
WAIT_MAX_S = 60.0

SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "100ms",
}


def main(master: str, directory: str) -> None:
    """Run the races of all sinks, one after the other."""
    settings = {**SETTINGS, "spark.sql.warehouse.dir": f"{directory}/warehouse"}
    spark = open_session("races", master=master, **settings)
    while spark.sparkContext.defaultParallelism < 4:
        time.sleep(0.05)  # until both hosts are there: the attempts of a task run on two
    base = Path(directory)
    _race(spark, base, "topic")
    for kind in TABLES:
        _race(spark, base, kind)
    spark.stop()


def _race(spark: Any, base: Path, kind: str) -> None:
    notes = base / "notes" / kind
    notes.mkdir(parents=True)
    rows = _rows(spark, str(notes))
    if kind == "topic":
        writer = rows.write.format("embedlog").mode("append").option("path", f"{base}/log")
        writer.options(topic="t", txnAppId="race", txnVersion="0").save()
    else:
        (sink,) = project(base, sink=[{"name": kind, "type": kind, "path": f"{base}/{kind}"}]).sinks
        write_table(sink, open_table(sink), TableWrite(rows, CommitKey("race", 0)), lambda _: None)
    (notes / "committed").touch()
    attempts = sorted(each.name for each in notes.glob("attempt-*"))
    print(json.dumps({"sink": kind, "attempts": attempts}), flush=True)


def _rows(spark: Any, notes: str) -> Any:
    """Two tasks; the first attempt of task 0 stops in the middle until the job is committed.

    Its other attempts begin only then. Keys are a row's number and the attempt that made it.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        task, attempt = context.partitionId(), context.attemptNumber()
        if task == 0 and attempt:
            _wait_for(Path(notes, "attempt-0-0"))
        for batch in batches:
            keys = [f"{number}-{attempt}" for number in batch.column(0).to_pylist()]
            values = ["v" * SIZE] * len(keys)
            made = pa.record_batch({"key": pa.array(keys), "value": pa.array(values)})
            yield made.slice(0, len(keys) // 2)
            Path(notes, f"attempt-{task}-{attempt}").touch()
            if task == attempt == 0:
                _wait_for(Path(notes, "committed"))
            yield made.slice(len(keys) // 2)

    return spark.range(0, 2 * ROWS, 1, 2).mapInArrow(run, "key string, value string")


def _wait_for(note: Path) -> None:
    deadline = time.monotonic() + WAIT_MAX_S
    while not note.exists() and time.monotonic() < deadline:
        time.sleep(0.01)


if __name__ == "__main__":
    main(*sys.argv[1:])
