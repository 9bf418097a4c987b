"""Our clients on a cluster of Apache Kafka with three nodes, some of which die."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.client import several_brokers as promises
from tests.support.kafka_cluster import KafkaCluster, kafka_cluster

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SETTINGS = {
    "log.dirs": "{folder}/data,{folder}/more",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.min.isr": "1",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "broker.heartbeat.interval.ms": "250",
    "broker.session.timeout.ms": "1500",
    "controller.quorum.election.timeout.ms": "400",
    "controller.quorum.fetch.timeout.ms": "1000",
    "leader.imbalance.check.interval.seconds": "3600",
}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with kafka_cluster(tmp_path_factory.mktemp("kafka"), settings=SETTINGS) as cluster:
        yield cluster


@pytest.mark.parametrize(
    "promise",
    promises.PROMISES,
    ids=lambda promise: promise.__name__.removeprefix("test_"),
)
def test_the_promise_is_kept(promise: Any, brokers: KafkaCluster) -> None:
    promise(brokers)
