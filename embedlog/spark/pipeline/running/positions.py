"""The stream's position, read from its checkpoint; and offsets in Spark's JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as f

from embedlog.common import TopicPartition
from embedlog.runtime import real_runtime
from embedlog.spark.offsets import Positions, from_json, to_json
from embedlog.spark.pipeline.errors import ProjectError


def parse_offsets(text: str) -> Positions:
    """Parse offsets in the JSON of `startingOffsets`: {"topic": {"0": 23}}.

    Raises:
        ProjectError: the text has another form.
    """
    try:
        return from_json(json.loads(text))
    except ValueError:
        raise ProjectError(f'expected offsets such as {{"topic":{{"0":23}}}}, got {text}') from None


def offsets_json(positions: Positions) -> str:
    """Return the JSON of positions."""
    return json.dumps(to_json(positions))


def committed_end(checkpoint: str) -> Positions:
    """Return where the last finished batch ends, by partition; empty before the first batch.

    Raises:
        ProjectError: the checkpoint has more sources than the topics.
    """
    files = real_runtime().files
    commits = f"{checkpoint}/commits"
    if files.stat(commits) is None:
        return {}
    done = [int(name) for name in files.list(commits) if name.isdecimal()]
    if not done:
        return {}
    path = f"{checkpoint}/offsets/{max(done)}"
    lines = files.read(path).decode().splitlines()
    if len(lines) != 3:
        raise ProjectError(f"{path}: {len(lines)} lines, one source is expected")
    return parse_offsets(lines[2])


def within(ranges: Iterable[tuple[TopicPartition, int, int]]) -> Column:
    """Return the condition that a record is in one of the ranges (partition, start, end)."""
    chosen = f.lit(False)
    for (topic, partition), start, end in ranges:
        is_of = (f.col("topic") == topic) & (f.col("partition") == partition)
        chosen = chosen | is_of & (f.col("offset") >= start) & (f.col("offset") < end)
    return chosen
