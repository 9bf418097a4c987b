"""The clusters for scenarios: Kafka and embedlog with the same settings."""

from __future__ import annotations

from typing import NamedTuple

from tests.support import kafka_cluster
from tests.support.kafka_cluster import BROKERS

RACKS = tuple(kafka_cluster.RACKS[node] for node in BROKERS)

_SETTINGS = {
    # The records of the scenarios are older than retention.ms.
    "log.initial.task.delay.ms": "3600000",
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    # Three partitions, each with another leader, are created with a manual assignment.
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    # Brokers compute an assignment inside the heartbeat that needs it, or some time later.
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
}
_FAILING = {
    **_SETTINGS,
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "unclean.leader.election.interval.ms": "1000",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
_SHARING = {
    **_FAILING,
    "share.coordinator.state.topic.num.partitions": "3",
    "group.share.assignment.interval.ms": "0",
    "group.share.assignor.offload.enable": "false",
}
_STREAMING = {
    **_FAILING,
    "group.streams.assignment.interval.ms": "0",
    "group.streams.assignor.offload.enable": "false",
    "group.streams.initial.rebalance.delay.ms": "0",
}


class Kind(NamedTuple):
    """Settings, and the controllers of the real cluster.

    `directories` are the names of a broker's log directories, if it has several.
    """

    settings: dict[str, str]
    controllers: tuple[int, ...]
    directories: tuple[str, ...] = ()

    @property
    def kafka_settings(self) -> dict[str, str]:
        """The settings of a real broker; "{folder}" stands for its folder."""
        places = [f"{{folder}}/{name}" for name in self.directories]
        return self.settings | ({"log.dirs": ",".join(places)} if places else {})


DIRECTORIES = ("first", "second")
APART = (100,)
"""A dedicated controller: it survives when all brokers are down."""

KINDS: dict[str, Kind] = {
    "calm": Kind(_SETTINGS, BROKERS),
    "failing": Kind(_FAILING, APART),
    "lagging": Kind(
        {**_SETTINGS, "broker.session.timeout.ms": "60000", "replica.lag.time.max.ms": "2000"},
        APART,
    ),
    "share members": Kind(_SHARING, APART),
    "streams members": Kind(_STREAMING, APART),
    "directories": Kind(_FAILING, APART, DIRECTORIES),
}
