"""AlterPartitionReassignments and ListPartitionReassignments, as a single Kafka 4.4 broker answers.

The moves themselves are tested in tests/controller.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.cluster.cluster import Cluster
from tests.apis.ask import ask, opened, versions
from wire.schemas.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from wire.schemas.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

Results = list[tuple[str, list[tuple[int, int, str | None]]]]
NEWEST = 1


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        cluster.create_topic("p", 2)
        yield cluster


def move(
    cluster: Cluster,
    *topics: tuple[str, dict[int, list[int] | None]],
    version: int = NEWEST,
    timeout_ms: int = 1000,
    may_change_factor: bool = True,
) -> tuple[int, Results]:
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=may_change_factor,
        topics=[
            ReassignableTopic(
                name=name,
                partitions=[
                    ReassignablePartition(partition_index=number, replicas=replicas)
                    for number, replicas in partitions.items()
                ],
            )
            for name, partitions in topics
        ],
    )
    answer = ask(cluster, request, version)
    assert answer.allow_replication_factor_change == may_change_factor
    assert answer.error_message is None
    return answer.error_code, [
        (each.name, [(p.partition_index, p.error_code, p.error_message) for p in each.partitions])
        for each in answer.responses
    ]


@pytest.mark.parametrize("version", versions(AlterPartitionReassignmentsRequest))
def test_each_partition_has_its_own_error(cluster: Cluster, version: int) -> None:
    wanted: dict[int, list[int] | None] = {0: [1], 1: None, 9: [1]}
    assert move(cluster, ("p", wanted), ("nope", {0: [1]}), version=version) == (
        0,
        [
            ("p", [(0, 0, None), (1, 85, None), (9, 3, "Unable to find partition p:9.")]),
            ("nope", [(0, 3, "Unable to find a topic named nope.")]),
        ],
    )


def test_replicas_must_be_brokers_and_differ(cluster: Cluster) -> None:
    missing = (
        "The manual partition assignment includes broker {}, but no such broker is registered."
    )
    assert move(cluster, ("p", {0: [], 1: [1, 1]})) == (
        0,
        [
            (
                "p",
                [
                    (0, 39, "The manual partition assignment includes an empty replica list."),
                    (
                        1,
                        39,
                        "The manual partition assignment includes the broker 1 more than once.",
                    ),
                ],
            )
        ],
    )
    assert move(cluster, ("p", {0: [2], 1: [-1]}), may_change_factor=False) == (
        0,
        [("p", [(0, 39, missing.format(2)), (1, 39, missing.format(-1))])],
    )


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_nothing_is_moved(cluster: Cluster, timeout_ms: int) -> None:
    late = (7, [("p", [(0, 7, None)])])
    assert move(cluster, ("p", {0: [1]}), timeout_ms=timeout_ms) == late


@pytest.mark.parametrize("timeout_ms", [0, 1000])
def test_nothing_is_moved_at_any_time(cluster: Cluster, timeout_ms: int) -> None:
    request = AlterPartitionReassignmentsRequest(timeout_ms=timeout_ms)
    answer = ask(cluster, request, NEWEST)
    assert (answer.error_code, answer.error_message, answer.responses) == (0, "", [])


def test_partitions_that_do_not_move_are_not_listed(cluster: Cluster) -> None:
    named = [
        ListPartitionReassignmentsTopics(name="p", partition_indexes=[0, 1, 9]),
        ListPartitionReassignmentsTopics(name="nope", partition_indexes=[0]),
    ]
    for topics in (None, [], named):
        request = ListPartitionReassignmentsRequest(timeout_ms=0, topics=topics)
        answer = ask(cluster, request, 0)
        assert (answer.error_code, answer.error_message, answer.topics) == (0, None, [])
