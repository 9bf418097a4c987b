"""The stream's position, read from its checkpoint; and offsets in Spark's JSON."""

from __future__ import annotations

import json
from typing import TypeAlias

from embedlog.runtime import real_runtime
from embedlog.spark.pipeline.errors import ProjectError

Positions: TypeAlias = dict[tuple[str, int], int]
"""(topic, partition) -> offset."""


def parse_offsets(text: str) -> Positions:
    """Parse offsets in the JSON of `startingOffsets`: {"topic": {"0": 23}}.

    Raises:
        ProjectError: the text has another form.
    """
    try:
        found = json.loads(text)
        return {
            (str(topic), int(partition)): int(offset)
            for topic, partitions in found.items()
            for partition, offset in partitions.items()
        }
    except (ValueError, AttributeError, TypeError):
        raise ProjectError(f'expected offsets such as {{"topic":{{"0":23}}}}, got {text}') from None


def offsets_json(positions: Positions) -> str:
    """Return the JSON of positions."""
    made: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(positions.items()):
        made.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(made)


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
