"""CreateTopics and CreatePartitions: manual assignment or placement, enough brokers or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.golden.requests import creation
from tests.golden.three_brokers.requests import assigned, described, grown, metadata
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from wire.schemas.delete_topics import DeleteTopicsRequest

CREATE_VERSIONS = range(2, 8)


@scenario_on("calm")
def create_with_replicas(cluster: ClusterRun) -> None:
    wrong: dict[str, Sequence[Any]] = {
        "an unknown broker": [[1, 2], [2, 7]],
        "a negative broker": [[1, -1]],
        "a broker twice": [[1, 2], [3, 3]],
        "more replicas here than there": [[1, 2], [2, 3, 1]],
        "fewer replicas here than there": [[1, 2], [3]],
        "no replicas": [[]],
        "no replicas of the second": [[1, 2], []],
        "not from 0": [(1, [1, 2])],
        "with a gap": [(0, [1, 2]), (2, [2, 3])],
        "a partition twice": [(0, [1, 2]), (0, [2, 3])],
        "a partition twice, the same": [(0, [1, 2]), (0, [1, 2])],
        "more than there are brokers": [[1, 2, 3, 4]],
        "a negative partition": [(-1, [1, 2])],
    }
    for version in (2, 4, 5, 6, 7):
        broker = cluster[version % 3 + 1]
        for note, rows in wrong.items():
            broker.send(assigned(cluster.topic_name("w"), *rows), version, note)
        both = assigned(cluster.topic_name("w"), [1, 2], partitions=1)
        broker.send(both, version, "with a partition count")
        both = assigned(cluster.topic_name("w"), [1, 2], replication=2)
        broker.send(both, version, "with a replication factor")
        fits = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
        name = cluster.topic_name(f"v{version}")
        broker.send(assigned(name, *fits, validate_only=True), version, "validated only")
        broker.send(assigned(name, *fits), version, "three partitions")
        broker.send(assigned(name, [7]), version, "again, with an unknown broker")
        cluster.known(name)
        cluster[2].send(metadata(12, name), 12, "what came of it")
    backwards = assigned(cluster.topic_name("b"), (1, [3, 2]), (0, [2, 1]))
    cluster[1].send(backwards, 7, "two partitions, backwards")
    cluster.known(cluster.topic_name("b"))
    cluster[3].send(described(cluster.topic_name("b")), 0, "what came of it")


@scenario_on("calm")
def create_more_replicas_than_brokers(cluster: ClusterRun) -> None:
    for version in CREATE_VERSIONS:
        broker = cluster[version % 3 + 1]
        for count in (4, 5, 32767, 0, -2):
            request = creation(cluster.topic_name("z"), replication=count)
            broker.send(request, version, f"replication {count}")
            request = creation(cluster.topic_name("z"), replication=count, validate_only=True)
            broker.send(request, version, f"replication {count}, validated only")
        several = creation(cluster.topic_name("z"), partitions=-1, replication=4)
        broker.send(several, version, "replication 4, partitions -1")
        fits = creation(cluster.topic_name("z"), replication=3, validate_only=True)
        broker.send(fits, version, "replication 3, validated only")


@scenario_on("calm")
def create_more_partitions(cluster: ClusterRun) -> None:
    for version in range(4):
        broker = cluster[version % 3 + 1]
        name, _ = cluster.topic(f"v{version}", [1, 2])
        wrong: dict[str, tuple[int, Sequence[Sequence[int]]]] = {
            "an unknown broker": (2, [[1, 9]]),
            "a broker twice": (2, [[2, 2]]),
            "too few replicas": (2, [[1]]),
            "too many replicas": (2, [[1, 2, 3]]),
            "replicas of different counts": (3, [[1, 2], [3]]),
            "replicas of different counts, the first right": (3, [[2, 3], [1, 2, 3]]),
            "too few assignments": (4, [[1, 2]]),
            "too many assignments": (2, [[1, 2], [2, 3]]),
            "no replicas": (2, [[]]),
            "not more partitions": (1, [[1, 2]]),
        }
        for note, (count, rows) in wrong.items():
            broker.send(grown(name, count, *rows), version, note)
        broker.send(grown(name, 3, [2, 3], [3, 1], validate_only=True), version, "validated only")
        broker.send(grown(name, 3, [2, 3], [3, 1]), version, "two more")
        cluster.see(name, partition=2, leader=3)
        broker.send(grown(name, 6), version, "three more, placed by the controller")
        cluster.see(name, partition=5, keep=False)
        answer = broker.setup(described(name), 0)
        cluster.keep("replicas of the three", placement(answer.topics[0].partitions[3:]))


def placement(partitions: Sequence[Any], *, all_live: bool = True) -> dict[str, Any]:
    """Return the properties that every placement shares, whatever its start.

    Replicas are not spread evenly, even less so beside a stopped broker.
    """
    spread = {
        "brokers that lead": len({row.leader_id for row in partitions}),
        "brokers with replicas": len({n for row in partitions for n in row.replica_nodes}),
    }
    return {
        "partitions": len(partitions),
        "replicas of each": sorted({len(row.replica_nodes) for row in partitions}),
        "on different brokers": all(
            len(set(row.replica_nodes)) == len(row.replica_nodes) for row in partitions
        ),
        "led by the first live one": all(
            row.leader_id == next(n for n in row.replica_nodes if n not in row.offline_replicas)
            for row in partitions
        ),
        "in sync": all(
            row.isr_nodes == [n for n in row.replica_nodes if n not in row.offline_replicas]
            for row in partitions
        ),
        "begin with a live one": all(
            row.replica_nodes[0] not in row.offline_replicas for row in partitions
        ),
        "epochs": sorted({row.leader_epoch for row in partitions}),
        **(spread if all_live else {}),
    }


def _place(
    cluster: ClusterRun, suffix: str, *, partitions: int, replication: int, all_live: bool = True
) -> None:
    name = cluster.topic_name(suffix)
    request = creation(name, partitions=partitions, replication=replication)
    cluster[1].send(request, 7, f"{partitions} partitions, replication {replication}")
    cluster.see(name, partition=partitions - 1, keep=False)
    answer = cluster[2].setup(described(name), 0)
    found = placement(answer.topics[0].partitions, all_live=all_live)
    cluster.keep(f"how {suffix} is placed", found)


@scenario_on("calm")
def placements(cluster: ClusterRun) -> None:
    for replication in (1, 2, 3):
        for partitions in (1, 3, 6, 12):
            suffix = f"r{replication}p{partitions}"
            _place(cluster, suffix, partitions=partitions, replication=replication)
    cluster[3].send(creation(cluster.topic_name("d"), partitions=-1, replication=-1), 7, "defaults")


@scenario_on("failing")
def placements_beside_a_stopped_broker(cluster: ClusterRun) -> None:
    cluster.stop(3)
    for replication in (1, 2, 3):
        suffix = f"r{replication}"
        _place(cluster, suffix, partitions=6, replication=replication, all_live=False)
    cluster[1].send(creation(cluster.topic_name("z"), replication=4), 7, "replication 4")
    name = cluster.topic_name("written")
    cluster[1].send(assigned(name, [3, 1, 2], [1, 3], validate_only=True), 7, "unequal")
    cluster[1].send(assigned(name, [3, 1, 2], [1, 3, 2]), 7, "the stopped broker first")
    cluster.see(name, "what came of it", partition=1, leader=1)
    cluster[2].send(metadata(12, name), 12, "what came of it")
    cluster[1].send(assigned(cluster.topic_name("z"), [3]), 7, "the stopped broker alone")
    mixed = assigned(cluster.topic_name("z"), [1], [3])
    cluster[1].send(mixed, 7, "the stopped broker alone, beside another")
    cluster[1].send(grown(name, 3, [3, 2, 1]), 3, "one more, the stopped broker first")
    cluster.see(name, "what came of it", partition=2, leader=2)
    one = cluster.topic("one", [1])
    cluster[1].send(grown(one[0], 2, [3]), 3, "one more, the stopped broker alone")
    cluster[1].send(grown(one[0], 3), 3, "two more, placed by the controller")
    cluster.see(one, partition=2, keep=False)
    answer = cluster[2].setup(described(one[0]), 0)
    found = placement(answer.topics[0].partitions[1:], all_live=False)
    cluster.keep("where they are placed", found)
    cluster.start(3)
    for partition in range(3):
        cluster.see(name, partition=partition, isr=[1, 2, 3], keep=False)
    cluster.see(name, "broker 3 is back")
    cluster[1].send(DeleteTopicsRequest(topic_names=[name], timeout_ms=15000), 5, "deleted")
