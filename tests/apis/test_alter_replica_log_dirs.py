"""AlterReplicaLogDirs, as a Kafka 4.4 broker answered it; three of them are in tests/golden."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.cluster import Cluster
from tests.apis.ask import ask, opened, versions
from wire.schemas.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)

LONGEST = "l" * 213
"""The longest name of a topic whose partition 0 can be moved."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        cluster.create_topic("t", 2)
        yield cluster


def move(
    cluster: Cluster, version: int, *dirs: tuple[str, str, list[int]]
) -> list[tuple[str, list[tuple[int, int]]]]:
    """(topic, [(partition, error code)]) of each topic; `dirs` are (path, topic, partitions)."""
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=partitions)]
            )
            for path, name, partitions in dirs
        ]
    )
    answer = ask(cluster, request, version)
    return [
        (topic.topic_name, [(p.partition_index, p.error_code) for p in topic.partitions])
        for topic in answer.results
    ]


def own(cluster: Cluster) -> str:
    path: str = cluster.broker().core.log_manager.first.directory.path
    return path


@pytest.mark.parametrize("version", versions(AlterReplicaLogDirsRequest))
def test_a_replica_may_be_where_it_is(cluster: Cluster, version: int) -> None:
    path = own(cluster)
    assert move(cluster, version, (path, "t", [0, 1])) == [("t", [(0, 0), (1, 0)])]
    assert move(cluster, version, (path, "t", [7, -1])) == [("t", [(7, 3), (-1, 3)])]
    assert move(cluster, version, (path, "no/such", [0])) == [("no/such", [(0, 3)])]
    assert move(cluster, version) == []


@pytest.mark.parametrize("path", ["/no/such/directory", "relative", ""])
def test_no_other_directory_is_known(cluster: Cluster, path: str) -> None:
    assert move(cluster, 2, (path, "t", [0, 7])) == [("t", [(0, 57), (7, 57)])]
    assert move(cluster, 2, (path, "unknown", [0])) == [("unknown", [(0, 57)])]


def test_the_last_directory_named_counts(cluster: Cluster) -> None:
    path = own(cluster)
    assert move(cluster, 2, ("/a", "t", [0]), (path, "t", [0])) == [("t", [(0, 0)])]
    assert move(cluster, 2, (path, "t", [0]), ("/a", "t", [0])) == [("t", [(0, 57)])]


def test_a_long_name_leaves_no_room_for_a_replica_on_its_way(cluster: Cluster) -> None:
    path = own(cluster)
    cluster.create_topic(LONGEST)
    cluster.create_topic(LONGEST + "l")
    assert move(cluster, 2, (path, LONGEST, [0])) == [(LONGEST, [(0, 0)])]
    for to in (path, "/no/such/directory"):
        assert move(cluster, 2, (to, LONGEST + "l", [0])) == [(LONGEST + "l", [(0, 17)])]
