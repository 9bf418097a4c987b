"""`ClusterOwner`: the side of `Kafka` that the parts of the test kit use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from embedlog.cluster.cluster import Cluster
from embedlog.testing.interception import Stages
from embedlog.testing.shape import Shape


class ClusterOwner(Protocol):
    """The owner of the cluster that a test uses at present. `Kafka` is one."""

    @property
    def cluster(self) -> Cluster:
        """The present cluster."""

    @property
    def shape(self) -> Shape:
        """The shape of the cluster."""

    @property
    def stages(self) -> Stages:
        """The parts of the test kit between requests and brokers."""

    def replace_cluster(self, opened: Callable[[], Cluster]) -> None:
        """Continue with another cluster at the same addresses."""
