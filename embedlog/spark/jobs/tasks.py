"""Runs a function in Spark's tasks, once for each item; its results come back as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

T = TypeVar("T")


def run_tasks(
    spark: SparkSession, work: Callable[[T], Any], items: Sequence[T]
) -> Iterator[tuple[int, Any]]:
    """Yield (index of the item, result of `work`), in the order of the items.

    Each item has its own task. Spark repeats a failed attempt, so `work` must allow repetition.
    `work` and the items must be picklable; the results must fit JSON.
    """
    items = list(items)
    if not items:
        return

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                text = json.dumps(work(items[index]))
                yield pa.RecordBatch.from_pydict({"slot": [index], "found": [text]})

    frame = spark.range(0, len(items), 1, len(items)).mapInArrow(run, "slot bigint, found string")
    for row in sorted(frame.collect(), key=lambda row: row.slot):
        yield row.slot, json.loads(row.found)
