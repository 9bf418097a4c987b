"""FindCoordinator, as a Kafka 4.4 broker answers it once its internal topics exist."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.cluster.cluster import Cluster
from tests.apis.ask import PORT, ask, opened
from wire.schemas.find_coordinator import FindCoordinatorRequest

INVALID = (
    "This most likely occurs because of a request being malformed by the client library or the"
    " message was sent to an incompatible broker. See the broker logs for more details."
)
SHARE_KEY = "g:VcE2psOZRGCiXIO6eSkezg:0"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened(
        offsets_topic_num_partitions=2,
        transaction_state_log_num_partitions=2,
        share_coordinator_state_topic_num_partitions=2,
    ) as cluster:
        yield cluster


@pytest.mark.parametrize(("version", "message"), [(0, ""), (1, "NONE"), (2, "NONE"), (3, "NONE")])
def test_this_node_coordinates(cluster: Cluster, version: int, message: str) -> None:
    for key in ("g", ""):
        response = ask(cluster, FindCoordinatorRequest(key=key), version)
        assert (response.error_code, response.error_message) == (0, message)
        assert (response.node_id, response.host, response.port) == (1, "127.0.0.1", PORT)


@pytest.mark.parametrize("version", [4, 5, 6])
@pytest.mark.parametrize("key_type", [0, 1])
def test_many_keys_at_once(cluster: Cluster, version: int, key_type: int) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g", "", "g"])
    found = ask(cluster, request, version).coordinators
    assert [(c.key, c.node_id, c.host, c.port, c.error_code, c.error_message) for c in found] == [
        (key, 1, "127.0.0.1", PORT, 0, "") for key in ("g", "", "g")
    ]
    assert ask(cluster, FindCoordinatorRequest(), version).coordinators == []


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("key_type", [2, 3, -1])
def test_a_wrong_key_type_is_refused(cluster: Cluster, version: int, key_type: int) -> None:
    response = ask(cluster, FindCoordinatorRequest(key="g", key_type=key_type), version)
    assert (response.error_code, response.error_message) == (42, INVALID)
    assert (response.node_id, response.host, response.port) == (-1, "", -1)


@pytest.mark.parametrize(
    ("version", "key_type", "message"), [(4, 3, INVALID), (6, -1, INVALID), (4, 2, ""), (5, 2, "")]
)
def test_a_wrong_key_type_is_refused_for_each_key(
    cluster: Cluster, version: int, key_type: int, message: str
) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g", SHARE_KEY])
    for found in ask(cluster, request, version).coordinators:
        assert (found.error_code, found.error_message) == (42, message)
        assert (found.node_id, found.host, found.port) == (-1, "", -1)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (SHARE_KEY, 0),
        ("a:b:VcE2psOZRGCiXIO6eSkezg:0", 0),
        ("g:VcE2psOZRGCiXIO6eSkezg:-1", 0),
        ("", 42),
        ("g", 42),
        ("g:x:0", 42),
        ("g:VcE2psOZRGCiXIO6eSkezg:x", 42),
    ],
)
def test_share_keys_name_group_topic_and_partition(cluster: Cluster, key: str, code: int) -> None:
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
    (found,) = ask(cluster, request, 6).coordinators
    assert found.error_code == code


def test_the_coordinators_topic_is_made_with_its_settings(cluster: Cluster) -> None:
    ask(cluster, FindCoordinatorRequest(key="g"), 3)
    image = cluster.broker().core.controller.image
    topic = image.topics_by_name["__consumer_offsets"]
    assert (len(topic.partitions), topic.replication_factor) == (2, 1)
    assert image.topic_configs["__consumer_offsets"] == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "2097152",
    }
