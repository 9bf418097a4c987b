"""Clusters of three brokers in simulated time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.cluster.handles.broker_node import BrokerNode
from embedlog.testing import SimRuntime, sim_runtime

PATIENCE_MS = 60_000
RACKS = ("a", "b", "c")


@pytest.fixture
def runtime() -> SimRuntime:
    return sim_runtime(seed=19)


@pytest.fixture
def cluster(runtime: SimRuntime) -> Iterator[Cluster]:
    with Cluster("data", brokers=3, racks=RACKS, runtime=runtime, is_embedded=True) as made:
        yield made


def until(cluster: Cluster, holds: Callable[[], bool], patience_ms: int = PATIENCE_MS) -> None:
    """Run the cluster in simulated time until `holds` is true."""
    scheduler = cluster.runtime.scheduler
    assert isinstance(cluster.runtime, SimRuntime)
    for _ in range(patience_ms // 10):
        if holds():
            return
        scheduler.run_for(10)  # type: ignore[attr-defined]
    raise AssertionError("the condition never became true")


def leader_of(cluster: Cluster, topic: str, index: int = 0) -> BrokerNode:
    """Return the broker that leads a partition."""
    return cluster.broker(cluster.partition(topic, index).leader)
