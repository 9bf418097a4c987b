"""ElectLeaders, as a single Kafka 4.4 broker answers it; elections are in tests/controller."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.cluster.cluster import Cluster
from tests.apis.ask import ask, opened, versions
from wire.schemas.elect_leaders import ElectLeadersRequest, TopicPartitions

NOT_NEEDED = "Leader election not needed for topic partition."
Results = list[tuple[str, list[tuple[int, int, str | None]]]]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        cluster.create_topic("p", 2)
        yield cluster


def elect(
    cluster: Cluster,
    *topics: tuple[str, list[int]],
    every: bool = False,
    kind: int = 0,
    version: int = 2,
    timeout_ms: int = 1000,
) -> tuple[int, Results]:
    wanted = [TopicPartitions(topic=name, partitions=numbers) for name, numbers in topics]
    request = ElectLeadersRequest(
        election_type=kind, topic_partitions=None if every else wanted, timeout_ms=timeout_ms
    )
    answer = ask(cluster, request, version)
    return answer.error_code, [
        (
            each.topic,
            [(r.partition_id, r.error_code, r.error_message) for r in each.partition_result],
        )
        for each in answer.replica_election_results
    ]


@pytest.mark.parametrize("version", versions(ElectLeadersRequest))
def test_the_only_broker_leads_what_it_should(cluster: Cluster, version: int) -> None:
    assert elect(cluster, ("p", [0, 1, 7]), ("nope", [0]), version=version) == (
        0,
        [
            (
                "p",
                [(0, 84, NOT_NEEDED), (1, 84, NOT_NEEDED), (7, 3, "No such partition as p-7")],
            ),
            ("nope", [(0, 3, "No such topic as nope")]),
        ],
    )


@pytest.mark.parametrize("version", versions(ElectLeadersRequest))
def test_of_all_partitions_those_without_need_are_left_out(cluster: Cluster, version: int) -> None:
    assert elect(cluster, every=True, version=version) == (0, [("p", [])])


def test_repeated_entries_are_answered_twice(cluster: Cluster) -> None:
    assert elect(cluster, ("p", [0, 0]), ("p", [1]), kind=1) == (
        0,
        [("p", [(0, 84, NOT_NEEDED), (0, 84, NOT_NEEDED)]), ("p", [(1, 84, NOT_NEEDED)])],
    )
    assert elect(cluster) == (0, [])


def test_there_are_two_kinds(cluster: Cluster) -> None:
    unknown = [("p", [(0, 42, "Unknown election type 2")])]
    assert elect(cluster, ("p", [0]), kind=2) == (42, unknown)
    assert elect(cluster, every=True, kind=5, version=1) == (42, [])


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_nobody_is_elected(cluster: Cluster, timeout_ms: int) -> None:
    late = (7, [("p", [(0, 7, None)])])
    assert elect(cluster, ("p", [0]), timeout_ms=timeout_ms) == late
