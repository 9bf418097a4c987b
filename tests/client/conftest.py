"""One cluster, and three transports to it: objects, bytes without a socket, TCP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import embedlog
from embedlog.testing.loopback_transport import LoopbackTransport


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as opened:
        yield opened


@pytest.fixture(params=["in process", pytest.param("loopback", marks=pytest.mark.slow), "tcp"])
def connect(request: pytest.FixtureRequest, cluster: embedlog.Cluster) -> Callable[[], Any]:
    """Return a function that makes a new target for each client."""
    if request.param == "in process":
        return lambda: cluster
    if request.param == "loopback":
        return lambda: LoopbackTransport(cluster)
    listener = cluster.listen("127.0.0.1", 0)
    return lambda: listener.address
