"""Brokers that stop, are killed, and come back: leaders, in-sync sets, remaining records."""

from __future__ import annotations

from collections.abc import Callable

from tests.golden.batches import simple
from tests.golden.requests import Topic, fetch, list_offsets, produce
from tests.golden.scenarios.configs import SET, TOPIC, incremental
from tests.golden.three_brokers.requests import (
    PREFERRED,
    UNCLEAN,
    described,
    elect,
    end_of_epoch,
    metadata,
)
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from tests.golden.three_brokers.scenarios.follower_reads import fill
from wire.schemas.describe_cluster import DescribeClusterRequest
from wire.schemas.metadata import MetadataRequest


def _ask_beside_it(cluster: ClusterRun, topics: list[Topic]) -> None:
    """Broker 2 is down: the description of the cluster by the others, and their answers."""
    followed, led, alone, minimum = topics
    for version in range(14):
        cluster[1].send(metadata(version, *topics), version, "beside it")
    cluster[3].send(MetadataRequest(topics=[]), 12, "the brokers")
    cluster[3].send(described(*(name for name, _ in topics)), 0, "beside it")
    for version in range(3):
        cluster[3].send(DescribeClusterRequest(), version, "beside it")
    for fenced in (False, True):
        request = DescribeClusterRequest(include_fenced_brokers=fenced)
        cluster[1].send(request, 2, f"with fenced brokers: {fenced}")
    for version in (3, 9, 10, 12):
        cluster[1].send(produce(followed, version, simple(b"x")), version, "its follower is gone")
        cluster[3].send(produce(led, version, simple(b"x")), version, "its leader is gone")
        cluster[1].send(produce(led, version, simple(b"x")), version, "to a follower")
        cluster[1].send(produce(alone, version, simple(b"x")), version, "nobody leads")
        cluster[1].send(produce(minimum, version, simple(b"x")), version, "too few in sync")
    cluster.reaches(1, led, 6, keep=False)
    for version in (4, 12, 13, 16):
        for epoch in (-1, 0, 1, 2):
            fields = {"current_leader_epoch": epoch}
            request = fetch(led, version, 1, partition_fields=fields)
            cluster[3].send(request, version, f"from its new leader, epoch {epoch}")
            cluster[1].send(request, version, f"from its follower, epoch {epoch}")
        cluster[1].send(fetch(alone, version), version, "nobody leads")
        cluster[3].send(fetch(alone, version), version, "nobody leads, elsewhere")
    for version in (1, 4, 8, 11):
        for epoch in (None, 0, 1, 2):
            request = list_offsets(led[0], -1, epoch=epoch if version >= 4 else None)
            cluster[3].send(request, version, f"from its new leader, epoch {epoch}")
        cluster[1].send(list_offsets(alone[0], -1), version, "nobody leads")
    for version in (2, 4):
        for current in (-1, 0, 1, 2):
            request = end_of_epoch(led, 0, current=current)
            cluster[3].send(request, version, f"from its new leader, leader epoch {current}")
        cluster[3].send(end_of_epoch(led, 1), version, "the end of the new epoch")
        cluster[3].send(end_of_epoch(led, 5), version, "the end of one to come")
        cluster[1].send(end_of_epoch(alone, 0), version, "nobody leads")


def _goes_and_comes_back(cluster: ClusterRun, end: Callable[[int], None]) -> None:
    followed = cluster.topic("followed", [1, 2, 3])
    led = cluster.topic("led", [2, 3, 1])
    alone = cluster.topic("alone", [2])
    minimum = cluster.topic("minimum", [1, 2], min_insync_replicas="2")
    topics = [followed, led, alone, minimum]
    for topic, leader in zip(topics, (1, 2, 2, 1), strict=True):
        fill(cluster, topic, leader, b"a", b"b")
    end(2)
    for topic, leader in zip(topics, (1, 3, -1, 1), strict=True):
        cluster.see(topic, "it is gone", leader=leader)
    _ask_beside_it(cluster, topics)
    cluster.start(2)
    for topic, isr in zip(topics, ([1, 2, 3], [1, 2, 3], [2], [1, 2]), strict=True):
        cluster.see(topic, "it is back", isr=isr)
    cluster.see(alone, "it leads again", leader=2)
    cluster.reaches(2, led, 6, "what it missed")
    cluster[2].send(fetch(led, 12, 3), 12, "from a follower")
    cluster[2].send(produce(led, 12, simple(b"y")), 12, "to a follower that led")
    cluster[2].send(fetch(alone, 12), 12, "it has what it had")
    cluster[2].send(produce(alone, 9, simple(b"c")), 9, "and takes more")
    cluster[2].send(fetch(alone, 12, 2), 12, "with its epoch")
    for epoch in range(4):
        cluster[2].send(end_of_epoch(alone, epoch), 4, f"where epoch {epoch} ends")
    cluster[1].send(produce(minimum, 9, simple(b"c")), 9, "enough are in sync")
    cluster[1].send(elect(PREFERRED, (led, 0)), 2, "it shall lead")
    cluster.see(led, "it leads", leader=2)
    cluster[2].send(produce(led, 12, simple(b"z")), 12, "to it")
    cluster[2].send(fetch(led, 12, 5), 12, "its epochs")
    cluster[3].send(metadata(12, *topics), 12, "at the end")


@scenario_on("failing")
def a_broker_stops_and_comes_back(cluster: ClusterRun) -> None:
    _goes_and_comes_back(cluster, cluster.stop)


@scenario_on("failing")
def a_broker_is_killed_and_comes_back(cluster: ClusterRun) -> None:
    _goes_and_comes_back(cluster, cluster.kill)


def _leave_one(cluster: ClusterRun, *topics: Topic) -> None:
    """Broker 2 stops, then 1, which alone has the latest records; then 2 comes back."""
    for topic in topics:
        fill(cluster, topic, 1, b"a", b"b")
    cluster.stop(2)
    for topic in topics:
        cluster.see(topic, "one is left", isr=[1])
        cluster[1].setup(produce(topic, 9, simple(b"c", b"d")), 9)
    cluster.stop(1)
    for topic in topics:
        cluster.see(topic, "none is left", leader=-1)


@scenario_on("failing")
def the_last_in_sync_is_gone(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 2])
    _leave_one(cluster, topic)
    cluster.start(2)
    cluster.see(topic, "the other is back", leader=-1)
    for version in (0, 5, 7, 12):
        cluster[2].send(metadata(version, topic), version, "nobody leads")
    for version in (9, 12):
        cluster[2].send(produce(topic, version, simple(b"x")), version, "nobody leads")
    for version in (4, 12, 16):
        cluster[2].send(fetch(topic, version), version, "nobody leads")
    cluster[2].send(list_offsets(topic[0], -1), 8, "nobody leads")
    cluster[2].send(end_of_epoch(topic, 0), 4, "nobody leads")
    for version in range(3):
        request = elect(PREFERRED, (topic, 0))
        cluster[3].send(request, version, "the preferred one is gone")
    cluster.start(1)
    cluster.see(topic, "the one in sync is back", leader=1, isr=[1, 2])
    cluster[1].send(fetch(topic, 12), 12, "all is there")
    cluster.reaches(2, topic, 4, "and has been copied")
    cluster[1].send(produce(topic, 9, simple(b"e")), 9, "more")
    for epoch in range(4):
        cluster[1].send(end_of_epoch(topic, epoch), 4, f"where epoch {epoch} ends")


@scenario_on("failing")
def an_unclean_election(cluster: ClusterRun) -> None:
    """Records that only the former leader had are lost; epochs show this to a reader."""
    topic = cluster.topic("t", [1, 2])
    _leave_one(cluster, topic)
    cluster.start(2)
    cluster.see(topic, "the other is back", leader=-1)
    cluster[3].send(elect(UNCLEAN, (topic, 0), (topic, 3)), 1, "of the other")
    cluster.see(topic, "it leads", leader=2)
    cluster[3].send(elect(UNCLEAN, (topic, 0)), 2, "again")
    cluster[2].send(fetch(topic, 12), 12, "what is left")
    cluster[2].send(produce(topic, 9, simple(b"e")), 9, "something else")
    for version in (12, 16):
        for last, offset in ((0, 4), (0, 3), (0, 2), (1, 4), (3, 3)):
            fields = {"last_fetched_epoch": last}
            request = fetch(topic, version, offset, partition_fields=fields)
            cluster[2].send(request, version, f"offset {offset}, last epoch {last}")
        cluster[2].send(fetch(topic, version, 4), version, "offset 4, no epoch")
        cluster[2].send(fetch(topic, version, 2), version, "offset 2, no epoch")
    for epoch in range(5):
        cluster[2].send(end_of_epoch(topic, epoch), 4, f"where epoch {epoch} ends")
    cluster.start(1)
    cluster.see(topic, "the former leader follows", leader=2, isr=[1, 2])
    cluster.reaches(1, topic, 3, "as its leader, it has")
    cluster[1].send(elect(PREFERRED, (topic, 0)), 2, "it shall lead")
    cluster.see(topic, "it leads", leader=1)
    for epoch in range(6):
        cluster[1].send(end_of_epoch(topic, epoch), 4, f"where epoch {epoch} ends")


@scenario_on("failing")
def unclean_by_setting(cluster: ClusterRun) -> None:
    """Unclean elections allowed from the start, allowed later, and never."""
    set_before = cluster.topic("before", [1, 2], unclean_leader_election_enable="true")
    set_later = cluster.topic("later", [1, 2])
    never = cluster.topic("never", [1, 2])
    _leave_one(cluster, set_before, set_later, never)
    cluster.start(2)
    cluster.see(set_before, "set before", leader=2)
    cluster.see(set_later, "not yet set", leader=-1)
    change = incremental(TOPIC, set_later[0], ("unclean.leader.election.enable", SET, "true"))
    cluster[3].send(change, 1, "it is set")
    cluster.see(set_later, "set later", leader=2)
    cluster.see(never, "never set", leader=-1)
    cluster[2].send(fetch(set_before, 12), 12, "what is left")
    cluster.start(1)
    for topic, leader in ((set_before, 2), (set_later, 2), (never, 1)):
        cluster.see(topic, "the former leader is back", leader=leader, isr=[1, 2])
    cluster.reaches(1, set_before, 2, "what is left there")
    cluster[1].send(fetch(never, 12), 12, "nothing is lost")


@scenario_on("failing")
def eligible_replicas(cluster: ClusterRun) -> None:
    """A broker that shuts down in an orderly way below the minimum stays eligible (KIP-966)."""
    two = cluster.topic("two", [1, 2, 3], min_insync_replicas="2")
    three = cluster.topic("three", [1, 2, 3], min_insync_replicas="3")
    beyond = cluster.topic("beyond", [1, 2], min_insync_replicas="3")
    topics = (two, three, beyond)
    for topic in topics:
        fill(cluster, topic, 1, b"a")
    for node in (3, 2):
        cluster.stop(node)
        for topic in topics:
            cluster.see(topic, f"without {node}", leader=1)
    for topic in topics:
        cluster[1].send(produce(topic, 9, simple(b"x")), 9, "too few are in sync")
        cluster[1].send(produce(topic, 9, simple(b"b"), acks=1), 9, "acks 1")
    change = incremental(TOPIC, two[0], ("min.insync.replicas", SET, "1"))
    cluster[1].send(change, 1, "one is enough")
    cluster.see(two, "one is enough", elr=[])
    cluster[1].send(fetch(two, 12), 12, "what was committed is not more at once")
    cluster[1].send(produce(two, 9, simple(b"c")), 9, "one more is enough")
    cluster[1].send(fetch(two, 12), 12, "so all is committed")
    cluster.start(2)
    cluster.see(two, "2 is back", isr=[1, 2])
    cluster.see(three, "2 is back", isr=[1, 2])
    cluster.see(beyond, "2 is back", isr=[1, 2], elr=[])
    cluster.stop(1)
    for topic in topics:
        cluster.see(topic, "without 1", leader=2)
    cluster.start(3)
    for topic, isr in ((two, [2, 3]), (three, [2, 3]), (beyond, [2])):
        cluster.see(topic, "3 is back", isr=isr)
    cluster.start(1)
    for topic, isr in ((two, [1, 2, 3]), (three, [1, 2, 3]), (beyond, [1, 2])):
        cluster.see(topic, "all are back", isr=isr, elr=[])
    cluster[2].send(fetch(three, 12), 12, "the epochs of what was written")


@scenario_on("failing")
def eligible_replicas_lead(cluster: ClusterRun) -> None:
    """All of a partition's replicas stop; an eligible one comes back, and leads."""
    topic = cluster.topic("t", [1, 2, 3], min_insync_replicas="2")
    fill(cluster, topic, 1, b"a")
    cluster.stop(2)
    cluster.see(topic, "without 2", isr=[1, 3])
    cluster.stop(3)
    cluster.see(topic, "without 3", isr=[1], elr=[3])
    cluster[1].send(produce(topic, 9, simple(b"b"), acks=1), 9, "acks 1, not committed")
    cluster.start(2)
    cluster.see(topic, "2 is back", isr=[1, 2], elr=[])
    cluster.reaches(1, topic, 2, "it is committed")
    cluster.start(3)
    cluster.see(topic, "3 is back", isr=[1, 2, 3])
    cluster.kill(3)
    cluster.see(topic, "3 was killed", isr=[1, 2])
    cluster.kill(2)
    cluster.see(topic, "2 was killed", isr=[1], elr=[2])
    cluster.start(2)
    cluster.see(topic, "2 is back", isr=[1, 2], elr=[])
    cluster.start(3)
    cluster.see(topic, "3 is back", isr=[1, 2, 3])


@scenario_on("failing")
def all_are_killed(cluster: ClusterRun) -> None:
    """No broker left in an orderly way: only the last known leader may lead."""
    topic = cluster.topic("t", [1, 2], min_insync_replicas="2")
    single = cluster.topic("s", [1])
    for each in (topic, single):
        fill(cluster, each, 1, b"a")
    cluster.kill(2)
    cluster.see(topic, "2 was killed", isr=[1], elr=[2])
    cluster.kill(1)
    cluster.see(topic, "1 was killed", leader=-1)
    cluster.see(single, "1 was killed", leader=-1)
    cluster[3].send(metadata(12, topic, single), 12, "all are gone")
    cluster.start(2)
    cluster.let_pass(500)
    cluster.see(topic, "2 is back")
    cluster[3].send(elect(PREFERRED, (topic, 0), (single, 0)), 2, "the preferred one is gone")
    cluster.start(1)
    cluster.see(topic, "1 is back", leader=1, isr=[1, 2])
    cluster.see(single, "1 is back", leader=1, isr=[1])
    for each in (topic, single):
        cluster[1].send(produce(each, 9, simple(b"b")), 9, "more")
        cluster[1].send(fetch(each, 12), 12, "the epochs")


@scenario_on("failing")
def all_are_stopped(cluster: ClusterRun) -> None:
    """Even the last in-sync replica stops in an orderly way: eligible replicas may lead."""
    topic = cluster.topic("t", [1, 2], min_insync_replicas="2")
    fill(cluster, topic, 1, b"a")
    cluster.stop(2)
    cluster.see(topic, "2 stopped", isr=[1], elr=[2])
    cluster.stop(1)
    cluster.see(topic, "1 stopped", leader=-1)
    cluster.start(2)
    cluster.see(topic, "2 is back", leader=2)
    cluster[2].send(produce(topic, 9, simple(b"b"), acks=1), 9, "acks 1")
    cluster[2].send(fetch(topic, 12), 12, "at the one that was eligible")
    cluster.start(1)
    cluster.see(topic, "1 is back", leader=2, isr=[1, 2], elr=[])
    cluster.reaches(2, topic, 2, "all is committed")
    for epoch in range(5):
        cluster[2].send(end_of_epoch(topic, epoch), 4, f"where epoch {epoch} ends")


@scenario_on("calm")
def each_broker_in_turn(cluster: ClusterRun) -> None:
    """A rolling restart."""
    topics = [
        cluster.topic(f"t{index}", replicas, min_insync_replicas="2")
        for index, replicas in enumerate(([1, 2, 3], [2, 3, 1], [3, 1, 2]))
    ]
    leaders = [1, 2, 3]
    for node in (1, 2, 3):
        cluster.stop(node)
        for index, topic in enumerate(topics):
            if leaders[index] == node:
                order = [(index + step) % 3 + 1 for step in range(3)]
                leaders[index] = next(each for each in order if each != node)
            cluster.see(topic, f"without {node}", leader=leaders[index])
            request = produce(topic, 9, simple(b"%d" % node))
            cluster[leaders[index]].send(request, 9, f"without {node}")
        cluster.start(node)
        for index, topic in enumerate(topics):
            cluster.see(topic, f"{node} is back", leader=leaders[index], isr=[1, 2, 3])
    for topic, leader in zip(topics, leaders, strict=True):
        cluster[leader].send(fetch(topic, 12), 12, "nothing is lost")
    cluster[1].send(elect(PREFERRED, *((topic, 0) for topic in topics)), 2, "all shall lead")
    for topic, leader in zip(topics, (1, 2, 3), strict=True):
        cluster.see(topic, "as in the beginning", leader=leader)
    cluster[1].send(metadata(12, *topics), 12, "at the end")
