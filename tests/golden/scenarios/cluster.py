"""ApiVersions, DescribeCluster, FindCoordinator."""

from __future__ import annotations

from tests.golden.requests import make_offsets_topic
from tests.golden.run import Run, scenario
from wire.schemas.api_versions import ApiVersionsRequest
from wire.schemas.describe_cluster import DescribeClusterRequest
from wire.schemas.find_coordinator import FindCoordinatorRequest


@scenario
def api_versions(run: Run) -> None:
    for version in range(3):
        run.send(ApiVersionsRequest(), version, "plain")
    for version in range(3, 6):
        for name, software in (("a", "1"), ("", ""), ("a b", "1"), ("-a", "1"), ("a", "1_0"),
                               ("a-b.c", "1.2-3"), ("a-", "1"), ("ä", "1"),
                               ("x" * 300, "1")):  # fmt: skip
            request = ApiVersionsRequest(
                client_software_name=name, client_software_version=software
            )
            run.send(request, version, f"client {name[:8]!r} {software!r}")
    own = run.setup(DescribeClusterRequest(), 0).cluster_id
    ids = [("", 1), ("another", 1), ("another", -1), (None, 1), (own, 1), (own, 2), (own, -1)]
    for cluster, node in ids:
        name = "its own" if cluster == own else repr(cluster)
        request = ApiVersionsRequest(
            client_software_name="a", client_software_version="1", cluster_id=cluster, node_id=node
        )
        run.send(request, 5, f"cluster {name}, node {node}")


@scenario
def describe_cluster(run: Run) -> None:
    for version in range(3):
        run.send(DescribeClusterRequest(), version, "plain")
        asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
        run.send(asked, version, "with authorised operations")
    for version in (1, 2):
        for kind in (1, 2, 0, 7):
            run.send(DescribeClusterRequest(endpoint_type=kind), version, f"endpoint type {kind}")
    run.send(DescribeClusterRequest(include_fenced_brokers=True), 2, "with fenced brokers")


@scenario
def find_coordinator(run: Run) -> None:
    make_offsets_topic(run)
    for version in range(4):
        run.send(FindCoordinatorRequest(key="group"), version, "a group")
        run.send(FindCoordinatorRequest(key=""), version, "the empty group")
    for version in range(1, 4):
        run.send(FindCoordinatorRequest(key="x", key_type=2), version, "key type 2")
        run.send(FindCoordinatorRequest(key="x", key_type=9), version, "key type 9")
    for version in range(4, 7):
        several = FindCoordinatorRequest(coordinator_keys=["a", "b", ""])
        run.send(several, version, "three groups")
        run.send(FindCoordinatorRequest(coordinator_keys=[]), version, "no keys")
        twice = FindCoordinatorRequest(coordinator_keys=["a", "a"])
        run.send(twice, version, "the same twice")
        unknown = FindCoordinatorRequest(coordinator_keys=["a"], key_type=9)
        run.send(unknown, version, "key type 9")
        share = FindCoordinatorRequest(coordinator_keys=["not a share key"], key_type=2)
        run.send(share, version, "a share key that is none")
