"""Streams groups: the answers of other brokers, and a coordinator that moves."""

from __future__ import annotations

from tests.golden.group_requests import commit, delete_groups, fetch_offsets, list_groups
from tests.golden.streams_group_requests import (
    BEAT,
    DESCRIBE,
    Streamers,
    beat,
    describe_streams,
    first_beat,
    internal,
    part,
    topology,
)
from tests.golden.three_brokers.requests import PREFERRED, elect
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from tests.golden.three_brokers.scenarios.coordinators import (
    GROUPS,
    await_coordinator,
    named,
    prepare,
)
from tests.support.kafka_cluster import BROKERS


@scenario_on("streams members")
def streams_groups_at_the_wrong_broker(cluster: ClusterRun) -> None:
    prepare(cluster)
    topic = cluster.topic("t", [1, 2], [2, 3])
    group = named(cluster, 1)
    given = topology(part("0", topic[0]))
    members = Streamers(cluster[1], group, given)
    members.join("m")
    for node in (2, 3):
        broker = cluster[node]
        for version in (0, 1):
            broker.send(first_beat(group, "n", given), version, "joins")
            for epoch in (2, -1):
                broker.send(beat(group, "m", epoch), version, f"epoch {epoch}")
            broker.send(beat(group, "", 2), version, "no member id")
            broker.send(beat(group, "m", -2), version, "epoch -2")
            broker.send(first_beat("", "m", given), version, "no group id")
            broker.send(describe_streams(group), version, "described")
            asked = describe_streams("", group, operations=True)
            broker.send(asked, version, "described with more")
        illegal = topology(part("0", "a b"))
        broker.send(first_beat(group, "m", illegal), BEAT, "an illegal topology")
        broker.send(delete_groups(group), 2, "deleted")
        request = commit(group, topic, (0, 1), version=9, member="m", generation=2)
        broker.send(request, 9, "a commit")
    for node in BROKERS:
        cluster[node].send(list_groups(types=["streams"]), 5, "the groups")


@scenario_on("streams members")
def internal_topics_of_three_brokers(cluster: ClusterRun) -> None:
    prepare(cluster)
    topic = cluster.topic("t", [1, 2], [2, 3], [3, 1])
    changelog = f"{topic[0]}-changelog"
    group = named(cluster, 2)
    given = topology(part("0", topic[0], changelogs=[internal(changelog, replicas=3)]))
    members = Streamers(cluster[2], group, given)
    members.join("a")
    members.until_ready("a")
    members.own("a")
    members.show("ready")
    other = Streamers(cluster[1], named(cluster, 1), given)
    other.join("m", "a group of another broker with the same topics")


@scenario_on("streams members")
def a_streams_group_moves(cluster: ClusterRun) -> None:
    """Its coordinator stops: the next one has its members, epochs, tasks and topology."""
    prepare(cluster)
    topic = cluster.topic("t", [2, 3], [3, 2])
    group = named(cluster, 1)
    members = Streamers(cluster[1], group, topology(part("0", topic[0]), epoch=3))
    members.join("m", rack_id="r", tags={"a": "b"}, offsets=[("0", 0, 5)])
    members.own("m", "reports offsets", offsets=[("0", 0, 5)])
    members.join("n", instance_id="i")
    members.own("m", "has to give up a task")
    members.own("m", "has given it up")
    members.own("n", "gets it", instance_id="i")
    request = commit(group, topic, (0, 7), version=9, member="m", generation=3)
    cluster[1].send(request, 9, "a commit")
    members.show("before")
    cluster.stop(1)
    cluster.see(GROUPS, partition=0, leader=2, keep=False)
    await_coordinator(cluster, 2, group=group)
    members.run = cluster[2]
    members.show("after")
    members.own("m", "lives")
    members.own("n", "lives", instance_id="i")
    request = commit(group, topic, (0, 8), version=9, member="m", generation=2)
    cluster[2].send(request, 9, "a commit of an earlier epoch")
    members.join("m", "joins again", rack_id="r", tags={"a": "b"})
    members.join("o", "a new member")
    members.settle("m", "o")
    members.show("three members")
    cluster[3].send(beat(group, "m", members.epochs["m"]), BEAT, "elsewhere")
    cluster[3].send(describe_streams(group), DESCRIBE, "elsewhere")
    members.leave("n", "leaves for a while", epoch=-2, instance_id="i")
    cluster.start(1)
    cluster.see(GROUPS, partition=0, isr=[1, 2, 3], keep=False)
    cluster[1].setup(elect(PREFERRED, (GROUPS, 0)), 2)
    cluster.see(GROUPS, partition=0, leader=1, keep=False)
    await_coordinator(cluster, 1, group=group)
    cluster[2].send(beat(group, "m", members.epochs["m"]), BEAT, "where it was meanwhile")
    members.run = cluster[1]
    members.join("p", "the successor", instance_id="i", process_id="n")
    members.show("where it is again")
    cluster[1].send(fetch_offsets(group, (topic, [0, 1]), version=9), 9, "its offsets")
    for member in ("m", "o"):
        members.leave(member)
    members.leave("p", instance_id="i")
    cluster[1].send(delete_groups(group), 2, "deleted")
