"""Requests that wait while a leader changes, and the gaps in a new leader's knowledge."""

from __future__ import annotations

from tests.golden.batches import simple
from tests.golden.members import Member
from tests.golden.requests import Topic, fetch, list_offsets, produce
from tests.golden.three_brokers.requests import (
    PREFERRED,
    as_replica,
    elect,
    end_of_epoch,
    reassigned,
)
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from tests.golden.three_brokers.scenarios.coordinators import (
    GROUPS,
    await_coordinator,
    named,
    prepare,
)
from tests.golden.three_brokers.scenarios.follower_reads import fill

VERSIONS = (4, 11, 12, 16, 18)


@scenario_on("failing")
def offsets_after_an_election(cluster: ClusterRun) -> None:
    """The high watermark is below the new epoch until enough replicas are in sync."""
    topic = cluster.topic("t", [1, 2], min_insync_replicas="2")
    name = topic[0]
    fill(cluster, topic, 1, b"a")
    cluster.stop(2)
    cluster.see(topic, "one is in sync", isr=[1])
    cluster[1].setup(produce(topic, 9, simple(b"b", b"c"), acks=1), 9)
    cluster.stop(1)
    cluster.see(topic, "nobody leads", leader=-1)
    cluster.start(1)
    cluster.see(topic, "it leads again", leader=1, isr=[1])
    for version in range(1, 12):
        cluster[1].send(list_offsets(name, -1), version, "latest")
        cluster[1].send(list_offsets(name, -2), version, "earliest")
    for version in (4, 5, 8, 11):
        for replica in (-2, 2):
            request = list_offsets(name, -1, replica_id=replica)
            cluster[1].send(request, version, f"latest, as replica {replica}")
        request = list_offsets(name, -1, isolation_level=1)
        cluster[1].send(request, version, "latest of what is committed")
        cluster[1].send(list_offsets(name, 0), version, "by time")
        cluster[1].send(list_offsets(name, 2_000_000_000_000), version, "by a time to come")
        cluster[1].send(list_offsets(name, -1, epoch=0), version, "latest, an older epoch")
    cluster[1].send(list_offsets(name, -3), 8, "the largest timestamp")
    for version in (11, 12, 18):
        for offset in (0, 1, 2, 3, 4):
            cluster[1].send(fetch(topic, version, offset), version, f"offset {offset}")
        request = fetch(topic, version, 1, **as_replica(version, 2))
        cluster[1].send(request, version, "by a replica")
    for epoch in range(4):
        cluster[1].send(end_of_epoch(topic, epoch), 4, f"where epoch {epoch} ends")
    cluster[1].send(produce(topic, 9, simple(b"d")), 9, "too few are in sync")
    cluster.start(2)
    cluster.see(topic, "two are in sync", isr=[1, 2])
    cluster.reaches(1, topic, 3, "all is committed")
    cluster[1].send(list_offsets(name, -1), 8, "latest")


def _led_by_the_second(cluster: ClusterRun) -> Topic:
    """Create a topic led by 1, where 2 is preferred."""
    topic = cluster.topic("t", [2, 1, 3])
    fill(cluster, topic, 2, b"a")
    cluster.stop(2)
    cluster.see(topic, "its leader stops", leader=1)
    cluster.start(2)
    cluster.see(topic, "it is back", isr=[1, 2, 3])
    return topic


@scenario_on("failing")
def fetches_while_a_leader_moves(cluster: ClusterRun) -> None:
    topic = _led_by_the_second(cluster)
    for version in VERSIONS:
        waits = fetch(topic, version, 1, max_wait_ms=12_000, min_bytes=1)
        cluster[1].begin(waits, version, "at the end", on=f"fetch {version}")
    for version in VERSIONS[1:]:
        waits = fetch(topic, version, 1, max_wait_ms=12_000, min_bytes=1)
        cluster[2].begin(waits, version, "at the end of a follower", on=f"fetch {version}")
    cluster[3].send(elect(PREFERRED, (topic, 0)), 2, "another shall lead")
    cluster.see(topic, "it leads", leader=2)
    for version in VERSIONS:
        cluster[1].waits("asked of the former leader", on=f"fetch {version}")
    for version in VERSIONS[1:]:
        cluster[2].waits("asked of the new leader", on=f"fetch {version}")
    cluster[2].setup(produce(topic, 9, simple(b"b")), 9)
    for version in VERSIONS:
        cluster[1].finish(on=f"fetch {version}")
    for version in VERSIONS[1:]:
        cluster[2].finish(on=f"fetch {version}")


@scenario_on("lagging")
def produce_while_a_leader_moves(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 2, 3])
    fill(cluster, topic, 1, b"a")
    cluster[1].send(reassigned((topic, 0, [2, 1, 3])), 1, "another is preferred")
    cluster.see(topic, "it does not lead yet", leader=1, replicas=[2, 1, 3])
    cluster.pause(3)
    for version in (3, 9, 12):
        waits = produce(topic, version, simple(b"b"), timeout_ms=12_000)
        cluster[1].begin(waits, version, "it waits for a follower", on=f"produce {version}")
    cluster[1].send(elect(PREFERRED, (topic, 0)), 2, "another shall lead")
    for version in (3, 9, 12):
        cluster[1].finish(on=f"produce {version}")
    cluster.see(topic, "it leads", leader=2)
    cluster.resume(3)
    cluster.see(topic, "all are in sync", isr=[1, 2, 3])
    cluster.reaches(2, topic, 4, "nothing is lost")


@scenario_on("failing")
def a_join_while_its_coordinator_moves(cluster: ClusterRun) -> None:
    prepare(cluster)
    group = named(cluster, 1)
    cluster.stop(1)
    cluster.see(GROUPS, partition=0, leader=2, keep=False)
    cluster.start(1)
    cluster.see(GROUPS, partition=0, isr=[1, 2, 3], keep=False)
    first, second = (Member(cluster[2], group, name) for name in ("a", "b"))
    await_coordinator(cluster, 2, group=group)
    first.enter()
    second.get_id()
    second.begin_join("a second member, which waits for the first")
    cluster[1].send(elect(PREFERRED, (GROUPS, 0)), 2, "its coordinator moves")
    cluster.see(GROUPS, partition=0, leader=1, keep=False)
    second.finish_join()
    first.beat("the first, where it was")
