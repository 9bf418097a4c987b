"""IncrementalAlterConfigs, as a Kafka 4.4 broker answers it; the rules are in tests/controller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from tests.apis.ask import ask, opened, versions
from wire.schema import declaration
from wire.schemas.alter_configs import AlterConfigsRequest
from wire.schemas.alter_configs import AlterConfigsResource as OlderResource
from wire.schemas.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
Change = tuple[int, str, str | None]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        cluster.create_topic("t")
        yield cluster


def alter(
    cluster: Cluster,
    *resources: tuple[int, str, list[Change]],
    version: int = 1,
    validate_only: bool = False,
) -> list[tuple[int, str | None, int, str]]:
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    AlterableConfig(config_operation=operation, name=key, value=value)
                    for operation, key, value in changes
                ],
            )
            for kind, name, changes in resources
        ],
        validate_only=validate_only,
    )
    responses = ask(cluster, request, version).responses
    return [(r.error_code, r.error_message, r.resource_type, r.resource_name) for r in responses]


@pytest.mark.parametrize("version", versions(IncrementalAlterConfigsRequest))
def test_a_setting_reaches_the_log(cluster: Cluster, version: int) -> None:
    changes: list[Change] = [(SET, "max.message.bytes", "77")]
    assert alter(cluster, (TOPIC, "t", changes), version=version) == [(0, None, TOPIC, "t")]
    log = cluster.broker().core.replica_manager.partition("t", 0).log
    assert log.config.max_message_bytes == 77
    alter(cluster, (TOPIC, "t", [(DELETE, "max.message.bytes", None)]), version=version)
    assert log.config.max_message_bytes == 1048588


def test_a_setting_of_the_broker_is_the_default_of_every_log(cluster: Cluster) -> None:
    alter(cluster, (BROKER, "", [(SET, "message.max.bytes", "88")]))
    log = cluster.broker().core.replica_manager.partition("t", 0).log
    assert log.config.max_message_bytes == 88
    cluster.create_topic("later")
    assert (
        cluster.broker().core.replica_manager.partition("later", 0).log.config.max_message_bytes
        == 88
    )


def test_validate_only_changes_nothing(cluster: Cluster) -> None:
    changes: list[Change] = [(SET, "retention.ms", "1")]
    assert alter(cluster, (TOPIC, "t", changes), validate_only=True) == [(0, None, TOPIC, "t")]
    assert cluster.broker().core.controller.image.topic_configs == {}


def test_each_resource_has_its_own_error(cluster: Cluster) -> None:
    assert alter(
        cluster,
        (1, "x", [(SET, "a", "b")]),
        (TOPIC, "nope", [(SET, "retention.ms", "1")]),
        (TOPIC, "t", [(SET, "retention.ms", "1")]),
    ) == [
        (42, "Unknown resource type 1", 1, "x"),
        (3, "The topic 'nope' does not exist.", TOPIC, "nope"),
        (0, None, TOPIC, "t"),
    ]


def test_a_resource_twice_is_refused(cluster: Cluster) -> None:
    twice = (42, "Each resource must appear at most once.", TOPIC, "t")
    assert alter(cluster, (TOPIC, "t", [(SET, "retention.ms", "1")]), (TOPIC, "t", [])) == [
        twice,
        twice,
    ]
    assert cluster.broker().core.controller.image.topic_configs == {}


def test_nothing_to_do_is_fine(cluster: Cluster) -> None:
    assert alter(cluster) == []
    assert alter(cluster, (TOPIC, "t", [])) == [(0, None, TOPIC, "t")]


@pytest.mark.parametrize(
    ("name", "change", "code", "message"),
    [
        ("1", (SET, "root", "DEBUG"), 0, None),
        ("1", (SET, "kafka.x", "DEBUG"), 40, "Logger kafka.x does not exist!"),
        ("1", (DELETE, "kafka.x", ""), 40, "Logger kafka.x does not exist!"),
        (
            "1",
            (DELETE, "root", None),
            42,
            "Removing the log level of the root logger is not allowed",
        ),
        (
            "1",
            (SET, "root", "debug"),
            40,
            "Cannot set the log level of root to debug as it is not a supported log level. Valid"
            " log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
        ),
        ("1", (SET, "root", None), 42, "Null value not supported for : root"),
        (
            "1",
            (APPEND, "root", "DEBUG"),
            42,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        (
            "1",
            (9, "root", "DEBUG"),
            42,
            "Unknown operation type 9 is not allowed for the BROKER_LOGGER resource",
        ),
        ("2", (SET, "root", "DEBUG"), 42, "Unexpected node id. Expected 1, but received 2"),
        ("", (SET, "root", "DEBUG"), 42, "Node id must be an integer, but it is: "),
    ],
)
def test_log_levels(
    cluster: Cluster, name: str, change: Change, code: int, message: str | None
) -> None:
    assert alter(cluster, (LOGGER, name, [change])) == [(code, message, LOGGER, name)]
    assert cluster.config.logger_levels == {"root": "DEBUG" if code == 0 else "INFO"}


@pytest.mark.parametrize("request_class", [AlterConfigsRequest, IncrementalAlterConfigsRequest])
def test_resources_are_not_compared_with_one_another(cluster: Cluster, request_class: Any) -> None:
    comparisons = []

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            comparisons.append(1)
            return str.__eq__(self, other)

    resource_class = {
        AlterConfigsRequest: OlderResource,
        IncrementalAlterConfigsRequest: AlterConfigsResource,
    }[request_class]
    resources = [resource_class(resource_type=99, resource_name=Name(n)) for n in range(500)]
    context = RequestContext(declaration(request_class).api, 1)
    answer = cluster.broker().core.handle(context, request_class(resources=resources))
    assert len(answer.responses) == 500
    assert len(comparisons) < 5_000
