"""Brokers from the view of the controller: the quorum, registrations, features."""

from __future__ import annotations

from typing import Any

from tests.golden.batches import simple
from tests.golden.requests import fetch, produce
from tests.golden.scenarios.features import SAFE, UNSAFE, UPGRADE, update
from tests.golden.three_brokers.requests import metadata, reassigned, unregistered
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from tests.golden.three_brokers.scenarios.follower_reads import fill
from wire.schemas.describe_cluster import DescribeClusterRequest
from wire.schemas.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)

SETTLE_MS = 300
METADATA = "__cluster_metadata"
FENCED_TOO = DescribeClusterRequest(include_fenced_brokers=True)


def quorum(*partitions: tuple[str, int]) -> DescribeQuorumRequest:
    """DescribeQuorum of (topic, partition)."""
    rows = [
        RequestTopicData(topic_name=name, partitions=[RequestPartitionData(partition_index=index)])
        for name, index in partitions
    ]
    return DescribeQuorumRequest(topics=rows)


def _facts(answer: DescribeQuorumResponse) -> dict[str, Any]:
    """Return the facts that do not depend on the leader and the length of the log."""
    ((partition,),) = [topic.partitions for topic in answer.topics]
    voters = partition.current_voters
    ids = [row.replica_id for row in voters]
    return {
        "errors": [answer.error_code, partition.error_code],
        "voters": sorted(ids),
        "observers": [row.replica_id for row in partition.observers],
        "a voter leads": partition.leader_id in ids,
        "it has an epoch": partition.leader_epoch > 0,
        "it has committed": partition.high_watermark > 0,
        "ends of logs": all(row.log_end_offset > 0 for row in voters),
        "times": {
            (row.last_fetch_timestamp > 0, row.last_caught_up_timestamp > 0) for row in voters
        }
        == {(True, True)},
        "directories": any(any(row.replica_directory_id) for row in voters),
        "nodes": {
            str(node.node_id): [each.name for each in node.listeners]
            for node in sorted(answer.nodes, key=lambda node: node.node_id)
        },
    }


@scenario_on("calm")
def the_quorum(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 2])
    for version in range(3):
        for node in (1, 2, 3):
            answer = cluster[node].setup(quorum((METADATA, 0)), version)
            cluster.keep(f"the metadata, at {node}, version {version}", _facts(answer))
        broker = cluster[version + 1]
        broker.send(quorum((METADATA, 1)), version, "no partition 1")
        broker.send(quorum((topic[0], 0)), version, "another topic")
        broker.send(quorum((METADATA, 0), (topic[0], 0)), version, "both")
        broker.send(quorum(), version, "no topics")
        nothing = DescribeQuorumRequest(topics=[RequestTopicData(topic_name=METADATA)])
        broker.send(nothing, version, "no partitions")


@scenario_on("failing")
def features_of_several_brokers(cluster: ClusterRun) -> None:
    """Eligible replicas are forgotten when the feature is switched off."""
    name = "eligible.leader.replicas.version"
    topic = cluster.topic("t", [1, 2], min_insync_replicas="2")
    fill(cluster, topic, 1, b"a")
    cluster.stop(2)
    cluster.see(topic, "one is eligible", isr=[1], elr=[2])
    cluster[3].send(update((name, 0), kind=UPGRADE), 2, "down, as if it were up")
    cluster[3].send(update((name, 0), kind=SAFE, validate_only=True), 2, "validated only")
    cluster[3].send(update((name, 0), kind=UNSAFE), 2, "off")
    cluster.let_pass(SETTLE_MS)
    cluster.see(topic, "it stays eligible until something else changes")
    cluster.start(2)
    cluster.see(topic, "two are in sync", isr=[1, 2])
    cluster.stop(1)
    cluster.see(topic, "without the leader", leader=2)
    cluster.stop(2)
    cluster.see(topic, "without both", leader=-1)
    cluster.start(1)
    cluster.see(topic, "the other is back")
    cluster.start(2)
    cluster.see(topic, "both are back", leader=2, isr=[1, 2])
    cluster[3].send(update((name, 1), kind=UPGRADE), 2, "on")
    cluster.stop(2)
    cluster.see(topic, "one is eligible again", isr=[1], elr=[2])
    cluster.start(2)
    cluster.see(topic, "both are back", isr=[1, 2])


@scenario_on("failing")
def a_broker_is_unregistered(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 3])
    alone = cluster.topic("alone", [3])
    for each, leader in ((topic, 1), (alone, 3)):
        fill(cluster, each, leader, b"a")
    for node in (9, -1, 0, 4):
        cluster[2].send(unregistered(node), 0, f"broker {node}")
    cluster.stop(3)
    cluster[2].send(FENCED_TOO, 2, "it is fenced")
    cluster[2].send(unregistered(3), 0, "one that is fenced")
    cluster.see(topic, "it is no broker any more", leader=1, isr=[1])
    cluster[1].send(FENCED_TOO, 2, "it is no broker any more")
    cluster[2].send(unregistered(3), 0, "again")
    cluster[1].send(metadata(12, topic, alone), 12, "it is no broker any more")
    cluster[1].send(reassigned((topic, 0, [2, 3])), 1, "a partition to it")
    cluster[1].send(produce(topic, 9, simple(b"b")), 9, "without it")
    cluster.start(3)
    cluster.see(topic, "it is back", isr=[1, 3])
    cluster.see(alone, "it is back", leader=3)
    cluster[1].send(FENCED_TOO, 2, "it is back")
    cluster[3].send(fetch(alone, 12), 12, "with what it had")


@scenario_on("failing")
def a_live_broker_is_unregistered(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 3])
    led = cluster.topic("led", [3, 2])
    for each, leader in ((topic, 1), (led, 3)):
        fill(cluster, each, leader, b"a")
    cluster[1].send(unregistered(3), 0, "one that is alive")
    for each, leader in ((topic, 1), (led, 2)):
        cluster.see(each, "without it", leader=leader)
    cluster[1].send(FENCED_TOO, 2, "at another")
    cluster[2].send(metadata(12, topic, led), 12, "at another")
    cluster[2].send(produce(led, 12, simple(b"b")), 12, "to the new leader")
    cluster.kill(3)
    cluster.start(3)
    for each in (topic, led):
        cluster.see(each, "it is back")
    cluster[1].send(FENCED_TOO, 2, "it is back")
