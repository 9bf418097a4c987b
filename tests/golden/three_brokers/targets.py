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

    def take_away(self, node_id: int, directory: str) -> None:
        """Let a broker that does not run find no directory at the place of one that it had."""

    def give_back(self, node_id: int, directory: str) -> None:
        """End that."""


class RealCluster:
    """Processes of Apache Kafka."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        self.stop = cluster.stop
        self.kill = cluster.kill
        self.start = cluster.start
        self.pause = cluster.pause
        self.resume = cluster.resume

    def take_away(self, node_id: int, directory: str) -> None:
        """Put a file there."""
        place = self._cluster.folder(node_id) / directory
        place.rename(place.with_suffix(".away"))
        place.write_text("no directory")

    def give_back(self, node_id: int, directory: str) -> None:
        """Put it back."""
        place = self._cluster.folder(node_id) / directory
        place.unlink()
        place.with_suffix(".away").rename(place)

    def broker(self, node_id: int) -> Target:
        """Where it listens."""
        return Address(self._cluster.address(node_id))

    def let_pass(self, delay_ms: int) -> None:
        """Sleep."""
        time.sleep(delay_ms / 1000)
