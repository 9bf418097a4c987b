"""The stream's position, read from its checkpoint; and offsets in Spark's JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing

from pyspark.sql import Column
from pyspark.sql import functions as f

from embedlog.common import TopicPartition
from embedlog.runtime import real_runtime
from embedlog.spark.access.directory import DirectoryAccess
from embedlog.spark.offsets import (
    EARLIEST,
    Positions,
    from_json,
    id_number,
    id_numbers,
    to_json,
)
from embedlog.spark.pipeline.errors import ProjectError, ReplayRefused


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
    text = _last_offsets(checkpoint)
    return {} if text is None else parse_offsets(text)


def check_same_topics(checkpoint: str, path: str) -> None:
    """Refuse to replay topics that were made anew since the stream has read them.

    Raises:
        ReplayRefused: a topic was made anew, so that the stream's offsets are another topic's.
    """
    text = _last_offsets(checkpoint)
    if text is None:
        return
    with closing(DirectoryAccess(path, read_committed=False)) as access:
        present = access.topic_ids(parse_offsets(text))
    for topic, number in id_numbers(json.loads(text)).items():
        if topic in present and id_number(present[topic]) != number:
            raise ReplayRefused(
                f"{path}: the topic {topic!r} was deleted and made again since the pipeline's last "
                "batch: the tables have the records of the former topic"
            )


def begin_at(path: str | None, time_ms: int, ends: Positions) -> Positions:
    """Return where the records from a time on begin, at most at `ends`.

    Without a data directory at `path` every partition begins at its first offset. The offsets are
    resolved here, as a source would refuse a time that comes after the end in some partition.
    """
    if path is None or real_runtime().files.stat(path) is None:
        return dict.fromkeys(ends, EARLIEST)
    found = {}
    with closing(DirectoryAccess(path, read_committed=False)) as access:
        access.bounds(ends)
        for key, end in ends.items():
            offset = access.offset_for_timestamp(key, time_ms)
            found[key] = end if offset is None else min(offset, end)
    return found


def assigned(positions: Positions) -> str:
    """Return the JSON of `assign` for the partitions."""
    made: dict[str, list[int]] = {}
    for topic, partition in sorted(positions):
        made.setdefault(topic, []).append(partition)
    return json.dumps(made)


def _last_offsets(checkpoint: str) -> str | None:
    files = real_runtime().files
    commits = f"{checkpoint}/commits"
    if files.stat(commits) is None:
        return None
    done = [int(name) for name in files.list(commits) if name.isdecimal()]
    if not done:
        return None
    path = f"{checkpoint}/offsets/{max(done)}"
    lines = files.read(path).decode().splitlines()
    if len(lines) != 3:
        raise ProjectError(f"{path}: {len(lines)} lines, one source is expected")
    return lines[2]


def within(ranges: Iterable[tuple[TopicPartition, int, int]]) -> Column:
    """Return the condition that a record is in one of the ranges (partition, start, end)."""
    chosen = f.lit(False)
    for (topic, partition), start, end in ranges:
        is_of = (f.col("topic") == topic) & (f.col("partition") == partition)
        chosen = chosen | is_of & (f.col("offset") >= start) & (f.col("offset") < end)
    return chosen
