"""AlterReplicaLogDirs, as a Kafka 4.4 broker answers it; three brokers are in tests/golden."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import embedlog
from embedlog import ConfigResource
from embedlog.broker.directory_keeper import MOVE_RATE
from embedlog.cluster.cluster import Cluster
from tests.apis.ask import ask, opened, versions
from wire.schemas.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from wire.schemas.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

LONGEST = "l" * 213
"""The longest topic name whose partition 0 can move."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        cluster.create_topic("t", 2)
        yield cluster


def move(
    cluster: Cluster, version: int, *dirs: tuple[str, str, list[int]]
) -> list[tuple[str, list[tuple[int, int]]]]:
    """Send moves, given as (path, topic, partitions); return (topic, [(partition, error code)])."""
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


# Several directories


@pytest.fixture
def dirs(tmp_path: Path) -> tuple[str, str, str]:
    return str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "c")


@pytest.fixture
def several(dirs: tuple[str, str, str]) -> Iterator[Cluster]:
    with embedlog.open(dirs[0], log_dirs=dirs[1:]) as cluster:
        cluster.create_topic("t", 3, config={"segment.bytes": "1048576"})
        yield cluster


def places(cluster: Cluster, topic: str = "t", *indexes: int) -> dict[int, list[tuple[str, bool]]]:
    """Return partition -> (name of the directory, is it a future replica?), from
    DescribeLogDirs.
    """
    asked = DescribableLogDirTopic(topic=topic, partitions=list(indexes or range(3)))
    answer = ask(cluster, DescribeLogDirsRequest(topics=[asked]), 5)
    found: dict[int, list[tuple[str, bool]]] = {}
    for directory in answer.results:
        for described in directory.topics:
            for each in described.partitions:
                place = Path(directory.log_dir).name, each.is_future_key
                found.setdefault(each.partition_index, []).append(place)
    return found


def until(cluster: Cluster, is_so: Callable[[], bool]) -> None:
    """Let the broker work until the condition holds."""
    scheduler, clock = cluster.runtime.scheduler, cluster.runtime.clock
    end_ms = clock.monotonic_ms() + 30_000
    while not is_so():
        assert clock.monotonic_ms() < end_ms
        scheduler.run_due(clock.monotonic_ms())


def slow(cluster: Cluster, rate: int) -> None:
    """Slow moves down."""
    broker = ConfigResource("broker", "1")
    with cluster.admin() as admin:
        admin.alter_configs({broker: {MOVE_RATE: str(rate)}}).check()


def fill(cluster: Cluster, topic: str = "t", count: int = 200) -> None:
    with cluster.producer() as producer:
        for _ in range(count):
            producer.send(topic, bytes(1000), partition=0)


@pytest.mark.parametrize("version", versions(AlterReplicaLogDirsRequest))
def test_replicas_move(several: Cluster, dirs: tuple[str, str, str], version: int) -> None:
    fill(several)
    assert places(several) == {0: [("a", False)], 1: [("b", False)], 2: [("c", False)]}
    assert move(several, version, (dirs[1], "t", [0, 1, 2])) == [("t", [(0, 0), (1, 0), (2, 0)])]
    until(several, lambda: places(several) == {index: [("b", False)] for index in range(3)})
    assert several.health() == []


def test_a_move_is_described_and_ended_by_another(
    several: Cluster, dirs: tuple[str, str, str]
) -> None:
    fill(several)
    slow(several, 20_000)
    assert move(several, 2, (dirs[1], "t", [0])) == [("t", [(0, 0)])]
    until(
        several, lambda: several.broker().core.log_manager.relocations.futures()[("t", 0)].size > 0
    )
    asked = DescribableLogDirTopic(topic="t", partitions=[0])
    here, there, _ = ask(several, DescribeLogDirsRequest(topics=[asked]), 5).results
    [[is_here], [on_its_way]] = [each.topics[0].partitions for each in (here, there)]
    assert (is_here.is_future_key, is_here.offset_lag) == (False, 0)
    assert on_its_way.is_future_key
    assert 0 < on_its_way.partition_size < is_here.partition_size
    assert 0 < on_its_way.offset_lag <= 200
    assert move(several, 2, (dirs[1], "t", [0])) == [("t", [(0, 0)])]
    assert places(several, "t", 0) == {0: [("a", False), ("b", True)]}
    assert move(several, 2, (dirs[2], "t", [0])) == [("t", [(0, 0)])]
    assert places(several, "t", 0) == {0: [("a", False), ("c", True)]}
    assert move(several, 2, (dirs[0], "t", [0])) == [("t", [(0, 0)])]
    assert places(several, "t", 0) == {0: [("a", False)]}
    assert not list(Path(dirs[1]).glob("*-future"))
    assert not list(Path(dirs[2]).glob("*-future"))


def test_the_directory_of_a_replica_to_come_is_kept_in_mind(
    several: Cluster, dirs: tuple[str, str, str]
) -> None:
    assert move(several, 2, (dirs[2], "later", [0, 1])) == [("later", [(0, 3), (1, 3)])]
    several.create_topic("later", 2)
    assert places(several, "later") == {0: [("c", False)], 1: [("c", False)]}
    with several.admin() as admin:
        admin.delete_topics(["later"]).check()
    several.create_topic("later", 2)
    assert places(several, "later") == {0: [("a", False)], 1: [("b", False)]}


def test_only_paths_as_they_were_given_are_known(
    several: Cluster, dirs: tuple[str, str, str]
) -> None:
    for path in (dirs[1] + "/", "b", "/nope"):
        assert move(several, 2, (path, "t", [0])) == [("t", [(0, 57)])]
    assert move(several, 2, (dirs[1], "t", [7, -1])) == [("t", [(7, 3), (-1, 3)])]
    assert move(several, 2, (dirs[1], "nope", [0])) == [("nope", [(0, 3)])]


def test_nothing_moves_to_a_cordoned_directory(
    several: Cluster, dirs: tuple[str, str, str]
) -> None:
    broker = ConfigResource("broker", "1")
    with several.admin() as admin:
        admin.alter_configs({broker: {"cordoned.log.dirs": dirs[1]}}).check()
    assert move(several, 2, (dirs[1], "t", [0, 1, 7])) == [("t", [(0, 39), (1, 39), (7, 39)])]
    assert move(several, 2, (dirs[1], "nope", [0])) == [("nope", [(0, 39)])]
    assert move(several, 2, (dirs[1], LONGEST + "l", [0])) == [(LONGEST + "l", [(0, 17)])]
    assert move(several, 2, (dirs[2], "t", [1])) == [("t", [(1, 0)])]


def test_nothing_moves_while_a_directory_is_offline(
    several: Cluster, dirs: tuple[str, str, str]
) -> None:
    several.broker().core.log_manager.keeper.note_failure(dirs[2], OSError(5, "broken"))
    until(several, lambda: bool(several.broker().core.log_manager.offline))
    assert move(several, 2, (dirs[2], "t", [0])) == [("t", [(0, 56)])]
    assert move(several, 2, (dirs[2], "nope", [0])) == [("nope", [(0, 56)])]
    # The present directory, another one, and one that is offline itself.
    assert move(several, 2, (dirs[0], "t", [0, 1, 2])) == [("t", [(0, 0), (1, 56), (2, 56)])]
