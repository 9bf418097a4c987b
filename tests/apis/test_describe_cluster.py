"""DescribeCluster, as a Kafka 4.4 broker answers it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.cluster.cluster import Cluster
from tests.apis.ask import PORT, ask, opened, versions
from wire.schemas.describe_cluster import DescribeClusterRequest


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with opened() as cluster:
        yield cluster


@pytest.mark.parametrize("version", versions(DescribeClusterRequest))
def test_the_cluster_has_an_id_a_controller_and_a_broker(cluster: Cluster, version: int) -> None:
    response = ask(cluster, DescribeClusterRequest(), version)
    assert (response.error_code, response.error_message) == (0, None)
    assert (response.cluster_id, response.controller_id) == (cluster.cluster_id, 1)
    (broker,) = response.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.rack, broker.is_fenced) == (
        1,
        "127.0.0.1",
        PORT,
        None,
        False,
    )
    assert response.cluster_authorized_operations == -(2**31)


def test_operations_are_in_the_answer_on_request(cluster: Cluster) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert ask(cluster, request, 0).cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "code", "message"),
    [
        (
            2,
            114,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type"
            " CONTROLLER",
        ),
        (0, 115, "Unsupported endpoint type 0"),
        (3, 115, "Unsupported endpoint type 3"),
    ],
)
def test_controllers_do_not_listen_here(
    cluster: Cluster, endpoint_type: int, code: int, message: str
) -> None:
    response = ask(cluster, DescribeClusterRequest(endpoint_type=endpoint_type), 1)
    assert (response.error_code, response.error_message) == (code, message)
    assert (response.cluster_id, response.controller_id, response.brokers) == ("", -1, [])
