"""The stored states of share partitions: the answers of other brokers, and failovers."""

from __future__ import annotations

from embedlog.coordinator.placement import partition_of
from tests.golden.requests import Topic
from tests.golden.share_state_requests import (
    ACKNOWLEDGED,
    STATE_TOPIC,
    delete,
    initialize,
    key_of,
    look_up,
    read,
    summary,
    write,
)
from tests.golden.three_brokers.requests import PREFERRED, assigned, elect
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from tests.support.kafka_cluster import BROKERS

REPLICAS = ([1, 2, 3], [2, 3, 1], [3, 1, 2])
EXISTS = 36
RETRIED = (14, 15, 16)


def prepare(cluster: ClusterRun) -> Topic:
    """Create the internal topic, with partition 0 led by broker 1 and so on; return a topic.

    Without a step. All coordinators have loaded their states.
    """
    configs = {"cleanup.policy": "delete", "retention.ms": "-1", "min.insync.replicas": "1"}
    (made,) = cluster[1].setup(assigned(STATE_TOPIC, *REPLICAS, configs=configs), 7).topics
    assert made.error_code in (0, EXISTS), made
    cluster.known(STATE_TOPIC)
    cluster[1].setup(elect(PREFERRED, *((STATE_TOPIC, index) for index in range(3))), 2)
    for index in range(3):
        cluster.see(STATE_TOPIC, partition=index, leader=index + 1, isr=REPLICAS[index], keep=False)
    topic = cluster.topic("t", [1, 2], [2, 3])
    for node in BROKERS:
        _await(cluster, node, _group(cluster, topic, node), topic)
    return topic


@scenario_on("failing")
def share_states_at_the_wrong_broker(cluster: ClusterRun) -> None:
    topic = prepare(cluster)
    for owner in BROKERS:
        group = _group(cluster, topic, owner)
        for node in BROKERS:
            broker = cluster[node]
            note = f"coordinated by broker {owner}"
            (found,) = broker.setup(look_up(key_of(group, topic)), 6).coordinators
            cluster.keep(f"broker {node} finds the coordinator", found.node_id)
            broker.send(initialize(group, topic, state_epoch=2, start=4), 0, note)
            broker.send(read(group, topic, leader_epoch=1), 0, note)
            request = write(
                group, topic, (5, 7, ACKNOWLEDGED, 1), state_epoch=2, leader_epoch=1, start=4
            )
            broker.send(request, 1, note)
            broker.send(summary(group, topic), 1, note)
            broker.send(initialize("", topic), 0, f"{note}, no group")
            broker.send(read("", topic), 0, f"{note}, no group")
        for node in BROKERS:
            cluster[node].send(delete(group, topic), 0, f"coordinated by broker {owner}")


@scenario_on("failing")
def a_share_coordinator_stops(cluster: ClusterRun) -> None:
    topic = prepare(cluster)
    groups = {node: _group(cluster, topic, node) for node in BROKERS}
    for node, group in groups.items():
        cluster[node].setup(initialize(group, topic, state_epoch=2, start=4), 0)
        cluster[node].setup(read(group, topic, leader_epoch=3), 0)
        request = write(
            group, topic, (5, 7, ACKNOWLEDGED, node), state_epoch=2, leader_epoch=3, start=5
        )
        cluster[node].setup(request, 1)
    for end in ("stop", "kill"):
        getattr(cluster, end)(1)
        cluster.see(STATE_TOPIC, partition=0, leader=2, keep=False)
        _await(cluster, 2, groups[1], topic)
        for node in (2, 3):
            for owner, group in groups.items():
                note = f"after {end}, of broker {owner}"
                cluster[node].send(summary(group, topic), 1, note)
                cluster[node].send(read(group, topic, leader_epoch=3), 0, note)
                cluster[node].send(read(group, topic, leader_epoch=2), 0, f"{note}, fenced")
                request = write(
                    group, topic, (8, 8, ACKNOWLEDGED, 1), state_epoch=2, leader_epoch=3
                )
                cluster[node].send(request, 1, note)
        cluster.start(1)
        cluster.see(STATE_TOPIC, partition=0, isr=[1, 2, 3], keep=False)
        cluster[1].send(read(groups[1], topic, leader_epoch=3), 0, f"after {end}, back")
        cluster[1].setup(elect(PREFERRED, (STATE_TOPIC, 0)), 2)
        cluster.see(STATE_TOPIC, partition=0, leader=1, keep=False)
        _await(cluster, 1, groups[1], topic)
        cluster[1].send(read(groups[1], topic, leader_epoch=3), 0, f"after {end}, leads again")


def _group(cluster: ClusterRun, topic: Topic, node: int) -> str:
    """Return a group whose state for partition 0 this broker coordinates after `prepare`."""
    names = (cluster.group(f"g{number}") for number in range(1000))
    return next(name for name in names if partition_of(key_of(name, topic), 3) == node - 1)


def _await(cluster: ClusterRun, node: int, group: str, topic: Topic) -> None:
    """Return when a broker has loaded the states of the group. Without a step."""
    cluster[node].until(
        lambda answer: answer.results[0].partitions[0].error_code not in RETRIED,
        summary(group, topic), 1, keep=False,
    )  # fmt: skip
