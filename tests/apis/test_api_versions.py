"""ApiVersions lists exactly the served versions; features and checks are as in Kafka 4.4."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.broker import dispatch
from embedlog.cluster.cluster import Cluster
from embedlog.controller import features
from tests.apis.ask import ask, opened, versions
from wire.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        yield cluster


def identified(**more: object) -> ApiVersionsRequest:
    return ApiVersionsRequest(
        client_software_name="apache-kafka-java",
        client_software_version="4.4.0",
        **more,  # type: ignore[arg-type]
    )


def refused(response: ApiVersionsResponse) -> int:
    assert (response.api_keys, response.throttle_time_ms) == ([], 0)
    assert response.finalized_features_epoch == -1
    return response.error_code


@pytest.mark.parametrize("version", versions(ApiVersionsRequest))
def test_the_list_is_the_dispatch_table(cluster: Cluster, version: int) -> None:
    response = ask(cluster, identified(), version)
    assert response.error_code == 0
    listed = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
    assert listed == dispatch.VERSIONS
    # librdkafka before 2.6 drops every codec when Produce does not begin at 0.
    assert listed[0][0] == 0


@pytest.mark.parametrize("version", [3, 4, 5])
def test_features_are_those_of_kafka_4_4_that_are_served(cluster: Cluster, version: int) -> None:
    response = ask(cluster, identified(), version)
    supported = {f.name: (f.min_version, f.max_version) for f in response.supported_features}
    everything = {
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, 33),
        "transaction.version": (0, 2),
        "share.version": (0, 2),
        "streams.version": (0, 1),
        "eligible.leader.replicas.version": (0, 1),
    }
    from_zero = {name for name, (low, _) in everything.items() if low == 0}
    if version == 3:
        everything = {k: v for k, v in everything.items() if k not in from_zero}
    assert supported == everything
    finalized = {f.name: f.max_version_level for f in response.finalized_features}
    assert finalized == {
        "group.version": 1,
        "transaction.version": 2,
        "share.version": 2,
        "streams.version": 1,
        "eligible.leader.replicas.version": 1,
        "metadata.version": 33,
    }
    assert response.finalized_features_epoch == cluster.broker().core.controller.image.end_offset


def test_a_feature_of_an_older_log_that_is_not_served_is_not_listed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = cluster.broker().core
    with monkeypatch.context() as older:
        older.setitem(features.SUPPORTED, "other.version", (0, 1))
        core.controller.update_features([("other.version", 1, features.UPGRADE)])
    assert core.image.feature_level("other.version") == 1
    response = ask(cluster, identified(), 4)
    named = [*response.supported_features, *response.finalized_features]
    assert "other.version" not in {each.name for each in named}


@pytest.mark.parametrize(
    ("name", "version"),
    [("", "1"), ("x", ""), ("a b", "1"), ("x-", "1"), ("-x", "1"), ("x", ".1"), ("é", "1")],
)
def test_software_must_have_a_plain_name(cluster: Cluster, name: str, version: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert refused(ask(cluster, request, 3)) == 42
    assert ask(cluster, request, 2).error_code == 0


@pytest.mark.parametrize("name", ["x", "librdkafka", "a.b-c", "7"])
def test_ordinary_names_pass(cluster: Cluster, name: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="2.6.1-rc1")
    assert ask(cluster, request, 4).error_code == 0


def test_a_client_that_wants_another_broker_is_sent_back_to_its_bootstrap(
    cluster: Cluster,
) -> None:
    mine = cluster.cluster_id
    assert ask(cluster, identified(cluster_id=mine, node_id=1), 5).error_code == 0
    for cluster_id, node_id in ((mine, 2), ("other", 1)):
        request = identified(cluster_id=cluster_id, node_id=node_id)
        assert refused(ask(cluster, request, 5)) == 129
    for cluster_id, node_id in ((None, 1), (None, 5), (mine, -1), ("x", -1), ("", -1)):
        request = identified(cluster_id=cluster_id, node_id=node_id)
        assert refused(ask(cluster, request, 5)) == 42
