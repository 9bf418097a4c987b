"""Requests about partitions to the leader, to a follower, and to a broker without a replica."""

from __future__ import annotations

from tests.golden.batches import simple
from tests.golden.requests import Topic, fetch, list_offsets, produce
from tests.golden.three_brokers.requests import deleted_records, end_of_epoch
from tests.golden.three_brokers.run import ClusterRun, scenario_on
from tests.golden.transaction_requests import markers
from wire.schemas.describe_producers import DescribeProducersRequest
from wire.schemas.describe_producers import TopicRequest as ProducersTopic

PLACES = {1: "the leader", 2: "a follower", 3: "no replica"}
MISSING_ID = bytes(range(1, 17))


def _topic(cluster: ClusterRun) -> Topic:
    """Create a topic led by 1 in epoch 0, followed by 2, with two batches."""
    topic = cluster.topic("t", [1, 2])
    for data in (b"a", b"b"):
        cluster[1].setup(produce(topic, 9, simple(data)), 9)
    cluster.reaches(2, topic, 2, keep=False)
    return topic


@scenario_on("calm")
def produce_to_each(cluster: ClusterRun) -> None:
    topic = _topic(cluster)
    for version in (3, 5, 7, 8, 9, 10, 11, 12, 13):
        for node in (2, 3):
            for acks in (1, -1):
                request = produce(topic, version, simple(b"x"), acks=acks)
                cluster[node].send(request, version, f"to {PLACES[node]}, acks {acks}")
        twice = produce(topic, version, simple(b"x"), simple(b"y"))
        cluster[2].send(twice, version, "to a follower, the same partition twice")
        for node in (2, 3):
            place = PLACES[node]
            cluster[node].send(produce(topic, version, b"junk"), version, f"to {place}, no batch")
            two = produce(topic, version, simple(b"x") + simple(b"y"))
            cluster[node].send(two, version, f"to {place}, two batches")
            zstd = produce(topic, version, simple(b"x", attributes=4))
            cluster[node].send(zstd, version, f"to {place}, zstd")
            acks = produce(topic, version, simple(b"x"), acks=2)
            cluster[node].send(acks, version, f"to {place}, acks 2")
        missing = produce(topic, version, simple(b"x"), partition=7)
        cluster[3].send(missing, version, "to no replica, no partition 7")
        unknown = (cluster.topic_name("unknown"), MISSING_ID)
        cluster[3].send(produce(unknown, version, simple(b"x")), version, "an unknown topic")
    for node in (2, 3):
        request = produce(topic, 9, simple(b"x"), acks=0)
        cluster[node].send_unanswered(request, 9, f"to {PLACES[node]}, acks 0")
    cluster[1].send(fetch(topic, 12), 12, "nothing was appended")


@scenario_on("calm")
def fetch_from_each(cluster: ClusterRun) -> None:
    topic = _topic(cluster)
    for version in range(4, 19):
        for node, place in PLACES.items():
            cluster[node].send(fetch(topic, version), version, f"from {place}")
    for version in (4, 10, 11, 12, 16, 18):
        for node, place in PLACES.items():
            for offset in (1, 2, 3, -1):
                request = fetch(topic, version, offset)
                cluster[node].send(request, version, f"from {place}, offset {offset}")
            request = fetch(topic, version, max_wait_ms=1, min_bytes=1 << 20)
            cluster[node].send(request, version, f"from {place}, more bytes than there are")
            request = fetch(topic, version, isolation_level=1)
            cluster[node].send(request, version, f"from {place}, what is committed")
    for version in (12, 13, 18):
        for node, place in PLACES.items():
            begun = cluster[node].send(
                fetch(topic, version, session_epoch=0), version, f"from {place}, a session"
            )
            cluster[node].send(
                fetch(None, version, session_id=begun.session_id, session_epoch=1), version,
                f"from {place}, the session goes on",
            )  # fmt: skip


@scenario_on("calm")
def epochs_of_fetches(cluster: ClusterRun) -> None:
    topic = _topic(cluster)
    for version in (9, 11, 12, 15, 16, 18):
        for node, place in PLACES.items():
            for epoch in (-1, 0, 1, 5, -2):
                request = fetch(topic, version, partition_fields={"current_leader_epoch": epoch})
                cluster[node].send(request, version, f"from {place}, leader epoch {epoch}")
    for version in (12, 16, 18):
        for node, place in PLACES.items():
            for epoch, offset in ((0, 2), (0, 3), (1, 2), (5, 0), (-1, 2)):
                fields = {"current_leader_epoch": 0, "last_fetched_epoch": epoch}
                request = fetch(topic, version, offset, partition_fields=fields)
                note = f"from {place}, offset {offset}, last epoch {epoch}"
                cluster[node].send(request, version, note)


@scenario_on("calm")
def offsets_from_each(cluster: ClusterRun) -> None:
    topic = _topic(cluster)
    name = topic[0]
    for version in range(1, 12):
        for node, place in PLACES.items():
            for timestamp in (-1, -2):
                request = list_offsets(name, timestamp)
                cluster[node].send(request, version, f"from {place}, timestamp {timestamp}")
    for version in (4, 5, 8, 11):
        for node, place in PLACES.items():
            for epoch in (0, 1, 5):
                request = list_offsets(name, -1, epoch=epoch)
                cluster[node].send(request, version, f"from {place}, leader epoch {epoch}")
            for replica in (-2, 1, 2, 3, 9):
                request = list_offsets(name, -1, replica_id=replica)
                cluster[node].send(request, version, f"from {place}, as replica {replica}")
            cluster[node].send(list_offsets(name, -3), version, f"from {place}, timestamp -3")
            cluster[node].send(list_offsets(name, 0), version, f"from {place}, timestamp 0")


@scenario_on("calm")
def ends_of_epochs_from_each(cluster: ClusterRun) -> None:
    topic = _topic(cluster)
    for version in range(2, 5):
        for node, place in PLACES.items():
            for epoch in (-1, 0, 1):
                request = end_of_epoch(topic, epoch)
                cluster[node].send(request, version, f"from {place}, epoch {epoch}")
            for current in (0, 1, -2):
                request = end_of_epoch(topic, 0, current=current)
                cluster[node].send(request, version, f"from {place}, leader epoch {current}")
            if version >= 3:
                for replica in (-2, 2, 3, 9):
                    request = end_of_epoch(topic, 0, replica_id=replica)
                    cluster[node].send(request, version, f"from {place}, as replica {replica}")


@scenario_on("calm")
def other_requests_to_each(cluster: ClusterRun) -> None:
    topic = _topic(cluster)
    for version in range(3):
        for node in (2, 3):
            request = deleted_records(topic, 1)
            cluster[node].send(request, version, f"to {PLACES[node]}")
    cluster[1].send(deleted_records(topic, 1), 2, "to the leader, which waits for its follower")
    for node, place in PLACES.items():
        asked = ProducersTopic(name=topic[0], partition_indexes=[0])
        request = DescribeProducersRequest(topics=[asked])
        cluster[node].send(request, 0, f"from {place}")
    for node in (2, 3):
        for version in (1, 2):
            request = markers((7, 0), (topic, 0))
            cluster[node].send(request, version, f"to {PLACES[node]}")
    cluster[2].until(
        lambda answer: answer.responses[0].partitions[0].log_start_offset == 1,
        fetch(topic, 12, 1), 12, "the follower's log begins there, too",
    )  # fmt: skip
    cluster[2].send(fetch(topic, 12, 0), 12, "from a follower, what was deleted")
    cluster[2].send(list_offsets(topic[0], -2), 8, "from a follower, the earliest offset")
