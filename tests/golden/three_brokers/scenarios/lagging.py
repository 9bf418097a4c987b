"""A live follower that does not follow: it is paused for longer than it may lag."""

from __future__ import annotations

from tests.golden.batches import simple
from tests.golden.requests import fetch, produce
from tests.golden.three_brokers.requests import metadata
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from tests.golden.three_brokers.scenarios.follower_reads import fill


@scenario_on("lagging")
def a_follower_lags(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 3])
    minimum = cluster.topic("m", [1, 3], min_insync_replicas="2")
    idle = cluster.topic("i", [1, 3])
    for each in (topic, minimum):
        fill(cluster, each, 1, b"a")
    cluster.pause(3)
    waits = produce(topic, 9, simple(b"b"), timeout_ms=15_000)
    cluster[1].begin(waits, 9, "it waits for the one that lags", on="one")
    waits = produce(minimum, 9, simple(b"b"), timeout_ms=12_000)
    cluster[1].begin(waits, 9, "so does this", on="two")
    cluster[1].send(fetch(topic, 12), 12, "it is not committed")
    cluster[1].finish(on="one")
    cluster[1].finish(on="two")
    cluster.see(topic, "without it", isr=[1])
    cluster.see(minimum, "without it", isr=[1], elr=[3])
    cluster.see(idle, "nothing was appended")
    cluster[1].send(fetch(topic, 12), 12, "it is committed")
    cluster[1].send(fetch(minimum, 12), 12, "this is not")
    cluster[1].send(produce(minimum, 9, simple(b"c")), 9, "too few are in sync")
    cluster[1].send(produce(topic, 9, simple(b"c"), timeout_ms=1), 9, "one is enough")
    cluster[2].send(metadata(12, topic, minimum, idle), 12, "the one that lags is alive")
    cluster.resume(3)
    for each in (topic, minimum):
        cluster.see(each, "it has caught up", isr=[1, 3], elr=[])
    cluster.reaches(1, minimum, 2, "all is committed")
    cluster.reaches(3, topic, 3, "it has all")
    cluster[1].send(metadata(12, topic, minimum, idle), 12, "at the end")


@scenario_on("lagging")
def produce_times_out(cluster: ClusterRun) -> None:
    """The lagging follower is still in the in-sync set."""
    topic = cluster.topic("t", [1, 3])
    fill(cluster, topic, 1, b"a")
    cluster.pause(3)
    for version in (3, 9, 12):
        request = produce(topic, version, simple(b"b"), timeout_ms=100)
        cluster[1].send(request, version, "its time is over")
    cluster[1].send(produce(topic, 9, simple(b"c"), acks=1), 9, "acks 1")
    cluster[1].send(fetch(topic, 12), 12, "what is committed")
    cluster.resume(3)
    cluster.reaches(1, topic, 5, "all is committed")
    cluster.see(topic, "two are in sync", isr=[1, 3])
