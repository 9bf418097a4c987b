"""Saved states: their content, restore, reset, fork, files on disk, and clients of before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

import embedlog
from embedlog.errors import ClosedError, ConfigError
from embedlog.testing import Kafka


def values(kafka: Kafka, topic: str = "t", **settings: object) -> list[bytes | None]:
    """Return the values of a topic's records, read from the beginning."""
    with kafka.cluster.consumer(auto_offset_reset="earliest", **settings) as consumer:
        count = len(kafka.broker(first(kafka)).core.image.topics_by_name[topic].partitions)
        consumer.assign([(topic, each) for each in range(count)])
        found: list[bytes | None] = []
        while records := consumer.poll(200):
            found += [each.value for each in records]
        return sorted(found, key=str)


def first(kafka: Kafka) -> int:
    return kafka.brokers[0].node_id


def send(kafka: Kafka, *sent: bytes, topic: str = "t") -> None:
    with kafka.cluster.producer() as producer:
        for each in sent:
            producer.send(topic, each).result()


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.slow)])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with Kafka(brokers=request.param, topics={"t": 2}) as made:
        yield made


@pytest.mark.slow
def test_restore_brings_records_topics_and_settings_back(kafka: Kafka) -> None:
    send(kafka, b"a", b"b")
    kafka.create_topic("kept", 1, config={"retention.ms": 1234})
    saved = kafka.snapshot()
    send(kafka, b"c")
    kafka.create_topic("gone", 1)
    with kafka.cluster.admin() as admin:
        admin.delete_topics(["kept"]).check()
    kafka.restore(saved)
    assert values(kafka) == [b"a", b"b"]
    assert kafka.cluster.topics == ["kept", "t"]
    with kafka.cluster.admin() as admin:
        assert admin.describe_topics(["kept"])["kept"]
    send(kafka, b"d")
    assert values(kafka) == [b"a", b"b", b"d"]


@pytest.mark.slow
def test_a_snapshot_can_be_restored_again_and_again(kafka: Kafka) -> None:
    send(kafka, b"a")
    saved = kafka.snapshot()
    for number in range(3):
        send(kafka, b"b%d" % number)
        kafka.restore(saved)
        assert values(kafka) == [b"a"]
    kafka.restore(kafka.snapshot())
    assert values(kafka) == [b"a"]


def test_restore_brings_groups_and_their_offsets_back(kafka: Kafka) -> None:
    send(kafka, b"a", b"b")
    with kafka.cluster.consumer(group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0)])
        consumer.commit({("t", 0): 1})
    saved = kafka.snapshot()
    with kafka.cluster.consumer(group_id="g") as consumer:
        consumer.commit({("t", 0): 2})
    kafka.restore(saved)
    with kafka.cluster.consumer(group_id="g") as consumer:
        assert consumer.committed([("t", 0)])[("t", 0)].offset == 1


def test_restore_brings_an_open_transaction_back(kafka: Kafka) -> None:
    producer = kafka.cluster.producer(transactional_id="tx")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"open").result()
    saved = kafka.snapshot()
    producer.commit_transaction()
    assert values(kafka, isolation_level="read_committed") == [b"open"]
    kafka.restore(saved)
    assert values(kafka, isolation_level="read_committed") == []
    assert kafka.clock.expire_transactions() == ["tx"]
    send(kafka, b"after")
    assert values(kafka, isolation_level="read_committed") == [b"after"]


def test_a_restored_cluster_keeps_its_addresses(kafka: Kafka) -> None:
    address, saved = kafka.bootstrap_servers, kafka.snapshot()
    kafka.restore(saved)
    assert kafka.bootstrap_servers == address
    with embedlog.Producer(address) as producer:
        producer.send("t", b"x").result()
    assert values(kafka) == [b"x"]
    kafka.reset()
    assert kafka.bootstrap_servers == address


def test_clients_and_handles_of_before_are_closed(kafka: Kafka) -> None:
    saved, before = kafka.snapshot(), kafka.cluster
    producer, consumer, admin = kafka.producer(), kafka.consumer(), kafka.admin()
    producer.send("t", b"x").result()
    kafka.restore(saved)
    assert kafka.cluster is not before
    for call in (
        lambda: producer.send("t", b"x").result(),
        lambda: consumer.assign([("t", 0)]) or consumer.poll(100),
        lambda: admin.describe_topics(["t"])["t"],
        lambda: before.topics,
    ):
        with pytest.raises(ClosedError):
            call()
    assert values(kafka) == []


def test_epochs_and_producer_ids_of_a_restored_cluster_are_new(kafka: Kafka) -> None:
    saved = kafka.snapshot()
    send(kafka, b"a")
    with kafka.cluster.producer(transactional_id="tx") as producer:
        producer.init_transactions()
    image = kafka.broker(first(kafka)).core.controller.image
    epoch, next_id = image.partition("t", 0), image.next_producer_id
    with kafka.cluster.producer() as producer:
        producer.send("t", b"b", partition=0).result()
    assert next_id > 0
    kafka.restore(saved)
    restored = kafka.broker(first(kafka)).core.controller.image
    assert restored.next_producer_id >= next_id
    assert epoch is not None
    found = restored.partition("t", 0)
    assert found is not None
    assert found.leader_epoch > epoch.leader_epoch


def test_reset_brings_the_shape_back(kafka: Kafka) -> None:
    send(kafka, b"a")
    kafka.create_topic("more", 1)
    cluster_id = kafka.cluster.cluster_id
    kafka.reset()
    assert kafka.cluster.topics == ["t"]
    assert values(kafka) == []
    assert kafka.cluster.cluster_id == cluster_id
    send(kafka, b"b")
    assert values(kafka) == [b"b"]


@pytest.mark.parametrize(("instant", "size"), [(True, 2 << 20), (False, 100 << 20)])
def test_a_reset_keeps_the_defaults(instant: bool, size: int) -> None:
    with Kafka(instant=instant) as kafka:
        assert kafka.cluster.config.offsets_topic_segment_bytes == size
        kafka.reset()
        assert kafka.cluster.config.offsets_topic_segment_bytes == size


def test_a_fork_and_its_origin_change_independently(kafka: Kafka) -> None:
    send(kafka, b"a")
    with kafka.fork() as other:
        assert other.bootstrap_servers != kafka.bootstrap_servers
        send(other, b"fork")
        send(kafka, b"origin")
        assert values(other) == [b"a", b"fork"]
        assert values(kafka) == [b"a", b"origin"]
        other.reset()
        assert values(other) == [b"a"]


def test_a_saved_state_opens_from_disk(kafka: Kafka, tmp_path: Path) -> None:
    send(kafka, *(b"%d" % each * 50_000 for each in range(5)))
    kafka.create_topic("empty", 3)
    path = kafka.snapshot().save(tmp_path / "state")
    with embedlog.open(path) as cluster:
        assert cluster.topics == ["empty", "t"]
        assert cluster.health() == []
        assert all(each.directory.clean for each in cluster.log_managers())
        assert len(cluster.brokers) == len(kafka.brokers)
    with Kafka.load(path) as loaded:
        assert values(loaded) == values(kafka)
        send(loaded, b"x")
    with pytest.raises(ConfigError, match="name a new directory"):
        kafka.snapshot().save(path)


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_only_a_state_can_be_loaded(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="expected a directory with the state"):
        Kafka.load(tmp_path / name)


def test_a_cluster_on_disk_has_no_snapshots(tmp_path: Path) -> None:
    with Kafka() as other, Kafka(path=str(tmp_path / "data")) as kafka:
        saved = other.snapshot()
        for call in (kafka.snapshot, kafka.reset, kafka.fork, lambda: kafka.restore(saved)):
            with pytest.raises(ConfigError, match="memory"):
                call()


def test_a_state_of_another_clock_is_refused() -> None:
    with Kafka(clock="manual") as manual, Kafka() as real:
        saved = manual.snapshot()
        with pytest.raises(ConfigError, match="clock='manual'"):
            real.restore(saved)


@pytest.mark.slow
def test_restore_brings_the_clock_back() -> None:
    with Kafka(clock="manual", topics={"t": 1}) as kafka:
        kafka.clock.jump(hours=1)
        saved, before = kafka.snapshot(), kafka.clock.now()
        kafka.clock.jump(days=9)
        kafka.restore(saved)
        assert (kafka.clock.now() - before).total_seconds() < 600
        kafka.clock.jump(hours=1)  # the restored cluster's clock moves as well
        assert 3600 <= (kafka.clock.now() - before).total_seconds() < 4200


def test_time_leaps_after_a_restore() -> None:
    with Kafka(clock="auto", topics={"t": 1}) as kafka:
        kafka.restore(kafka.snapshot())
        consumer = kafka.consumer()
        consumer.assign([("t", 0)])
        before = kafka.clock.now()
        consumer.poll(10_000)
        assert (kafka.clock.now() - before).total_seconds() > 9


def test_a_stopped_broker_is_stopped_after_a_restore() -> None:
    with Kafka(brokers=2, topics={"t": {"partitions": 2, "replication_factor": 2}}) as kafka:
        kafka.broker(2).stop()
        saved = kafka.snapshot()
        kafka.broker(2).start()
        kafka.restore(saved)
        assert [each.is_running for each in kafka.brokers] == [True, False]
        kafka.broker(2).start()
        send(kafka, b"x")


def test_a_snapshot_of_a_busy_cluster_is_whole() -> None:
    """Two topics get each record in turn: a state has at most one more in the first."""
    with Kafka(topics={"a": 1, "b": 1}) as kafka:
        stop, sent = Event(), []

        def produce() -> None:
            with kafka.cluster.producer() as producer:
                while not stop.is_set():
                    sent.append(producer.send("a", b"x", partition=0).result())
                    producer.send("b", b"x", partition=0).result()

        thread = Thread(target=produce)
        thread.start()
        try:
            while not sent:
                pass
            states = [kafka.snapshot() for _ in range(20)]
        finally:
            stop.set()
            thread.join()
        for saved in states:
            ends = [saved.ends[topic, 0] for topic in ("a", "b")]  # type: ignore[index]
            assert ends[0] - ends[1] in (0, 1)
        with Kafka(saved=states[-1]) as other:
            assert len(values(other, "a")) - len(values(other, "b")) in (0, 1)
            assert other.cluster.health() == []


@pytest.mark.slow
def test_compacted_and_aborted_records_stay_away_after_a_restore() -> None:
    topics = {"t": {"partitions": 1, "config": {"cleanup.policy": "compact"}}}
    topics["t"]["config"]["segment.bytes"] = 1 << 20
    with Kafka(topics=topics, config={"log.cleaner.backoff.ms": 1}) as kafka:
        with kafka.cluster.producer() as producer:
            for each in range(20):
                producer.send("t", b"%d" % each * 100_000, key=b"k").result()
        kafka.cluster.create_topic("u", 1)
        producer = kafka.cluster.producer(transactional_id="tx")
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("u", b"aborted" * 20_000).result()
        producer.abort_transaction()
        send(kafka, b"plain", topic="u")
        kafka.maintain()
        expected = values(kafka)
        assert len(expected) < 20
        kafka.restore(kafka.snapshot())
        assert values(kafka) == expected
        assert values(kafka, "u", isolation_level="read_committed") == [b"plain"]
        assert kafka.cluster.health() == []
