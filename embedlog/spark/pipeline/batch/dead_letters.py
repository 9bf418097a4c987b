"""Dead letters: records that could not be written, each with the reason and its coordinates.

error_stage error_rule error      the reason; the stage of a rule on the output is `output`
key value headers                 the record as it came (for a rule on the output: the row as JSON)
topic partition offset timestamp  the record's coordinates
attempt                           count of attempts
app version                       the query or redrive, and its batch
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from embedlog.spark.pipeline.columns import BROKEN, INTERNAL
from embedlog.spark.pipeline.tables.table import CommitKey


def letters(failed: DataFrame, key: CommitKey) -> DataFrame:
    """Return the dead letters of rows whose `_error` is set."""
    return failed.select(
        f.col("_error.stage").alias("error_stage"),
        f.col("_error.rule").alias("error_rule"),
        f.col("_error.message").alias("error"),
        *[
            f.col(f"_{name}").alias(name)
            for name in (
                "key", "value", "headers", "topic", "partition", "offset", "timestamp", "attempt",
            )
        ],
        f.lit(key.app).alias("app"),
        f.lit(key.version).cast("bigint").alias("version"),
    )  # fmt: skip


def as_records(rows: DataFrame) -> DataFrame:
    """Give a transform's rows the columns that `letters` needs; the row as JSON is the value.

    A column that the transform dropped is null in the letter.
    """
    own = [name for name in rows.columns if name not in (*INTERNAL, BROKEN)]
    types = {
        "_key": "binary", "_headers": "array<struct<key:string,value:binary>>", "_topic": "string",
        "_partition": "int", "_offset": "bigint", "_timestamp": "timestamp", "_attempt": "int",
    }  # fmt: skip
    made = rows.withColumn("_value", f.to_json(f.struct(*own)).cast("binary"))
    for name, kind in types.items():
        if name not in rows.columns:
            made = made.withColumn(name, f.lit(None).cast(kind))
    return made.withColumn("_attempt", f.coalesce(f.col("_attempt"), f.lit(1)))
