"""Two streaming tables from a topic, and a view over one of them."""

from __future__ import annotations

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from embedlog.spark.pipeline import declarative

PROJECT = Path(__file__).parents[1] / "pipeline.toml"
# Made outside of the functions, because Spark forbids analysis inside them.
ROWS = declarative.rows(SparkSession.active(), PROJECT)
REJECTS = declarative.rejects(SparkSession.active(), PROJECT)


@dp.table
def clicks() -> DataFrame:
    return ROWS


@dp.table
def clicks_rejected() -> DataFrame:
    return REJECTS


@dp.materialized_view
def clicks_by_page() -> DataFrame:
    return SparkSession.active().read.table("clicks").groupBy("page").count()
