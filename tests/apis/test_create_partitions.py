"""CreatePartitions, as a Kafka 4.4 broker answers it; the rules are in tests/controller."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.cluster.cluster import Cluster
from tests.apis.ask import ask, opened, versions
from wire.schemas.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        cluster.create_topic("p", 2)
        yield cluster


def grow(
    cluster: Cluster,
    *topics: CreatePartitionsTopic,
    version: int = 3,
    timeout_ms: int = 1000,
    validate_only: bool = False,
) -> list[tuple[str, int, str | None]]:
    request = CreatePartitionsRequest(
        topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only
    )
    results = ask(cluster, request, version).results
    return [(r.name, r.error_code, r.error_message) for r in results]


def to(count: int, name: str = "p", nodes: list[list[int]] | None = None) -> CreatePartitionsTopic:
    laid_down = None
    if nodes is not None:
        laid_down = [CreatePartitionsAssignment(broker_ids=each) for each in nodes]
    return CreatePartitionsTopic(name=name, count=count, assignments=laid_down)


def count(cluster: Cluster) -> int:
    return len(cluster.broker().core.controller.image.topics_by_name["p"].partitions)


@pytest.mark.parametrize("version", versions(CreatePartitionsRequest))
def test_a_topic_grows(cluster: Cluster, version: int) -> None:
    assert grow(cluster, to(4), version=version) == [("p", 0, None)]
    assert count(cluster) == 4
    assert grow(cluster, to(5, nodes=[[1]]), version=version) == [("p", 0, None)]
    assert cluster.broker().core.replica_manager.partition("p", 4).topic_partition.partition == 4


def test_each_topic_has_its_own_error(cluster: Cluster) -> None:
    assert grow(cluster, to(2), to(3, "nope"), to(3, "a b")) == [
        ("p", 37, "Topic already has 2 partition(s)."),
        ("nope", 3, None),
        ("a b", 3, None),
    ]


def test_a_topic_twice_is_refused(cluster: Cluster) -> None:
    assert grow(cluster, to(3), to(4)) == [("p", 42, "Duplicate topic name.")]
    assert count(cluster) == 2


def test_no_time_and_validation_add_nothing(cluster: Cluster) -> None:
    assert grow(cluster, to(3), timeout_ms=0) == [("p", 7, None)]
    assert grow(cluster, to(3), validate_only=True) == [("p", 0, None)]
    assert grow(cluster) == []
    assert count(cluster) == 2
