"""Clusters of three brokers in simulated time, and one broker in frozen time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from embedlog.cluster.cluster import Cluster
from embedlog.cluster.handles.broker_node import BrokerNode
from embedlog.testing import SimRuntime, sim_runtime
from tests.cluster.still import FROZEN, Still

PATIENCE_MS = 60_000
RACKS = ("a", "b", "c")


@pytest.fixture
def runtime() -> SimRuntime:
    return sim_runtime(seed=19)


@pytest.fixture
def cluster(runtime: SimRuntime) -> Iterator[Cluster]:
    with Cluster("data", brokers=3, racks=RACKS, runtime=runtime, is_embedded=True) as made:
        yield made


@pytest.fixture(params=[pytest.param("freezegun", marks=pytest.mark.slow), "time-machine"])
def frozen(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Freeze the test's time."""
    with FROZEN[request.param]("2030-01-01") as frozen:
        yield frozen


@pytest.fixture
def still(frozen: Any) -> Iterator[Still]:
    world = Still(frozen)
    yield world
    world.cluster.close()


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
