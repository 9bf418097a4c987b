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
        promises.test_brokers_describe_themselves,
        promises.test_the_quorum_describes_itself,
        promises.test_partitions_are_moved_between_brokers,
        promises.test_a_move_under_way_is_listed_and_cancelled,
        promises.test_leaders_are_elected,
        promises.test_a_broker_that_is_taken_for_another_says_so,
        promises.test_the_clients_for_asyncio_do_the_same,
        promises.test_clients_follow_a_leader_without_asking_for_metadata,
        promises.test_a_reader_is_sent_to_the_follower_in_its_rack,
        promises.test_partitions_go_to_members_in_their_rack,
        promises.test_a_broker_dies_and_comes_back,
        promises.test_readers_learn_that_a_log_was_cut,
    ],
    ids=lambda promise: promise.__name__.removeprefix("test_"),
)
def test_the_promise_is_kept(promise: Any, brokers: OwnBrokers) -> None:
    promise(brokers)
