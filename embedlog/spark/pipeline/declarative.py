"""A project's source, schema and rules in Spark Declarative Pipelines.

Spark runs the flows of a declarative pipeline and keeps their tables. So the sinks, transforms and
trigger of the project file are ignored; its source, decoding and rules apply.

    from pyspark import pipelines as dp
    from embedlog.spark.pipeline import declarative

    ORDERS = declarative.rows(spark, "pipeline.toml")
    REJECTED = declarative.rejects(spark, "pipeline.toml")

    @dp.table
    def orders():
        return ORDERS

    @dp.table
    def orders_rejected():
        return REJECTED

Make the frames outside of the functions, because Spark forbids analysis inside of them. Both frames
are streams. No state is kept between batches, so a watermark of the project rejects only rows
without an event time; use one of Spark's own watermarks on the stream.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from embedlog.spark.pipeline.batch.dead_letters import letters
from embedlog.spark.pipeline.batch.evaluate import Evaluator
from embedlog.spark.pipeline.columns import KEPT
from embedlog.spark.pipeline.project import Project, load
from embedlog.spark.pipeline.running.topics import read_stream
from embedlog.spark.pipeline.tables.table import CommitKey


def rows(spark: SparkSession, project: Project | str | Path) -> DataFrame:
    """Return the rows that fit the schema and keep the rules, with their coordinates.

    Raises:
        ProjectError: the project cannot be read.
    """
    evaluator, judged = _judged(spark, project)
    # Spark forbids asking a frame for its columns here.
    kept = [*(each.name for each in evaluator.columns.fields), *KEPT]
    return judged.where("_error IS NULL AND NOT _tombstone").select(*kept)


def rejects(spark: SparkSession, project: Project | str | Path) -> DataFrame:
    """Return the dead letters, with the reason and the record as it came.

    Raises:
        ProjectError: the project cannot be read.
    """
    _, judged = _judged(spark, project)
    return letters(judged.where("_error IS NOT NULL"), CommitKey("declarative", 0)).drop(
        "app", "version"
    )


def _judged(spark: SparkSession, project: Project | str | Path) -> tuple[Evaluator, DataFrame]:
    loaded = project if isinstance(project, Project) else load(project)
    evaluator = Evaluator(loaded)
    return evaluator, evaluator.judged(read_stream(spark, loaded))
