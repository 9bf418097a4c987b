"""In process a fetch of one partition needs no session; several partitions share one (KIP-227)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import embedlog
from embedlog import TopicPartition
from wire.schemas.fetch import FetchRequest

ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


class World:
    """A cluster, and the fetch requests of its consumers: (node id, session id, epoch, named)."""

    def __init__(self, cluster: embedlog.Cluster, broker_ids: range) -> None:
        self.cluster = cluster
        self.cores = {number: cluster.broker(number).core for number in broker_ids}
        self.fetches: list[tuple[int, int, int, list[int]]] = []
        for number, core in self.cores.items():
            core.interceptor = self._noting(number)

    def _noting(self, number: int) -> Any:
        def note(_context: Any, request: Any) -> None:
            if isinstance(request, FetchRequest) and request.replica_state.replica_id < 0:
                named = [each.partition for topic in request.topics for each in topic.partitions]
                head = number, request.session_id, request.session_epoch
                self.fetches.append((*head, named))

        return note

    def session_count(self) -> int:
        return sum(len(core.fetch_sessions) for core in self.cores.values())

    def consumer(self, *partitions: TopicPartition, **settings: Any) -> embedlog.Consumer:
        consumer = embedlog.Consumer(self.cluster, auto_offset_reset="earliest", **settings)
        consumer.assign(partitions)
        return consumer


@pytest.fixture(params=[1, 3])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with embedlog.open(brokers=request.param) as cluster:
        cluster.create_topic("t", 2)
        yield World(cluster, range(1, request.param + 1))


def read(consumer: embedlog.Consumer, count: int) -> list[tuple[int, bytes]]:
    """(partition, value) of the next records."""
    found: list[tuple[int, bytes]] = []
    while len(found) < count:
        found += [(each.partition, each.value) for each in consumer.poll(1000)]
    return found


def test_one_partition_is_fetched_without_a_session(world: World) -> None:
    with world.cluster.producer() as producer, world.consumer(ONE) as consumer:
        for value in (b"a", b"b", b"c"):
            producer.send("t", value, partition=0).result()
            assert read(consumer, 1) == [(0, value)]
        assert not consumer.poll(1)
    assert [each[1:] for each in world.fetches] == [(0, -1, [0])] * 4
    if len(world.cores) == 1:
        assert not world.session_count()


def test_the_session_of_several_ends_when_only_one_is_left(world: World) -> None:
    with world.cluster.producer() as producer, world.consumer(ONE, OTHER) as consumer:
        for partition in (0, 1):
            producer.send("t", b"a", partition=partition).result()
        assert sorted(read(consumer, 2)) == [(0, b"a"), (1, b"a")]
        consumer.pause(OTHER)
        producer.send("t", b"b", partition=0).result()
        assert read(consumer, 1) == [(0, b"b")]
        if len(world.cores) == 1:
            assert not world.session_count()
        consumer.resume(OTHER)
        producer.send("t", b"b", partition=1).result()
        assert read(consumer, 1) == [(1, b"b")]
    if len(world.cores) == 1:
        heads = [(session > 0, epoch) for _, session, epoch, _ in world.fetches]
        assert heads[0] == (False, 0)
        ended = heads.index((True, -1))
        assert world.fetches[ended][3] == [0]
        assert (False, 0) in heads[ended:], "a new session for both"
        assert not world.session_count(), "the consumer ended it"


def test_answers_that_are_full_starve_no_partition(world: World) -> None:
    """Each answer has room for one batch (KIP-74): the partitions take turns."""
    with world.cluster.producer() as producer:
        for number in range(20):
            for partition in (0, 1):
                producer.send("t", b"%d" % number, partition=partition).result()
    with world.consumer(ONE, OTHER, fetch_max_bytes=1) as consumer:
        found = read(consumer, 20)
        assert {partition for partition, _ in found[:4]} == {0, 1}
        counts = [sum(partition == each for partition, _ in found) for each in (0, 1)]
        assert min(counts) >= 8
