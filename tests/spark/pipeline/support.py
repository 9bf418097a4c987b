"""Shared by the tests of pipelines: projects, records, and a stream of them without a log."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from embedlog.spark.pipeline.commands.sample import RECORD_DDL, SampleRecord, as_frame
from embedlog.spark.pipeline.project import Project, parse

START_MS = int(datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC).timestamp() * 1000)
ORDER = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": False, "metadata": {}},
        {"name": "amount", "type": "double", "nullable": True, "metadata": {}},
    ],
}


def project(directory: Path, **tables: Any) -> Project:
    """A project over JSON orders; `tables` replace or add to the file's."""
    (directory / "order.json").write_text(json.dumps(ORDER))
    made = {
        "pipeline": {"name": "orders", "state": "state"},
        "source": {"topics": ["orders"], "path": "log"},
        "decode": {"format": "json", "schema": "order.json"},
        "sink": [{"name": "orders", "type": "parquet", "path": "tables/orders"}],
        **tables,
    }
    return parse(made, directory=directory)


def record(
    offset: int, value: Any, key: bytes | None = None, *, partition: int = 0, at_s: float = -1
) -> SampleRecord:
    """A record of the topic `orders`, a second after the one before; `value` becomes JSON."""
    content = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    at_ms = START_MS + int((offset if at_s < 0 else at_s) * 1000)
    return SampleRecord(key, content, "orders", partition, offset, at_ms)


class Stream:
    """Records that a streaming query reads, one batch for each `put`."""

    def __init__(self, spark: Any, directory: Path) -> None:
        self._spark = spark
        self._directory = directory / "stream"
        self._count = 0

    def put(self, *records: SampleRecord) -> None:
        """Add the records of the next batch."""
        frame = as_frame(self._spark, records)
        (row,) = [frame.toArrow()]
        self._directory.mkdir(exist_ok=True)
        import pyarrow.parquet as pq

        path = self._directory / f"{self._count:05d}.parquet"
        pq.write_table(row, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)
        self._count += 1

    @property
    def read(self) -> Callable[[Any, Project], Any]:
        """The function for a Runner's `read`."""
        path = str(self._directory)

        def read(spark: Any, _: Project) -> Any:
            reader = spark.readStream.schema(RECORD_DDL).option("pathGlobFilter", "*.parquet")
            return reader.option("maxFilesPerTrigger", 1).parquet(path)

        return read


def plain(rows: Sequence[dict[str, Any]], *names: str) -> list[Any]:
    """Sorted tuples of some columns."""
    return sorted(
        (tuple(row[name] for name in names) for row in rows),
        key=lambda row: [(value is None, value) for value in row],
    )
