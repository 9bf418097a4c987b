"""AlterConfigs, as Kafka 4.4 answers it: settings that are not named return to their defaults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.cluster.cluster import Cluster
from tests.apis.ask import ask, opened, versions
from wire.schemas.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)

TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        cluster.create_topic("t", config={"segment.ms": 60000, "cleanup.policy": "compact"})
        yield cluster


def replace(
    cluster: Cluster,
    *resources: tuple[int, str, list[tuple[str, str | None]]],
    version: int = 2,
    validate_only: bool = False,
) -> list[tuple[int, str | None]]:
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterableConfig(name=key, value=value) for key, value in configs],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    responses = ask(cluster, request, version).responses
    assert [(r.resource_type, r.resource_name) for r in responses] == [
        (kind, name) for kind, name, _ in resources
    ]
    return [(r.error_code, r.error_message) for r in responses]


@pytest.mark.parametrize("version", versions(AlterConfigsRequest))
def test_everything_is_replaced(cluster: Cluster, version: int) -> None:
    assert replace(cluster, (TOPIC, "t", [("retention.ms", "777")]), version=version) == [(0, None)]
    assert cluster.broker().core.controller.image.topic_configs["t"] == {"retention.ms": "777"}
    assert replace(cluster, (TOPIC, "t", []), version=version) == [(0, None)]
    assert cluster.broker().core.controller.image.topic_configs == {}


@pytest.mark.parametrize(
    ("kind", "name", "configs", "code", "message"),
    [
        (
            TOPIC,
            "t",
            [("retention.ms", None)],
            42,
            "Null value not supported for : retention.ms",
        ),
        (TOPIC, "t", [("a", "1"), ("a", "2")], 42, "Error due to duplicate config keys"),
        (
            BROKER,
            "2",
            [("background.threads", None)],
            42,
            "Null value not supported for : background.threads",
        ),
        (
            BROKER,
            "2",
            [("nonsense", "7")],
            42,
            "Unexpected broker id, expected 1, but received 2",
        ),
        (TOPIC, "t", [("nope", "1")], 40, "Unknown topic config name: nope"),
        (TOPIC, "nope", [("retention.ms", "1")], 3, "The topic 'nope' does not exist."),
        (
            BROKER,
            "",
            [],
            40,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        ),
        (LOGGER, "1", [("root", "INFO")], 42, "Unknown resource type 8"),
        (3, "x", [], 42, "Unknown resource type 3"),
        (GROUP, "g", [("consumer.session.timeout.ms", "51000")], 0, None),
        (GROUP, "g", [], 0, None),
    ],
)
def test_codes_and_messages_are_kafkas(
    cluster: Cluster,
    kind: int,
    name: str,
    configs: list[tuple[str, str | None]],
    code: int,
    message: str | None,
) -> None:
    assert replace(cluster, (kind, name, configs)) == [(code, message)]
    assert "segment.ms" in cluster.broker().core.controller.image.topic_configs["t"]


def test_validate_only_changes_nothing(cluster: Cluster) -> None:
    before = cluster.broker().core.controller.image
    assert replace(cluster, (TOPIC, "t", []), validate_only=True) == [(0, None)]
    assert cluster.broker().core.controller.image is before


def test_a_resource_twice_is_refused(cluster: Cluster) -> None:
    twice = (42, "Each resource must appear at most once.")
    assert replace(cluster, (TOPIC, "t", []), (TOPIC, "t", [])) == [twice, twice]
