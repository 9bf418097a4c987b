"""DeleteTopics, as a Kafka 4.4 broker answers it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.common import ZERO_UUID
from tests.apis.ask import ask, opened, versions
from wire.schemas.delete_topics import DeleteTopicsRequest, DeleteTopicState

Result = tuple[str | None, bytes, int, str | None]
UNKNOWN = bytes([5] * 16)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        yield cluster


def delete(cluster: Cluster, *topics: DeleteTopicState, timeout_ms: int = 1000) -> list[Result]:
    request = DeleteTopicsRequest(topics=list(topics), timeout_ms=timeout_ms)
    responses = ask(cluster, request, 6).responses
    return [(r.name, r.topic_id, r.error_code, r.error_message) for r in responses]


def by_name(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=name)


def by_id(topic_id: bytes) -> DeleteTopicState:
    return DeleteTopicState(name=None, topic_id=topic_id)


@pytest.mark.parametrize("version", [v for v in versions(DeleteTopicsRequest) if v < 6])
def test_topics_go_by_name(cluster: Cluster, version: int) -> None:
    for name in ("a", "b", "keep"):
        cluster.create_topic(name)
    request = DeleteTopicsRequest(topic_names=["a", "b", "nope", "b"], timeout_ms=1000)
    responses = ask(cluster, request, version).responses
    assert {r.name: r.error_code for r in responses} == {"a": 0, "nope": 3, "b": 42}
    assert cluster.topics == ["b", "keep"]
    messages = {r.name: r.error_message for r in responses}
    assert messages["b"] == ("Duplicate topic name." if version == 5 else None)


def test_a_topic_goes_by_id(cluster: Cluster) -> None:
    topic_id = cluster.create_topic("a").topic_id
    assert delete(cluster, by_id(topic_id)) == [("a", topic_id, 0, None)]
    assert cluster.topics == []
    message = "This server does not host this topic ID."
    assert delete(cluster, by_id(topic_id)) == [(None, topic_id, 100, message)]


def test_a_deleted_topic_can_be_made_again_with_another_id(cluster: Cluster) -> None:
    first = cluster.create_topic("a").topic_id
    delete(cluster, by_name("a"))
    assert cluster.create_topic("a").topic_id != first


def test_refusals_have_kafkas_words(cluster: Cluster) -> None:
    topic_id = cluster.create_topic("a").topic_id
    host = "This server does not host this topic-partition."
    for asked, answer in [
        ([by_name("nope")], [("nope", ZERO_UUID, 3, host)]),
        ([by_name("a b")], [("a b", ZERO_UUID, 3, host)]),
        ([by_name("__cluster_metadata")], [("__cluster_metadata", ZERO_UUID, 3, host)]),
        (
            [by_id(UNKNOWN)],
            [(None, UNKNOWN, 100, "This server does not host this topic ID.")],
        ),
        (
            [by_id(ZERO_UUID)],
            [(None, ZERO_UUID, 42, "Neither topic name nor id were specified.")],
        ),
        (
            [DeleteTopicState(name="a", topic_id=topic_id)],
            [("a", topic_id, 42, "You may not specify both topic name and topic id.")],
        ),
        ([by_name("a"), by_name("a")], [("a", ZERO_UUID, 42, "Duplicate topic name.")]),
        ([by_id(topic_id), by_id(topic_id)], [(None, topic_id, 42, "Duplicate topic id.")]),
        (
            [by_name("a"), by_id(topic_id)],
            [
                (
                    "a",
                    topic_id,
                    42,
                    "The provided topic name maps to an ID that was already supplied.",
                )
            ],
        ),
        ([], []),
    ]:
        assert delete(cluster, *asked) == answer
    assert cluster.topics == ["a"]


def test_no_time_deletes_nothing(cluster: Cluster) -> None:
    topic_id = cluster.create_topic("a").topic_id
    assert delete(cluster, by_name("a"), timeout_ms=0) == [("a", ZERO_UUID, 7, None)]
    assert delete(cluster, by_id(topic_id), timeout_ms=-1) == [(None, topic_id, 7, None)]
    assert cluster.topics == ["a"]


@pytest.mark.parametrize("version", versions(DeleteTopicsRequest))
def test_the_broker_may_forbid_deletion(version: int) -> None:
    with opened(delete_topic_enable=False) as cluster:
        cluster.create_topic("a")
        topics = [by_name("a")] if version >= 6 else []
        names = ["a"] if version < 6 else []
        request = DeleteTopicsRequest(topics=topics, topic_names=names, timeout_ms=1000)
        (response,) = ask(cluster, request, version).responses
        assert response.error_code == (73 if version >= 3 else 42)
        assert cluster.topics == ["a"]
