"""Consumers that read from followers (KIP-392), and replicas that fetch from a leader."""

from __future__ import annotations

from tests.golden.batches import simple
from tests.golden.requests import Topic, fetch, list_offsets, produce
from tests.golden.three_brokers.requests import as_replica, end_of_epoch
from tests.golden.three_brokers.run import ClusterRun, scenario_on

RACKS = {"a": "the leader's", "b": "a follower's", "c": "another's", "": "no", "z": "nobody's"}
VERSIONS = (11, 12, 13, 15, 16, 18)


def fill(cluster: ClusterRun, topic: Topic, leader: int, *values: bytes) -> None:
    """Append a batch for each, and return when every live replica knows that all are committed."""
    for value in values:
        answer = cluster[leader].setup(produce(topic, 9, simple(value)), 9)
    end = answer.responses[0].partition_responses[0].base_offset + 1
    for node in cluster.live:
        found = cluster[node].setup(fetch(topic, 12), 12).responses[0].partitions[0]
        if found.error_code == 0:
            cluster.reaches(node, topic, end, keep=False)


@scenario_on("failing")
def racks_of_readers(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 2, 3])
    fill(cluster, topic, 1, b"a", b"b")
    for version in VERSIONS:
        for rack, whose in RACKS.items():
            request = fetch(topic, version, rack_id=rack)
            cluster[1].send(request, version, f"from the leader, {whose} rack")
            cluster[2].send(request, version, f"from a follower, {whose} rack")
        for offset in (1, 2, 3):
            request = fetch(topic, version, offset, rack_id="b")
            cluster[1].send(request, version, f"a follower's rack, offset {offset}")
        waits = fetch(topic, version, 2, rack_id="b", max_wait_ms=30_000, min_bytes=1)
        cluster[1].send(waits, version, "a follower's rack, at the end, which does not wait")
        stale = {"current_leader_epoch": 5}
        request = fetch(topic, version, rack_id="b", partition_fields=stale)
        cluster[1].send(request, version, "a follower's rack, an epoch to come")
    for version in (12, 18):
        begun = cluster[1].send(
            fetch(topic, version, session_epoch=0, rack_id="b"), version, "a session"
        )
        again = fetch(None, version, session_id=begun.session_id, session_epoch=1, rack_id="b")
        cluster[1].send(again, version, "the session goes on")
    for version in (11, 15):
        request = fetch(topic, version, rack_id="c", **as_replica(version, -2))
        cluster[1].send(request, version, "as replica -2")


@scenario_on("failing")
def racks_without_replicas_in_sync(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 2])
    other = cluster.topic("u", [1, 2, 3])
    for each in (topic, other):
        fill(cluster, each, 1, b"a", b"b")
    cluster[1].send(fetch(topic, 12, rack_id="c"), 12, "the rack of no replica")
    cluster[1].send(fetch(other, 12, rack_id="c"), 12, "the rack of a replica in sync")
    cluster.stop(3)
    cluster.see(other, isr=[1, 2])
    cluster[1].send(fetch(other, 12, rack_id="c"), 12, "the rack of a replica that is gone")
    cluster[1].send(fetch(other, 12, rack_id="b"), 12, "the rack of the other")
    fill(cluster, other, 1, b"c")
    cluster.start(3)
    cluster.see(other, isr=[1, 2, 3])
    cluster.reaches(3, other, 3, keep=False)
    cluster[1].send(fetch(other, 12, rack_id="c"), 12, "the rack of a replica that is back")
    cluster[3].send(fetch(other, 12, rack_id="c"), 12, "from that replica")


@scenario_on("failing")
def parked_at_a_follower(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 2])
    fill(cluster, topic, 1, b"a")
    for version in (11, 18):
        end = cluster[1].setup(list_offsets(topic[0], -1), 8).topics[0].partitions[0].offset
        waits = fetch(topic, version, end, max_wait_ms=10_000, min_bytes=1, rack_id="b")
        cluster[2].begin(waits, version, "at the end of a follower", on="parked")
        cluster[1].setup(produce(topic, 9, simple(b"b")), 9)
        cluster[2].finish(on="parked")
    cluster[2].send(fetch(topic, 12, 3, max_wait_ms=100, min_bytes=1), 12, "nothing comes")
    cluster[2].send(fetch(topic, 12, 4, max_wait_ms=100, min_bytes=1), 12, "beyond the end")


@scenario_on("failing")
def fetches_of_replicas(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 2])
    fill(cluster, topic, 1, b"a", b"b")
    for version in (4, 9, 11, 12, 13, 14, 15, 16, 17, 18):
        for replica, what in ((2, "its follower"), (3, "no replica"), (9, "no broker"),
                              (1, "the leader itself"), (-2, "replica -2"),
                              (-3, "replica -3")):  # fmt: skip
            request = fetch(topic, version, 2, **as_replica(version, replica))
            cluster[1].send(request, version, f"by {what}")
        request = fetch(topic, version, **as_replica(version, 2))
        cluster[1].send(request, version, "by its follower, again from the start")
        request = fetch(topic, version, 5, **as_replica(version, 2))
        cluster[1].send(request, version, "by its follower, beyond the end")
        request = fetch(topic, version, **as_replica(version, 1))
        cluster[2].send(request, version, "by the leader from the follower")
        cluster[3].send(request, version, "by the leader from no replica")
    for version in (15, 18):
        for epoch in (-2, -1, 0, 1, 2**40):
            request = fetch(topic, version, 2, **as_replica(version, 2, epoch))
            cluster[1].send(request, version, f"by its follower, broker epoch {epoch}")
            request = fetch(topic, version, 2, **as_replica(version, 3, epoch))
            cluster[1].send(request, version, f"by no replica, broker epoch {epoch}")
    for version in (12, 18):
        for current, last, offset in ((0, 0, 2), (1, 0, 2), (-1, 0, 2), (0, 1, 2), (0, 0, 3)):
            fields = {"current_leader_epoch": current, "last_fetched_epoch": last}
            request = fetch(
                topic, version, offset, partition_fields=fields, **as_replica(version, 2)
            )
            note = f"by its follower, offset {offset}, leader epoch {current}, last {last}"
            cluster[1].send(request, version, note)
    cluster.see(topic, "nothing changed", leader=1, isr=[1, 2])


@scenario_on("failing")
def below_the_minimum(cluster: ClusterRun) -> None:
    """With too few in-sync replicas, new records are readable by replicas, but not by consumers."""
    topic = cluster.topic("t", [1, 2], min_insync_replicas="2")
    fill(cluster, topic, 1, b"a")
    cluster.stop(2)
    cluster.see(topic, "one is in sync", leader=1, isr=[1])
    for version in (3, 8, 9, 10, 12, 13):
        cluster[1].send(produce(topic, version, simple(b"x")), version, "acks -1")
    cluster[1].send(produce(topic, 9, simple(b"b"), acks=1), 9, "acks 1")
    cluster[1].send(produce(topic, 9, simple(b"c"), acks=1), 9, "acks 1 again")
    for version in (4, 11, 12, 18):
        cluster[1].send(fetch(topic, version), version, "by a consumer")
        cluster[1].send(fetch(topic, version, 1), version, "by a consumer, from its end")
        cluster[1].send(fetch(topic, version, 2), version, "by a consumer, beyond its end")
        cluster[1].send(fetch(topic, version, 4), version, "by a consumer, beyond the log")
        request = fetch(topic, version, 1, **as_replica(version, 2))
        cluster[1].send(request, version, "by the replica that is gone")
        request = fetch(topic, version, 3, **as_replica(version, 2))
        cluster[1].send(request, version, "by that replica, at the end")
    for version in (2, 5, 8, 11):
        for replica in (-1, -2, 2):
            request = list_offsets(topic[0], -1, replica_id=replica)
            cluster[1].send(request, version, f"latest, as replica {replica}")
    cluster[1].send(list_offsets(topic[0], -3), 8, "the largest timestamp")
    cluster[1].send(end_of_epoch(topic, 0), 4, "by a consumer")
    cluster[1].send(end_of_epoch(topic, 0, replica_id=2), 4, "by a replica")
    cluster.see(topic, "it is not in sync yet", leader=1, isr=[1])
    cluster.start(2)
    cluster.see(topic, "two are in sync", isr=[1, 2])
    cluster.reaches(1, topic, 3, "all is committed")
    cluster.reaches(2, topic, 3, "at the follower, too")
    cluster[1].send(produce(topic, 9, simple(b"d")), 9, "acks -1")
