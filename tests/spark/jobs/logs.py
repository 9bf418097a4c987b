"""Logs of several segments, for jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import embedlog
from embedlog.common import TopicPartition
from embedlog.spark.committer import commit
from embedlog.storage.staging.manifest import Replacement
from tests.spark.logs import add
from tests.support.commits import expect_commits

Row = tuple[int, bytes | None, bytes | None]


@contextmanager
def segmented(path: Path, *, partitions: int = 2, segments: int = 3) -> Iterator[Any]:
    """A running cluster with a topic "t", whose partitions have `segments` segments of 12 records.

    The last segment is active. `tests.spark.logs.add` makes the records.
    """
    with embedlog.open(path, durability="os") as cluster:
        cluster.create_topic("t", partitions)
    expect_commits(path)
    with embedlog.open(path, durability="os", background=True) as cluster:
        for number in range(segments):
            for partition in range(partitions):
                if number:
                    roll(path, partition)
                add(cluster, "t", partition, range(12 * number, 12 * number + 12), linger_ms=0)
        yield cluster


def roll(path: Path, partition: int) -> None:
    """Begin a segment."""
    commit(
        str(path), Replacement(f"roll-{partition}", TopicPartition("t", partition), is_roll=True)
    )


def read(path: Path, partition: int = 0) -> list[Row]:
    """Every record that other processes see."""
    with embedlog.open_reader(path) as reader:
        return [
            (each.offset, each.key, each.value)
            for each in reader.partition("t", partition).records()
        ]
