"""Share groups: the answers of other brokers, offsets from every broker, and a coordinator that
moves.
"""

from __future__ import annotations

from tests.golden.batches import simple
from tests.golden.group_requests import delete_groups, list_groups
from tests.golden.requests import produce
from tests.golden.share_group_requests import (
    BEAT,
    DESCRIBE,
    Sharers,
    alter,
    beat,
    describe_share,
    forget,
    show_offsets,
)
from tests.golden.three_brokers.requests import PREFERRED, assigned, elect
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from tests.golden.three_brokers.scenarios.coordinators import (
    EXISTS,
    GROUPS,
    REPLICAS,
    await_coordinator,
    named,
    prepare,
)
from tests.support.kafka_cluster import BROKERS

STATE = "__share_group_state"


def _ready(cluster: ClusterRun) -> None:
    """Create the internal topics, with partition 0 led by broker 1 and so on. Without a step."""
    prepare(cluster)
    request = assigned(STATE, *REPLICAS, configs={"cleanup.policy": "delete"})
    (made,) = cluster[1].setup(request, 7).topics
    assert made.error_code in (0, EXISTS), made
    cluster.known(STATE)
    cluster[1].setup(elect(PREFERRED, *((STATE, index) for index in range(3))), 2)
    for index in range(3):
        cluster.see(STATE, partition=index, leader=index + 1, isr=REPLICAS[index], keep=False)


@scenario_on("share members")
def share_groups_at_the_wrong_broker(cluster: ClusterRun) -> None:
    _ready(cluster)
    topic = cluster.topic("t", [1, 2], [2, 3], [3, 1])
    group, empty = named(cluster, 1), named(cluster, 1, "e")
    members = Sharers(cluster[1], group)
    members.join("m", topic[0])
    members.until_assigned("m", 3)
    cluster[1].send(alter(empty, (topic[0], {0: 1, 1: 2, 2: 3})), 0, "offsets are set")
    for node in (2, 3):
        broker = cluster[node]
        for epoch in (0, 3, -1):
            broker.send(beat(group, "m", epoch, [topic[0]]), BEAT, f"epoch {epoch}")
        broker.send(beat(group, "", 3), BEAT, "no member id")
        broker.send(beat(group, "m", -2), BEAT, "epoch -2")
        broker.send(beat("", "m", 0, [topic[0]]), BEAT, "no group id")
        broker.send(describe_share(group), DESCRIBE, "described")
        broker.send(describe_share("", group, operations=True), DESCRIBE, "described with more")
        broker.send(alter(empty, (topic[0], {0: 1})), 0, "offsets are set")
        broker.send(alter(empty), 0, "no offsets are set")
        broker.send(forget(empty, topic[0]), 0, "offsets are deleted")
        broker.send(forget(empty), 0, "no offsets are deleted")
        broker.send(delete_groups(empty), 2, "deleted")
    for node in BROKERS:
        broker = cluster[node]
        broker.send(list_groups(types=["share"]), 5, "the groups")
        for version in (0, 1):
            for name in (group, empty):
                request = show_offsets(name, (topic[0], [0, 1, 2]))
                broker.send(request, version, f"named offsets of {name}")
                request = show_offsets(name, everything=True)
                broker.send(request, version, f"all offsets of {name}")
                broker.send(show_offsets(name), version, f"no offsets of {name}")


@scenario_on("share members")
def lags_at_several_leaders(cluster: ClusterRun) -> None:
    _ready(cluster)
    topic = cluster.topic("t", [1, 2], [2, 3], [3, 1])
    group = named(cluster, 2)
    for partition in range(3):
        data = simple(*[b"v"] * (partition + 1))
        request = produce(topic, 9, data, partition=partition)
        cluster[partition + 1].setup(request, 9)
    cluster[2].send(alter(group, (topic[0], {0: 0, 1: 1, 2: 5})), 0, "offsets are set")
    for node in BROKERS:
        request = show_offsets(group, (topic[0], [2, 0, 1]))
        cluster[node].send(request, 1, "each leader knows one end")
    cluster.stop(3)
    cluster.see(topic, partition=2, leader=1, keep=False)
    for node in (1, 2):
        request = show_offsets(group, (topic[0], [0, 1, 2]))
        cluster[node].send(request, 1, "a leader is gone")
    cluster.start(3)
    cluster.see(topic, partition=2, isr=[1, 3], keep=False)


@scenario_on("share members")
def a_share_group_moves(cluster: ClusterRun) -> None:
    """Its coordinator stops: the next one has its members, epochs and share partitions."""
    _ready(cluster)
    topic = cluster.topic("t", [2, 3])
    group = named(cluster, 1)
    members = Sharers(cluster[1], group)
    members.join("m", topic[0])
    members.until_assigned("m")
    members.join("n", topic[0])
    members.beat("m")
    members.show("before")
    cluster.stop(1)
    cluster.see(GROUPS, partition=0, leader=2, keep=False)
    await_coordinator(cluster, 2, group=group)
    members.run = cluster[2]
    members.show("after")
    members.beat("m", "lives")
    members.beat("n", "lives")
    members.beat("n", "joins again", epoch=0, topics=[topic[0]])
    cluster[3].send(beat(group, "m", members.epochs["m"]), BEAT, "elsewhere")
    members.leave("n")
    cluster.start(1)
    cluster.see(GROUPS, partition=0, isr=[1, 2, 3], keep=False)
    cluster[1].setup(elect(PREFERRED, (GROUPS, 0)), 2)
    cluster.see(GROUPS, partition=0, leader=1, keep=False)
    await_coordinator(cluster, 1, group=group)
    cluster[2].send(beat(group, "m", members.epochs["m"]), BEAT, "where it was meanwhile")
    members.run = cluster[1]
    members.beat("m", "where it is again")
    members.show("where it is again")
    members.leave("m")
    cluster[1].send(delete_groups(group), 2, "deleted")
