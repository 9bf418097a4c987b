"""Quality rules: conditions that a row must fulfil, counted by rule.

A broken rule warns (the row goes on), drops (the row becomes a dead letter with the rule's name) or
fails (the batch is not written, and the pipeline stops). An expression that is null counts as
broken. Rows whose key was deleted have no values to check.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from embedlog.spark.pipeline.columns import BROKEN, OUTPUT
from embedlog.spark.pipeline.project import Rule


def judge(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Add `_broken`, the names of the rules that a row breaks; set `_error` for drop rules."""
    if not rules:
        return frame.withColumn(BROKEN, f.lit(None).cast("array<string>"))
    is_judged = f.col("_error").isNull() & ~f.coalesce(f.col("_deleted"), f.lit(False))
    names = [f.when(is_judged & _breaks(rule), f.lit(rule.name)) for rule in rules]
    judged = frame.withColumn(BROKEN, f.array_compact(f.array(*names)))
    error = f.col("_error")
    for rule in rules:
        if rule.action != "drop":
            continue
        reason = f.struct(
            f.lit(OUTPUT if rule.on == "output" else "rule").alias("stage"),
            f.lit(rule.name).alias("rule"),
            f.lit(f"not fulfilled: {rule.expect}").alias("message"),
        )
        is_first = error.isNull() & f.array_contains(BROKEN, rule.name)
        error = f.when(is_first, reason).otherwise(error)
    return judged.withColumn("_error", error)


def _breaks(rule: Rule) -> Column:
    return ~f.coalesce(f.expr(rule.expect).cast("boolean"), f.lit(False))
