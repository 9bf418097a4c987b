"""DescribeTopicPartitions, as a Kafka 4.4 broker answers it: pages, cursors, errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.cluster.cluster import Cluster
from tests.apis.ask import ask, opened
from wire.schemas.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)

Page = tuple[list[tuple[int, str | None, list[int]]], tuple[str, int] | None]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        for name, partitions in (("d1", 3), ("d2", 3), ("d3", 2)):
            cluster.create_topic(name, partitions)
        yield cluster


def describe(
    cluster: Cluster, names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    at = None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1])
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=at,
    )
    response: DescribeTopicPartitionsResponse = ask(cluster, request, 0)
    return response


def page(response: DescribeTopicPartitionsResponse) -> Page:
    topics = [
        (topic.error_code, topic.name, [p.partition_index for p in topic.partitions])
        for topic in response.topics
    ]
    cursor = response.next_cursor
    return topics, None if cursor is None else (cursor.topic_name, cursor.partition_index)


def test_a_topic_is_described_in_full(cluster: Cluster) -> None:
    (topic,) = describe(cluster, ["d3"]).topics
    assert topic.topic_id == cluster.broker().core.controller.image.topics_by_name["d3"].topic_id
    assert (topic.is_internal, topic.topic_authorized_operations) == (False, 3576)
    first, _ = topic.partitions
    assert (first.leader_id, first.leader_epoch, first.replica_nodes) == (1, 0, [1])
    assert (first.isr_nodes, first.offline_replicas) == ([1], [])
    assert (first.eligible_leader_replicas, first.last_known_elr) == ([], [])


@pytest.mark.parametrize(
    ("names", "limit", "cursor", "answer"),
    [
        (["d3", "d1", "d1"], 2000, None, ([(0, "d1", [0, 1, 2]), (0, "d3", [0, 1])], None)),
        (
            ["d1", "nope", "a b"],
            2000,
            None,
            ([(17, "a b", []), (0, "d1", [0, 1, 2]), (3, "nope", [])], None),
        ),
        ([], 2, None, ([(0, "d1", [0, 1])], ("d1", 2))),
        (["d1", "d2"], 4, None, ([(0, "d1", [0, 1, 2]), (0, "d2", [0])], ("d2", 1))),
        (["d1", "d2"], 3, None, ([(0, "d1", [0, 1, 2])], ("d2", 0))),
        (["d1", "d2"], 0, None, ([(0, "d1", [0])], ("d1", 1))),
        (["d1", "d2"], -1, None, ([(0, "d1", [0])], ("d1", 1))),
        (["d1", "d2"], 2, ("d1", 2), ([(0, "d1", [2]), (0, "d2", [0])], ("d2", 1))),
        (["d1", "d2"], 2, ("d2", 5), ([(0, "d2", [])], None)),
        (["d1", "d2"], 9, ("d1", 3), ([(0, "d1", []), (0, "d2", [0, 1, 2])], None)),
        ([], 5, ("d1", 1), ([(0, "d1", [1, 2]), (0, "d2", [0, 1, 2])], ("d3", 0))),
        (["d1", "nope", "zz"], 3, None, ([(0, "d1", [0, 1, 2])], ("nope", 0))),
        (["d1", "d2"], 2, ("d15", 0), ([(42, "d1", []), (42, "d2", [])], None)),
        (["d1", "d2"], 9, ("d1", -1), ([(42, "d1", []), (42, "d2", [])], None)),
        (["d1"], 9, ("", 0), ([(42, "d1", [])], None)),
        (["", "d1"], 9, None, ([(-1, "", []), (-1, "d1", [])], None)),
    ],
)
def test_pages_and_errors_are_kafkas(
    cluster: Cluster, names: list[str], limit: int, cursor: tuple[str, int] | None, answer: Page
) -> None:
    assert page(describe(cluster, names, limit, cursor)) == answer


def test_following_the_cursor_sees_everything_once(cluster: Cluster) -> None:
    seen: list[tuple[str | None, int]] = []
    cursor: tuple[str, int] | None = None
    while True:
        topics, cursor = page(describe(cluster, [], 3, cursor))
        seen.extend((name, number) for _, name, numbers in topics for number in numbers)
        if cursor is None:
            break
    counts = (("d1", 3), ("d2", 3), ("d3", 2))
    assert seen == [(name, number) for name, count in counts for number in range(count)]


def test_the_broker_limits_the_page() -> None:
    with opened(max_request_partition_size_limit=2) as cluster:
        cluster.create_topic("a", 5)
        assert page(describe(cluster, ["a"])) == ([(0, "a", [0, 1])], ("a", 2))
