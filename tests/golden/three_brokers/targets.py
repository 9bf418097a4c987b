"""A cluster to play on: what it is, and a real one."""

from __future__ import annotations

import time
from typing import Protocol

from tests.golden.targets import Address, Target
from tests.support.kafka_cluster import KafkaCluster


class ClusterTarget(Protocol):
    """Three brokers to ask, to stop and to start."""

    def broker(self, node_id: int) -> Target:
        """The way to one of them."""

    def let_pass(self, delay_ms: int) -> None:
        """Let time pass."""

    def stop(self, node_id: int) -> None:
        """Shut a broker down in an orderly way."""

    def kill(self, node_id: int) -> None:
        """End a broker at once."""

    def start(self, node_id: int) -> None:
        """Start a broker that was stopped or killed."""

    def pause(self, node_id: int) -> None:
        """Let nothing of a broker run."""

    def resume(self, node_id: int) -> None:
        """Let a paused broker go on."""


class RealCluster:
    """Processes of Apache Kafka."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        self.stop = cluster.stop
        self.kill = cluster.kill
        self.start = cluster.start
        self.pause = cluster.pause
        self.resume = cluster.resume

    def broker(self, node_id: int) -> Target:
        """Where it listens."""
        return Address(self._cluster.address(node_id))

    def let_pass(self, delay_ms: int) -> None:
        """Sleep."""
        time.sleep(delay_ms / 1000)
