"""DescribeConfigs, as a Kafka 4.4 broker answers it; sources and synonyms are in tests/config."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.cluster.cluster import Cluster
from tests.apis.ask import ask, opened, versions
from wire.schemas.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
INVALID = (
    "This most likely occurs because of a request being malformed by the client library or the"
    " message was sent to an incompatible broker. See the broker logs for more details."
)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        cluster.create_topic("t", config={"retention.ms": 1000})
        yield cluster


def describe(
    cluster: Cluster,
    *resources: tuple[int, str, list[str] | None],
    version: int = 4,
    **options: bool,
) -> list[DescribeConfigsResult]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name, keys in resources
        ],
        **options,
    )
    results: list[DescribeConfigsResult] = ask(cluster, request, version).results
    return results


def configs(
    cluster: Cluster, kind: int, name: str, keys: list[str] | None = None, **options: bool
) -> dict[str, DescribeConfigsResourceResult]:
    (result,) = describe(cluster, (kind, name, keys), **options)
    assert (result.error_code, result.error_message) == (0, "")
    assert (result.resource_type, result.resource_name) == (kind, name)
    return {config.name: config for config in result.configs}


@pytest.mark.parametrize("version", versions(DescribeConfigsRequest))
def test_where_a_value_comes_from(cluster: Cluster, version: int) -> None:
    keys = ["retention.ms", "segment.ms", "nope"]
    (result,) = describe(cluster, (TOPIC, "t", keys), version=version)
    own, default = result.configs
    assert (own.name, own.value, default.name, default.value) == (
        "retention.ms",
        "1000",
        "segment.ms",
        "604800000",
    )
    assert (own.is_default, default.is_default) == (False, version == 0)
    assert (own.config_source, default.config_source) == ((1, 5) if version else (-1, -1))
    assert own.config_type == (5 if version >= 3 else 0)
    assert own.synonyms == []


def test_all_settings_of_every_kind_of_resource(cluster: Cluster) -> None:
    assert len(configs(cluster, TOPIC, "t")) == 37
    assert len(configs(cluster, TOPIC, "t", [])) == 37
    assert len(configs(cluster, BROKER, "1")) == 350
    assert len(configs(cluster, GROUP, "any group")) == 21
    assert len(configs(cluster, METRICS, "any subscription")) == 3
    assert set(configs(cluster, BROKER, "")) == {"min.insync.replicas"}
    assert set(configs(cluster, LOGGER, "1")) == {"root"}
    assert configs(cluster, LOGGER, "1")["root"].config_source == 6


def test_synonyms_and_documentation_come_when_asked_for(cluster: Cluster) -> None:
    plain = configs(cluster, TOPIC, "t", ["min.insync.replicas"])["min.insync.replicas"]
    assert (plain.synonyms, plain.documentation) == ([], None)
    told = configs(
        cluster,
        TOPIC,
        "t",
        ["min.insync.replicas"],
        include_synonyms=True,
        include_documentation=True,
    )["min.insync.replicas"]
    assert [(s.name, s.value, s.source) for s in told.synonyms] == [
        ("min.insync.replicas", "1", 3),
        ("min.insync.replicas", "1", 5),
    ]
    assert told.documentation is not None
    assert told.documentation.startswith("Replicas that must be in sync")


def test_settings_fixed_while_running_are_read_only(cluster: Cluster) -> None:
    found = configs(cluster, BROKER, "1", ["num.partitions", "message.max.bytes", "node.id"])
    assert found["num.partitions"].read_only
    assert not found["message.max.bytes"].read_only
    assert (found["node.id"].value, found["node.id"].config_source) == ("1", 4)


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "nope", 3, ""),
        (TOPIC, "__cluster_metadata", 3, ""),
        (
            TOPIC,
            "a b",
            17,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII"
            " alphanumerics, '.', '_' and '-'",
        ),
        (TOPIC, "", 17, "Topic name is invalid: the empty string is not allowed"),
        (BROKER, "2", 42, "Unexpected broker id, expected 1 or empty string, but received 2"),
        (BROKER, "x", 42, "Broker id must be an integer, but it is: x"),
        (LOGGER, "2", 42, "Unexpected broker id, expected 1 but received 2"),
        (LOGGER, "x", 42, "Broker id must be an integer, but it is: x"),
        (LOGGER, "", 42, "Broker id must not be empty"),
        (GROUP, "", 42, "Group name must not be empty"),
        (METRICS, "", 42, "Client metrics subscription name must not be empty"),
        (3, "x", 42, INVALID),
        (0, "", 42, INVALID),
    ],
)
def test_refusals_have_kafkas_words(
    cluster: Cluster, kind: int, name: str, code: int, message: str
) -> None:
    (result,) = describe(cluster, (kind, name, None))
    assert (result.error_code, result.error_message, result.configs) == (code, message, [])
    assert (result.resource_type, result.resource_name) == (kind, name)


def test_one_unknown_type_spoils_the_request(cluster: Cluster) -> None:
    results = describe(cluster, (3, "x", None), (TOPIC, "t", None))
    assert [result.error_code for result in results] == [42, 42]


def test_the_same_question_is_answered_ten_times_at_most(cluster: Cluster) -> None:
    results = describe(cluster, *[(BROKER, "1", None)] * 50, (TOPIC, "t", None))
    assert [result.resource_name for result in results] == ["1"] * 10 + ["t"]


def test_a_resource_may_be_asked_for_twice(cluster: Cluster) -> None:
    results = describe(cluster, (TOPIC, "t", ["retention.ms"]), (TOPIC, "t", ["segment.ms"]))
    assert [result.configs[0].name for result in results] == ["retention.ms", "segment.ms"]
