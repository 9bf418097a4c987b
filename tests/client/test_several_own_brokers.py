"""Our clients on a cluster of our own with three brokers, some of which die.

Each broker has one directory: nothing moves from one to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import embedlog
from tests.client import several_brokers as promises

pytestmark = pytest.mark.slow

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "broker.heartbeat.interval.ms": "250",
    "broker.session.timeout.ms": "1500",
    "leader.imbalance.check.interval.seconds": "3600",
    "controller.quorum.voters": "1@127.0.0.1:9093",
}


class OwnBrokers:
    """`promises.Brokers`: all in this process, and reached over TCP."""

    def __init__(self, cluster: embedlog.Cluster) -> None:
        self._cluster = cluster
        self.bootstrap = cluster.listen().address

    def kill(self, node_id: int) -> None:
        """End a broker at once."""
        self._cluster.broker(node_id).kill()

    def restart(self, node_id: int) -> None:
        """Start a broker that was killed."""
        self._cluster.broker(node_id).start()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnBrokers]:
    folder: Path = tmp_path_factory.mktemp("brokers")
    racks = list(promises.RACKS.values())
    with embedlog.open(folder, brokers=3, racks=racks, config=SETTINGS) as cluster:
        yield OwnBrokers(cluster)


@pytest.mark.parametrize(
    "promise",
    [
        each
        for each in promises.PROMISES
        if each is not promises.test_replicas_are_moved_between_directories
    ],
    ids=lambda promise: promise.__name__.removeprefix("test_"),
)
def test_the_promise_is_kept(promise: Any, brokers: OwnBrokers) -> None:
    promise(brokers)
