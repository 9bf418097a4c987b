"""AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

from collections.abc import Sequence

from tests.golden.batches import simple
from tests.golden.requests import fetch, produce
from tests.golden.three_brokers.requests import (
    PREFERRED,
    elect,
    grown,
    metadata,
    reassigned,
    reassignments,
)
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from tests.golden.three_brokers.scenarios.follower_reads import fill


@scenario_on("calm")
def reassignments_that_are_wrong(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 2], [2, 3])
    unknown = cluster.topic_name("unknown")
    wrong: dict[str, Sequence[int]] = {
        "no replicas": [],
        "a broker twice": [1, 1],
        "an unknown broker": [1, 9],
        "a negative broker": [1, -1],
        "the most that there are and another": [1, 2, 3, 4],
    }
    for version in range(2):
        for note, replicas in wrong.items():
            cluster[version + 1].send(reassigned((topic, 0, replicas)), version, note)
        broker = cluster[3]
        broker.send(reassigned((topic, 0, None)), version, "nothing to cancel")
        broker.send(reassigned((topic, 7, [1, 2])), version, "no partition 7")
        broker.send(reassigned((topic, 7, None)), version, "nothing to cancel of no partition")
        broker.send(reassigned((unknown, 0, [1, 2])), version, "an unknown topic")
        broker.send(reassigned((unknown, 0, None)), version, "nothing to cancel of no topic")
        broker.send(reassigned(), version, "no topics")
        twice = reassigned((topic, 0, [1, 2]), (topic, 0, [1, 2]))
        broker.send(twice, version, "a partition twice")
        broker.send(reassigned((topic, 0, [1, 2])), version, "as it is")
        mixed = reassigned((topic, 0, [9]), (topic, 1, [2, 3]), (topic, 5, [1]))
        broker.send(mixed, version, "wrong ones beside one that is right")
    for replicas in ([1], [1, 2, 3], [3, 2, 1]):
        fixed = reassigned((topic, 0, replicas), allow_replication_factor_change=False)
        cluster[1].send(fixed, 1, f"{len(replicas)} replicas, where there must be two")
    cluster[1].send(reassignments(all=True), 0, "all")
    cluster[1].send(reassignments((topic, 0), (topic, 9)), 0, "of this topic")
    cluster[2].send(reassignments((unknown, 0)), 0, "of an unknown topic")
    cluster[2].send(reassignments(), 0, "of no topics")
    cluster.see(topic, "nothing changed", leader=1, replicas=[1, 2])


@scenario_on("calm")
def reassignments_that_complete(cluster: ClusterRun) -> None:
    topics = cluster.topics([1, 2], [1], [1, 2, 3], [2, 3], [3])
    moved, _, fewer, swapped, _ = topics
    fill(cluster, moved, 1, b"a", b"b")
    targets = ([2, 3], [2], [3, 1], [3, 2], [3, 1, 2])
    leaders = (2, 2, 1, 2, 3)
    for index, (topic, replicas) in enumerate(zip(topics, targets, strict=True)):
        request = reassigned((topic, 0, replicas))
        cluster[index % 3 + 1].send(request, index % 2, f"to {replicas}")
        cluster.see(topic, "it moved", replicas=replicas, isr=replicas, leader=leaders[index])
    cluster[1].send(reassignments(all=True), 0, "nothing is left")
    cluster[3].send(elect(PREFERRED, (fewer, 0), (swapped, 0)), 2, "the first ones shall lead")
    for topic in (fewer, swapped):
        cluster.see(topic, "they lead", leader=3)
    cluster[2].send(fetch(moved, 12), 12, "what was there has moved, too")
    cluster[1].send(fetch(moved, 12), 12, "from the broker it left")
    cluster[1].send(produce(moved, 12, simple(b"x")), 12, "to the broker it left")
    cluster[2].send(produce(moved, 12, simple(b"c")), 12, "to its new leader")
    cluster[2].send(fetch(moved, 12, 2), 12, "with its epoch")


@scenario_on("failing")
def reassignments_that_wait(cluster: ClusterRun) -> None:
    """A stopped broker cannot join: its reassignments wait until it is back."""
    topics = cluster.topics([1, 2], [1], [2, 1], [1, 2], [1, 3], [2, 1, 3])
    moved, alone, back, more, away, fewer = topics
    fill(cluster, moved, 1, b"a")
    cluster.stop(3)
    cluster[1].send(reassigned((moved, 0, [2, 3]), (alone, 0, [3])), 0, "to one that is gone")
    cluster[2].send(reassigned((back, 0, [3, 1]), (more, 0, [1, 2, 3])), 1, "more of them")
    for topic, replicas in ((moved, [2, 3, 1]), (alone, [3, 1]), (back, [3, 1, 2])):
        cluster.see(topic, "it does not end", replicas=replicas)
    cluster[1].send(reassignments(all=True), 0, "all")
    cluster[2].send(reassignments((moved, 0), (away, 0), (moved, 9)), 0, "some")
    for version in (1, 5, 7, 12):
        cluster[1].send(metadata(version, *topics), version, "meanwhile")
    cluster[1].send(grown(moved[0], 2, [1, 2]), 3, "one more partition meanwhile")
    cluster[1].send(grown(moved[0], 2, [1, 2, 3]), 3, "one with three replicas meanwhile")
    cluster[1].send(elect(PREFERRED, (back, 0)), 2, "an election meanwhile")
    cluster[1].send(reassigned((moved, 0, [1, 3])), 1, "another target")
    cluster.see(moved, "another target", replicas=[1, 3, 2])
    cluster[1].send(reassignments((moved, 0)), 0, "with another target")
    both = reassigned((alone, 0, None), (moved, 0, None), (moved, 9, None))
    cluster[2].send(both, 1, "two to cancel, one not")
    cluster.see(moved, "cancelled", replicas=[1, 2])
    cluster.see(alone, "cancelled", replicas=[1])
    cluster[1].send(reassigned((moved, 0, None)), 1, "nothing to cancel any more")
    cluster[2].send(reassigned((away, 0, [1, 2])), 1, "away from the one that is gone")
    cluster.see(away, "away", replicas=[1, 2], isr=[1, 2])
    cluster[2].send(reassigned((fewer, 0, [1, 3])), 1, "without a live one")
    cluster[1].send(reassignments(all=True), 0, "what is left")
    cluster.start(3)
    for topic, replicas in ((back, [3, 1]), (more, [1, 2, 3]), (fewer, [1, 3])):
        cluster.see(topic, "it moved", replicas=replicas, isr=replicas)
    cluster[1].send(reassignments(all=True), 0, "nothing is left")
    cluster[3].send(metadata(12, *topics), 12, "what came of it")


@scenario_on("failing")
def reassignments_below_the_minimum(cluster: ClusterRun) -> None:
    """A waiting move with too few in-sync replicas, and one that removes the leader."""
    topic = cluster.topic("t", [1, 2], min_insync_replicas="2")
    fill(cluster, topic, 1, b"a")
    cluster.stop(2)
    cluster.see(topic, "one is in sync", isr=[1])
    cluster[1].send(reassigned((topic, 0, [3, 2])), 1, "away from its leader")
    cluster.see(topic, "the new one is enough", leader=3, replicas=[3, 2], isr=[3])
    cluster[3].send(produce(topic, 9, simple(b"b")), 9, "too few are in sync")
    cluster[1].send(produce(topic, 12, simple(b"b")), 12, "to the broker it left")
    cluster[1].send(reassignments(all=True), 0, "nothing is left")
    cluster.start(2)
    cluster.see(topic, "it has moved", replicas=[3, 2], isr=[3, 2])
    cluster[3].send(fetch(topic, 12), 12, "what was there, at its leader")
