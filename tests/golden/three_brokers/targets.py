"""A cluster to play on: the interface, and a real one."""

from __future__ import annotations

import time
from typing import Protocol

from tests.golden.targets import Address, Target
from tests.support.kafka_cluster import KafkaCluster


class ClusterTarget(Protocol):
    """Three brokers for requests, stops and starts."""

    def broker(self, node_id: int) -> Target:
        """Return one broker as a target."""

    def let_pass(self, delay_ms: int) -> None:
        """Let time pass."""

    def stop(self, node_id: int) -> None:
        """Shut a broker down in an orderly way."""

    def kill(self, node_id: int) -> None:
        """End a broker at once."""

    def start(self, node_id: int) -> None:
        """Start a broker that was stopped or killed."""

    def pause(self, node_id: int) -> None:
        """Suspend a broker."""

    def resume(self, node_id: int) -> None:
        """Resume a paused broker."""

    def take_away(self, node_id: int, directory: str) -> None:
        """Replace a directory of a stopped broker, so that the broker does not find it."""

    def give_back(self, node_id: int, directory: str) -> None:
        """Undo `take_away`."""


class RealCluster:
    """A cluster of Apache Kafka processes."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self._cluster = cluster
        self.stop = cluster.stop
        self.kill = cluster.kill
        self.start = cluster.start
        self.pause = cluster.pause
        self.resume = cluster.resume

    def take_away(self, node_id: int, directory: str) -> None:
        """Put a file in the place of the directory."""
        place = self._cluster.folder(node_id) / directory
        place.rename(place.with_suffix(".away"))
        place.write_text("no directory")

    def give_back(self, node_id: int, directory: str) -> None:
        """Put the directory back."""
        place = self._cluster.folder(node_id) / directory
        place.unlink()
        place.with_suffix(".away").rename(place)

    def broker(self, node_id: int) -> Target:
        """Return a target at the broker's address."""
        return Address(self._cluster.address(node_id))

    def let_pass(self, delay_ms: int) -> None:
        """Sleep."""
        time.sleep(delay_ms / 1000)
