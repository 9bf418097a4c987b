"""A queue in a cluster in memory, and a clock that tests move."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import embedlog


@pytest.fixture
def cluster() -> Iterator[embedlog.Cluster]:
    with embedlog.open() as opened:
        yield opened


@pytest.fixture
def queue(cluster: embedlog.Cluster) -> Iterator[embedlog.Queue]:
    with cluster.queue("jobs") as opened:
        yield opened
