"""Pipelines: from topics to tables by one project file, exactly once.

    import embedlog.spark.pipeline as pipeline

    project = pipeline.load("orders/pipeline.toml")
    pipeline.run(spark, project)
    pipeline.read_table("orders/tables/orders").to_arrow()

The command is `embedlog pipeline`. `embedlog.spark.pipeline.project` describes the project file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedlog.spark.pipeline.batch.report import Totals
from embedlog.spark.pipeline.project import Project, load, parse
from embedlog.spark.pipeline.tables.parquet import TableSnapshot, read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Project", "TableSnapshot", "load", "parse", "read_table", "run"]


def run(spark: SparkSession, project: Project, **arguments: Any) -> Totals:
    """Run a pipeline once; see `runner.Runner.run` for `arguments` and errors."""
    from embedlog.spark.pipeline.running.runner import Runner

    return Runner(spark, project).run(**arguments)
