"""ElectLeaders: preferred and unclean, needed or not, possible or not."""

from __future__ import annotations

from tests.golden.three_brokers.requests import PREFERRED, UNCLEAN, elect, metadata
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from wire.schemas.elect_leaders import ElectLeadersRequest, TopicPartitions


@scenario_on("calm")
def elections_not_needed(cluster: ClusterRun) -> None:
    topic = cluster.topic("t", [1, 2], [2, 3], [3, 1])
    unknown = cluster.topic_name("unknown")
    for version in range(3):
        broker = cluster[version + 1]
        kinds = (PREFERRED, UNCLEAN) if version else (PREFERRED,)
        for kind in kinds:
            broker.send(elect(kind, (topic, 0)), version, f"type {kind}, one partition")
            several = elect(kind, (topic, 0), (topic, 2), (topic, 7), (unknown, 0))
            broker.send(several, version, f"type {kind}, and unknown ones")
            broker.send(elect(kind), version, f"type {kind}, no topics")
            broker.send(elect(kind, everywhere=True), version, f"type {kind}, all")
            nothing = ElectLeadersRequest(
                election_type=kind,
                topic_partitions=[TopicPartitions(topic=topic[0], partitions=[])],
            )
            broker.send(nothing, version, f"type {kind}, no partitions")
            twice = elect(kind, (topic, 1), (topic, 1))
            broker.send(twice, version, f"type {kind}, the same twice")
            broker.send(elect(kind, ("a b", 0)), version, f"type {kind}, an illegal name")
            broker.send(elect(kind, (topic, -1)), version, f"type {kind}, partition -1")
        if version:
            for kind in (2, -1):
                broker.send(elect(kind, (topic, 0)), version, f"type {kind}")
                broker.send(elect(kind, everywhere=True), version, f"type {kind}, all")


@scenario_on("failing")
def elections_needed(cluster: ClusterRun) -> None:
    topics = cluster.topics([2, 1, 3], [2, 3, 1], [2, 1], [2], [1, 2])
    cluster.stop(2)
    for topic, leader in zip(topics, (1, 3, 1, -1, 1), strict=True):
        cluster.see(topic, "broker 2 is gone", leader=leader)
    every = [(topic, 0) for topic in topics]
    for version in range(3):
        broker = cluster[(1, 3)[version % 2]]
        broker.send(elect(PREFERRED, *every), version, "the preferred one is gone")
        if version:
            broker.send(elect(UNCLEAN, *every), version, "nobody is left to elect")
    cluster[1].send(elect(PREFERRED, everywhere=True), 2, "all, the preferred one is gone")
    cluster[1].send(elect(UNCLEAN, everywhere=True), 2, "all, nobody is left to elect")
    cluster.start(2)
    for topic, isr in zip(topics, ([1, 2, 3], [1, 2, 3], [1, 2], [2], [1, 2]), strict=True):
        cluster.see(topic, "broker 2 is back", isr=isr)
    first, second, third, alone, _ = topics
    cluster[3].send(elect(PREFERRED, (first, 0)), 0, "one of them")
    cluster[3].send(elect(PREFERRED, (first, 0)), 0, "again")
    cluster[3].send(elect(PREFERRED, (second, 0), (alone, 0), (second, 7)), 1, "and others")
    cluster[1].send(elect(UNCLEAN, (third, 0)), 2, "an unclean one that is not needed")
    for topic, leader in zip(topics, (2, 2, 1, 2, 1), strict=True):
        cluster.see(topic, "some are elected", leader=leader)
    cluster[1].send(elect(PREFERRED, everywhere=True), 2, "all")
    cluster.see(third, "all are elected", leader=2)
    cluster[1].send(elect(PREFERRED, everywhere=True), 2, "all again")
    cluster[3].send(metadata(12, *topics), 12, "what came of it")
