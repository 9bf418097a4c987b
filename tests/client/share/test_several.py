"""A share consumer on three brokers of Apache Kafka or of embedlog, which die one by one."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import embedlog
from embedlog import Admin, NewTopic, ShareConsumer
from tests.client.several_brokers import Brokers
from tests.client.share.places import EXPLICIT, WAIT_MS, Place
from tests.client.test_several_own_brokers import OwnBrokers
from tests.support.kafka_cluster import KafkaCluster, kafka_cluster

pytestmark = pytest.mark.slow

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "1",
    "broker.heartbeat.interval.ms": "250",
    "broker.session.timeout.ms": "1500",
    "controller.quorum.election.timeout.ms": "400",
    "controller.quorum.fetch.timeout.ms": "1000",
}
LONG_S = 60


@pytest.fixture(scope="module")
def of_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with kafka_cluster(tmp_path_factory.mktemp("kafka"), settings=SETTINGS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def of_ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnBrokers]:
    folder = tmp_path_factory.mktemp("brokers")
    own = {**SETTINGS, "controller.quorum.voters": "1@127.0.0.1:9093"}
    with embedlog.open(folder, brokers=3, config=own) as cluster:
        yield OwnBrokers(cluster)


@pytest.fixture(params=[pytest.param("of_kafka", marks=pytest.mark.interop), "of_ours"])
def brokers(request: pytest.FixtureRequest) -> Brokers:
    made: Brokers = request.getfixturevalue(request.param)
    return made


def place_on(brokers: Brokers, partitions: int) -> Place:
    place = Place(lambda: brokers.bootstrap, 1)
    place.topic += "-replicated"
    with Admin(brokers.bootstrap) as admin:
        admin.create_topics([NewTopic(place.topic, partitions, replication_factor=3)]).check()
    return place


def read_all(consumer: ShareConsumer, wanted: set[bytes]) -> dict[bytes, int]:
    """Poll until all values have come and were accepted; return how often each came."""
    seen: dict[bytes, int] = {}
    accepted: set[bytes] = set()
    deadline = time.monotonic() + LONG_S
    while not wanted <= accepted and time.monotonic() < deadline:
        records = list(consumer.poll(1_000))
        for record in records:
            seen[record.value] = seen.get(record.value, 0) + 1
            consumer.acknowledge(record)
        results = consumer.commit_sync()
        accepted |= {
            record.value
            for record in records
            if results.get(record_place(record)) is None and record_place(record) in results
        }
    assert wanted <= accepted, wanted - accepted
    return seen


def record_place(record: object) -> tuple[str, int]:
    return record.topic, record.partition  # type: ignore[attr-defined]


def values(prefix: str, partitions: int) -> dict[int, list[bytes]]:
    return {
        number: [b"%s-%d-%d" % (prefix.encode(), number, each) for each in range(5)]
        for number in range(partitions)
    }


@pytest.mark.parametrize("mode", ["batch_optimized", "record_limit"])
def test_partitions_of_all_brokers_are_read(brokers: Brokers, mode: str) -> None:
    place = place_on(brokers, 6)
    written = values("a", 6)
    for number, each in written.items():
        place.fill(*each, partition=number)
    with place.consumer(EXPLICIT, share_acquire_mode=mode) as consumer:
        seen = read_all(consumer, {value for each in written.values() for value in each})
        assert set(seen.values()) == {1}


def test_every_record_is_delivered_although_each_broker_dies_in_turn(
    brokers: Brokers,
) -> None:
    place = place_on(brokers, 3)
    with place.consumer(EXPLICIT, request_timeout_ms=5_000) as consumer:
        for node_id in (1, 2, 3):
            written = values(f"before-{node_id}", 3)
            for number, each in written.items():
                place.fill(*each, partition=number)
            records = consumer.poll(WAIT_MS)
            brokers.kill(node_id)
            try:
                for record in records:
                    consumer.acknowledge(record)
                more = values(f"after-{node_id}", 3)
                for number, each in more.items():
                    place.fill(*each, partition=number)
                results = consumer.commit_sync()
                taken = {
                    record.value
                    for record in records
                    if results.get(record_place(record), record) is None
                }
                wanted = {value for each in (*written.values(), *more.values()) for value in each}
                read_all(consumer, wanted - taken)
            finally:
                brokers.restart(node_id)
