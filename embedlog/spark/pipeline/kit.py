"""Tests pipelines without a broker: records in, rows out, and a kill at any step.

    from embedlog.spark.pipeline.kit import PipelineKit, spark  # a session-scoped pytest fixture

    def test_orders(spark, tmp_path):
        kit = PipelineKit(spark, "orders/pipeline.toml", tmp_path)
        assert kit.run_once([b'{"id": 1, "amount": 2.5}']) == [{"id": 1, "amount": 2.5}]
        with kit.killed_at(3):  # the run ends as if its process had died at the third step
            kit.run_once([b'{"id": 2, "amount": 1}'])
        kit.restart()  # and goes on from its checkpoint

The project's tables and state are in the kit's directory. Its topics and the console become Parquet
tables there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from embedlog.errors import EmbedlogError
from embedlog.runtime import real_runtime
from embedlog.runtime.files import make_directory
from embedlog.spark.pipeline.batch.report import Totals
from embedlog.spark.pipeline.commands.sample import RECORD_DDL, SampleRecord, as_frame
from embedlog.spark.pipeline.project import TABLE_TYPES, Project, load
from embedlog.spark.pipeline.running.runner import Runner
from embedlog.spark.pipeline.running.spark_session import open_session
from embedlog.spark.pipeline.tables.manifest import ManifestTable
from embedlog.spark.pipeline.tables.parquet import read_table

Given: TypeAlias = bytes | tuple[bytes | None, bytes | None] | SampleRecord
"""A value, a key and a value, or a whole record."""


class KilledError(EmbedlogError):
    """Ends a run at a step, as the death of its process would: nothing after the step is done."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A Spark session for all tests: two threads, no UI, UTC, loopback."""
    with session_for_tests() as session:
        yield session


@contextmanager
def session_for_tests(settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """The session of the fixture `spark`, for your own fixture; it is stopped at the end.

    `settings` are Spark's, and override the kit's.
    """
    chosen = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        **(settings or {}),
    }
    session = open_session("tests", master="local[2]", **chosen)
    try:
        yield session
    finally:
        session.stop()


class PipelineKit:
    """A pipeline that reads the test's records. Its sinks become Parquet tables in `directory`."""

    def __init__(
        self, spark: SparkSession, project: Project | str | Path, directory: str | Path
    ) -> None:
        loaded = project if isinstance(project, Project) else load(project)
        self._base = Path(directory).resolve()
        self._spark = spark
        sinks = tuple(
            replace(each, type=each.type if each.type in TABLE_TYPES else "parquet",
                    path=str(self._base / "tables" / each.name))
            for each in loaded.sinks
        )  # fmt: skip
        self.project = replace(
            loaded,
            sinks=sinks,
            state=str(self._base / "state"),
            dead_letters=replace(loaded.dead_letters, path=str(self._base / "dead_letters")),
            every_ms=None,
            prometheus_port=None,
        )
        self.steps: list[str] = []
        """The steps of the last run, in order."""
        self._kill_at: int | str | None = None
        self._count = 0
        self._offsets: dict[tuple[str, int], int] = {}
        self._files = real_runtime().files
        make_directory(self._files, str(self._base / "records"), sync=False)

    def run_once(self, records: Sequence[Given] = ()) -> list[dict[str, Any]]:
        """Give the pipeline `records` as one batch, run it, and return all rows of its first sink.

        The returned rows lack their coordinates. Given records without coordinates follow each
        other in partition 0 of the first topic, with timestamps a second apart.
        """
        if records:
            self._put([self._placed(each) for each in records])
        self.restart()
        return self.rows()

    def restart(self) -> Totals:
        self.steps = []
        return Runner(self._spark, self.project, reached=self._reached, read=self._read).run()

    def rows(self, sink: str | None = None, *, hidden: bool = False) -> list[dict[str, Any]]:
        """Return the rows of a sink (default: the first); with `hidden`, also columns with `_`."""
        found = next(s for s in self.project.sinks if sink in (None, s.name))
        return [
            {name: value for name, value in row.items() if hidden or not name.startswith("_")}
            for row in table_rows(found.type, str(found.path))
        ]

    @property
    def dead_letters(self) -> list[dict[str, Any]]:
        path = str(self.project.dead_letters.path)
        if ManifestTable(path).state().version < 0:
            return []
        found: list[dict[str, Any]] = read_table(path, dead_letters=True).to_arrow().to_pylist()
        return found

    @contextmanager
    def killed_at(self, step: int | str) -> Iterator[None]:
        """End the run inside of the `with` at the step with this number (from 1) or name.

        Raises:
            AssertionError: the run did not reach the step.
        """
        self._kill_at = step
        try:
            yield
        except KilledError:
            return
        finally:
            self._kill_at = None
        raise AssertionError(f"no step {step}: there were {self.steps}")

    def _reached(self, step: str) -> None:
        self.steps.append(step)
        if self._kill_at in (step, len(self.steps)):
            raise KilledError(step)

    def _placed(self, given: Given) -> SampleRecord:
        if isinstance(given, SampleRecord):
            return given
        key, value = (None, given) if isinstance(given, bytes) else given
        topic = self.project.source.topics[0]
        offset = self._offsets.get((topic, 0), 0)
        self._offsets[topic, 0] = offset + 1
        return SampleRecord(key, value, topic, 0, offset, 1_767_225_600_000 + offset * 1000)

    def _put(self, records: Sequence[SampleRecord]) -> None:
        path = f"{self._base}/records/{self._count:06d}"
        self._count += 1
        pq.write_table(as_frame(self._spark, records).toArrow(), path + ".tmp")
        self._files.rename(path + ".tmp", path + ".parquet")

    def _read(self, spark: SparkSession, _: Project) -> DataFrame:
        reader = spark.readStream.schema(RECORD_DDL).option("pathGlobFilter", "*.parquet")
        return reader.option("maxFilesPerTrigger", 1).parquet(f"{self._base}/records")


def table_rows(kind: str, path: str) -> list[dict[str, Any]]:
    """Return the rows that the format's own reader finds; empty before the first commit."""
    files = real_runtime().files
    found: list[dict[str, Any]] = []
    if kind == "parquet":
        if ManifestTable(path).state().version >= 0:
            found = read_table(path).to_arrow().to_pylist()
    elif kind == "delta":
        from deltalake import DeltaTable

        if DeltaTable.is_deltatable(path):
            found = pa.table(DeltaTable(path).to_pyarrow_dataset().to_table()).to_pylist()
    elif files.stat(f"{path}/catalog.sqlite") is not None:
        from embedlog.spark.pipeline.tables.iceberg import IcebergFormat

        table = IcebergFormat(path, {}).table()
        found = [] if table is None else table.scan().to_arrow().to_pylist()
    return found
