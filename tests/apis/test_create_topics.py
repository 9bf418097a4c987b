"""CreateTopics, as a Kafka 4.4 broker answers it; the rules are in tests/controller."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.common import ZERO_UUID
from tests.apis.ask import ask, opened, versions
from wire.schemas.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        yield cluster


def topic(name: str, partitions: int = 1, **configs: str | None) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def create(
    cluster: Cluster, *topics: CreatableTopic, version: int = 7, **options: object
) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), **options)  # type: ignore[arg-type]
    results: list[CreatableTopicResult] = ask(cluster, request, version).topics
    return results


@pytest.mark.parametrize("version", versions(CreateTopicsRequest))
def test_a_topic_is_made_and_told_about(cluster: Cluster, version: int) -> None:
    (result,) = create(cluster, topic("t", 2, retention_ms=" 1000 "), version=version)
    assert (result.error_code, result.name) == (0, "t")
    assert cluster.topics == ["t"]
    made = cluster.broker().core.controller.image.topics_by_name["t"]
    assert result.topic_id == (made.topic_id if version >= 7 else ZERO_UUID)
    if version < 5:
        assert (result.num_partitions, result.configs) == (-1, [])
        return
    assert (result.num_partitions, result.replication_factor) == (2, 1)
    assert result.configs is not None
    configs = {config.name: config for config in result.configs}
    assert len(configs) == 37
    own = configs["retention.ms"]
    assert (own.value, own.config_source, own.read_only) == (" 1000 ", 1, False)
    assert (configs["segment.ms"].value, configs["segment.ms"].config_source) == ("604800000", 5)
    assert configs["min.insync.replicas"].config_source == 3


@pytest.mark.parametrize("version", range(1, 8))
def test_validate_only_makes_nothing(cluster: Cluster, version: int) -> None:
    (result,) = create(cluster, topic("t"), version=version, validate_only=True)
    assert result.error_code == 0
    assert cluster.topics == []


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_no_time_makes_nothing(cluster: Cluster, timeout_ms: int) -> None:
    (result,) = create(cluster, topic("t"), timeout_ms=timeout_ms)
    assert (result.error_code, result.error_message, result.num_partitions) == (7, None, -1)
    assert cluster.topics == []


def test_errors_stand_beside_successes(cluster: Cluster) -> None:
    create(cluster, topic("old"))
    results = create(cluster, topic("b"), topic("a b"), topic("old"), topic("c"))
    assert [(r.name, r.error_code) for r in results] == [
        ("b", 0),
        ("a b", 17),
        ("old", 36),
        ("c", 0),
    ]
    failed = results[2]
    assert failed.error_message == "Topic 'old' already exists."
    assert (failed.topic_id, failed.num_partitions, failed.configs) == (ZERO_UUID, -1, [])


def test_a_name_twice_and_the_metadata_topic_are_refused(cluster: Cluster) -> None:
    metadata = topic("__cluster_metadata", 20_000)
    results = create(cluster, topic("d"), topic("e"), topic("d"), metadata)
    assert {r.name: (r.error_code, r.error_message) for r in results} == {
        "e": (0, None),
        "d": (42, "Duplicate topic name."),
        "__cluster_metadata": (42, "Creation of internal topic __cluster_metadata is prohibited."),
    }
    assert cluster.topics == ["e"]


def test_too_many_partitions_refuse_every_topic(cluster: Cluster) -> None:
    results = create(cluster, topic("a", 6000), topic("b", 6000))
    assert [(r.error_code, r.error_message) for r in results] == [
        (44, "Excessively large number of partitions per request.")
    ] * 2


def test_null_settings_are_refused(cluster: Cluster) -> None:
    (result,) = create(cluster, topic("t", retention_ms=None))
    assert (result.error_code, result.error_message) == (
        40,
        "Null value not supported for topic configs: retention.ms",
    )


def test_of_a_setting_given_twice_the_last_counts(cluster: Cluster) -> None:
    twice = topic("t")
    twice.configs = [
        CreatableTopicConfig(name="retention.ms", value="1"),
        CreatableTopicConfig(name="retention.ms", value="2"),
    ]
    create(cluster, twice)
    assert cluster.broker().core.controller.image.topic_configs["t"] == {"retention.ms": "2"}


def test_replicas_may_be_laid_down(cluster: Cluster) -> None:
    laid_down = CreatableTopic(
        name="t",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=1, broker_ids=[1]),
            CreatableReplicaAssignment(partition_index=0, broker_ids=[1]),
        ],
    )
    (result,) = create(cluster, laid_down)
    assert (result.error_code, result.num_partitions) == (0, 2)


def test_nothing_asked_for_nothing_made(cluster: Cluster) -> None:
    assert create(cluster) == []
