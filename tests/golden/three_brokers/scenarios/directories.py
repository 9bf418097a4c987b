"""Brokers with two log directories each: places of replicas, moves, cordons, a lost directory."""

from __future__ import annotations

from collections.abc import Callable

from tests.golden.batches import simple
from tests.golden.requests import Topic, fetch, produce
from tests.golden.scenarios.configs import BROKER, DELETE, SET, incremental
from tests.golden.three_brokers.requests import assigned, metadata
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from tests.support.kafka_cluster import BROKERS
from wire.schemas.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from wire.schemas.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

FIRST, SECOND = "first", "second"
CORDONED = "cordoned.log.dirs"


def located(*topics: Topic) -> DescribeLogDirsRequest:
    """Return the directories of the replicas of partitions 0 to 3."""
    return DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic=name, partitions=[0, 1, 2, 3]) for name, _ in topics]
    )


def moved(*moves: tuple[str, Topic | str, int]) -> AlterReplicaLogDirsRequest:
    """Move replicas: each a directory, a topic and a partition."""
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(
                        name=topic if isinstance(topic, str) else topic[0], partitions=[partition]
                    )
                ],
            )
            for path, topic, partition in moves
        ]
    )


def paths(cluster: ClusterRun, node: int) -> dict[str, str]:
    """Return the path of each directory of a broker, by its name."""
    answer = cluster[node].setup(DescribeLogDirsRequest(topics=[]), 4)
    return {row.log_dir.split("/")[-1 if row.log_dir[0] == "/" else 0]: row.log_dir
            for row in answer.results}  # fmt: skip


def placed(cluster: ClusterRun, suffix: str, *places: tuple[str, list[int]]) -> Topic:
    """Create a topic with a directory and brokers for the replicas of each partition.

    Explicit directories are needed because earlier scenarios left logs in them.
    """
    name = cluster.topic_name(suffix)
    for node in BROKERS:
        own = paths(cluster, node)
        for partition, (directory, replicas) in enumerate(places):
            if node in replicas:
                cluster[node].setup(moved((own[directory], name, partition)), 2)
    return cluster.topic(suffix, *(replicas for _, replicas in places))


def lies_in(directory: str, partition: int) -> Callable[[DescribeLogDirsResponse], bool]:
    """Return a check that the partition is in the directory, without a running move."""

    def holds(answer: DescribeLogDirsResponse) -> bool:
        places = [
            (row.log_dir, each.is_future_key)
            for row in answer.results
            for topic in row.topics
            for each in topic.partitions
            if each.partition_index == partition
        ]
        return places == [(directory, False)]

    return holds


def fill(cluster: ClusterRun, topic: Topic, leader: int, partition: int, *values: bytes) -> None:
    """Append a batch of these values, and wait until all replicas have it."""
    request = produce(topic, 9, simple(*values), partition=partition)
    cluster[leader].setup(request, 9)


@scenario_on("directories")
def replicas_lie_where_there_are_fewest(cluster: ClusterRun) -> None:
    """The order of a hash map in Kafka decides which replica goes where."""
    topic = cluster.topic("t", [1], [1], [1], [1])
    answer = cluster[1].setup(located(topic), 5)
    counts = [sum(len(each.partitions) for each in row.topics) for row in answer.results]
    cluster.keep("how many lie in each", counts)


@scenario_on("directories")
def sizes_in_directories(cluster: ClusterRun) -> None:
    topic = placed(
        cluster, "t", (FIRST, [1, 2]), (SECOND, [2, 3]), (SECOND, [3, 1]), (FIRST, [1, 3])
    )
    for version in range(1, 6):
        for node in BROKERS:
            cluster[node].send(located(topic), version, "empty ones")
    for partition, leader in enumerate((1, 2, 3, 1)):
        fill(cluster, topic, leader, partition, b"a", b"b")
    cluster.let_pass(1_000)
    for node in BROKERS:
        cluster[node].send(located(topic), 5, "of two records each")


@scenario_on("directories")
def moves_that_are_wrong(cluster: ClusterRun) -> None:
    topic = placed(cluster, "t", (FIRST, [1, 2]), (SECOND, [2, 3]))
    unknown = cluster.topic_name("unknown")
    for version in (1, 2):
        for node in BROKERS:
            own = paths(cluster, node)
            broker = cluster[node]
            for name in (FIRST, SECOND):
                broker.send(moved((own[name], unknown, 0)), version, f"an unknown topic, to {name}")
                broker.send(moved((own[name], topic, 7)), version, f"no partition 7, to {name}")
            elsewhere = 1 if node == 1 else 0
            if node != 2:
                broker.send(moved((own[FIRST], topic, elsewhere)), version, "one of other brokers")
            here = 0 if node == 1 else 1
            broker.send(moved(("/nowhere", topic, here)), version, "to an unknown directory")
            broker.send(moved(("nowhere", topic, here)), version, "to a relative path")
            broker.send(moved(("", topic, here)), version, "to no path")
            broker.send(moved((own[FIRST] + "/", topic, here)), version, "with a slash behind")
            broker.send(moved(("/nowhere", unknown, 0)), version, "nothing of it is known")
            broker.send(moved(), version, "no directories")
            broker.send(
                moved(("/nowhere", topic, here), (own[SECOND], unknown, 3)), version, "two at once"
            )
    for node in BROKERS:
        cluster[node].send(located(topic), 5, "as they lay")


@scenario_on("directories")
def replicas_move(cluster: ClusterRun) -> None:
    topic = placed(cluster, "t", (FIRST, [1, 2]), (FIRST, [1, 2]))
    for partition in (0, 1):
        fill(cluster, topic, 1, partition, b"a", b"b", b"c")
    cluster.let_pass(1_000)
    for note, node in (("the leader", 1), ("the follower", 2)):
        own = paths(cluster, node)
        for partition in (0, 1):
            for name in (SECOND, FIRST, SECOND):
                broker = cluster[node]
                request = moved((own[name], topic, partition))
                broker.send(request, 2, f"{note} of {partition} to {name}")
                broker.until(
                    lies_in(own[name], partition), located(topic), 5, "it has moved", keep=True
                )
            cluster[1].send(produce(topic, 9, simple(b"d"), partition=partition), 9, "after it")
            cluster[1].send(fetch(topic, 12, partition=partition), 12, "all of it")
    cluster.see(topic, "all in sync", isr=[1, 2])
    for node in (1, 2):
        cluster[node].send(located(topic), 5, "where they are")


@scenario_on("directories")
def a_place_for_a_replica_to_come(cluster: ClusterRun) -> None:
    cluster.topic("t", [1])
    later = cluster.topic_name("later")
    for node in (1, 2):
        own = paths(cluster, node)
        for partition, name in enumerate((SECOND, SECOND, SECOND, FIRST)):
            request = moved((own[name], later, partition))
            cluster[node].send(request, 2, f"{partition} shall lie in {name}")
    topic = cluster.topic("later", [1, 2], [2, 1], [1, 2], [2, 1])
    for node in (1, 2):
        cluster[node].send(located(topic), 5, "as was wished")


@scenario_on("directories")
def cordoned_directories(cluster: ClusterRun) -> None:
    topic = placed(cluster, "t", (FIRST, [1]), (SECOND, [1]))
    own = paths(cluster, 1)
    for text in ("nowhere", "/nowhere", f"{own[SECOND]},/nowhere", f"*,{own[SECOND]}"):
        wrong = incremental(BROKER, "1", (CORDONED, SET, text))
        cluster[1].send(wrong, 1, f"cordoned: {text.replace(own[SECOND], '<second>')}")
    cluster[1].send(incremental(BROKER, "1", (CORDONED, SET, own[SECOND])), 1, "the second")
    cluster.let_pass(1_000)
    for version in (4, 5):
        cluster[1].send(located(topic), version, "one is cordoned")
    for partition in (0, 1):
        cluster[1].send(moved((own[SECOND], topic, partition)), 2, f"{partition} into it")
    more = cluster.topic("more", [1], [1], [1])
    cluster[1].send(located(more), 5, "none of them in the second")
    cluster[1].send(incremental(BROKER, "1", (CORDONED, SET, "*")), 1, "all of them")
    cluster.let_pass(1_500)
    cluster[1].send(located(topic), 5, "both are cordoned")
    cluster[1].send(moved((own[FIRST], topic, 1)), 2, "out of one that is cordoned")
    for name, replicas in (("on-1", [1]), ("on-2", [2])):
        request = assigned(cluster.topic_name(name), replicas)
        cluster[2].send(request, 7, f"a topic on {replicas}")
    request = assigned(cluster.topic_name("anywhere"), partitions=3, replication=2)
    cluster[2].send(request, 7, "a topic on two of them")
    request = assigned(cluster.topic_name("everywhere"), partitions=1, replication=3)
    cluster[2].send(request, 7, "a topic on all of them")
    cluster[1].send(incremental(BROKER, "1", (CORDONED, DELETE, None)), 1, "none any more")
    cluster.let_pass(1_500)
    cluster[1].send(located(topic), 5, "none is cordoned")


@scenario_on("directories")
def a_directory_is_lost(cluster: ClusterRun) -> None:
    topic = placed(
        cluster, "t", (FIRST, [1, 2]), (SECOND, [1, 2]), (FIRST, [2, 1]), (SECOND, [2, 1])
    )
    alone = placed(cluster, "alone", (FIRST, [1]), (SECOND, [1]))
    for partition in range(4):
        fill(cluster, topic, 1 if partition < 2 else 2, partition, b"a")
    for partition in range(2):
        fill(cluster, alone, 1, partition, b"a")
    cluster.let_pass(1_000)
    cluster[1].send(located(topic, alone), 5, "where they lie")
    cluster.stop(1)
    cluster.target.take_away(1, SECOND)
    cluster.start(1)
    cluster.let_pass(3_000)
    cluster[1].send(located(topic, alone), 5, "without the second")
    for node in (1, 2):
        cluster[node].send(metadata(12, topic, alone), 12, "what is led where")
    ask_all(cluster, topic, alone, "without it")
    own = paths(cluster, 1)
    for partition in range(4):
        cluster[1].send(moved((own[FIRST], topic, partition)), 2, f"{partition} into the first")
    for partition in range(2):
        request = moved((own[FIRST], alone, partition))
        cluster[1].send(request, 2, f"{partition} that is alone into the first")
    cluster.stop(1)
    cluster.target.give_back(1, SECOND)
    cluster.start(1)
    cluster.let_pass(3_000)
    for partition in range(4):
        cluster.see(topic, "back in sync", partition=partition, isr=[1, 2])
    cluster[1].send(located(topic, alone), 5, "with the second again")
    ask_all(cluster, topic, alone, "with it")


def ask_all(cluster: ClusterRun, topic: Topic, alone: Topic, note: str) -> None:
    """Produce to and fetch from each partition at its first replica."""
    for partition in range(4):
        leader = 1 if partition < 2 else 2
        request = produce(topic, 12, simple(b"b"), partition=partition)
        cluster[leader].send(request, 12, f"to {partition} at {leader}, {note}")
        cluster[leader].send(
            fetch(topic, 16, partition=partition), 16, f"of {partition} at {leader}, {note}"
        )
    for partition in range(2):
        request = produce(alone, 12, simple(b"b"), partition=partition)
        cluster[1].send(request, 12, f"to one that is alone, {partition}, {note}")
        cluster[1].send(
            fetch(alone, 16, partition=partition), 16, f"of one that is alone, {partition}, {note}"
        )
