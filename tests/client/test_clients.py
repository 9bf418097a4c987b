"""The same promises of producer, consumer and admin, over every transport."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embedlog
from embedlog import Admin, Consumer, Producer, TopicPartition, errors
from embedlog.client.admin.new_topics import NewTopic
from embedlog.client.admin.results import (
    AlterOperation,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

Connect = Callable[[], Any]
ROOT = Path(__file__).resolve().parent.parent.parent


def read(consumer: Consumer, count: int) -> list[Any]:
    """Poll until `count` records have come."""
    found: list[Any] = []
    while len(found) < count:
        records = list(consumer.poll(10_000))
        assert records, f"{len(found)} of {count} records"
        found += records
    return found


def test_records_come_back_as_they_were_sent(connect: Connect) -> None:
    with Admin(connect()) as admin:
        admin.create_topics([NewTopic("events", 2)]).check()
    with Producer(connect()) as producer:
        where = producer.send(
            "events", b"value", b"key", partition=1, timestamp_ms=1234, headers=[("a", b"b")]
        ).result()
        assert where[:4] == ("events", 1, 0, 1234)
        producer.send("events", None, partition=1).result()
    with Consumer(connect(), auto_offset_reset="earliest") as consumer:
        consumer.assign([("events", 0), ("events", 1)])
        first, second = read(consumer, 2)
        assert (first.topic, first.partition, first.offset) == ("events", 1, 0)
        assert (first.key, first.value, first.timestamp) == (b"key", b"value", 1234)
        assert list(first.headers) == [("a", b"b")]
        assert (first.timestamp_type, first.leader_epoch) == (0, 0)
        assert (second.offset, second.key, second.value) == (1, None, None)
        assert consumer.position(("events", 1)) == 2
        assert len(consumer.poll(0)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("linger_ms", [0, 5])
@pytest.mark.parametrize("idempotent", [False, True])
def test_many_records_keep_their_order(connect: Connect, linger_ms: int, idempotent: bool) -> None:
    with Producer(
        connect(), linger_ms=linger_ms, enable_idempotence=idempotent, batch_size=2000
    ) as producer:
        futures = [producer.send("many", b"%d" % number) for number in range(2000)]
        producer.flush(10)
        assert [future.result().offset for future in futures] == list(range(2000))
        producer.send_batch("many", [b"%d" % number for number in range(2000, 4000)]).result(10)
    with Consumer(connect(), auto_offset_reset="earliest", max_poll_records=333) as consumer:
        consumer.assign([("many", 0)])
        records = read(consumer, 4000)
    assert [record.value for record in records] == [b"%d" % number for number in range(4000)]
    assert [record.offset for record in records] == list(range(4000))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_come_back(connect: Connect, codec: str) -> None:
    values = [b"%d" % (number // 7) * 20 for number in range(500)]
    with Producer(connect(), compression_type=codec) as producer:
        producer.send_batch("packed", values).result(10)
    with Consumer(connect(), auto_offset_reset="earliest") as consumer:
        consumer.assign([("packed", 0)])
        assert [record.value for record in read(consumer, 500)] == values


def test_the_three_ways_to_read_agree(connect: Connect) -> None:
    keys = [None if number % 3 else b"%d" % number for number in range(700)]
    values = [None if number % 5 == 4 else b"x" * (number % 50) for number in range(700)]
    with Producer(connect()) as producer:
        producer.send_batch("ways", values, keys=keys, partition=0).result(10)
        for number in range(20):
            producer.send("ways", b"%d" % number, headers=[("n", b"1")], partition=0)
    with Consumer(connect(), auto_offset_reset="earliest") as consumer:
        consumer.assign([("ways", 0)])
        by_name = [
            (r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in read(consumer, 720)
        ]
        consumer.seek(("ways", 0), 0)
        by_batch: list[Any] = []
        while len(by_batch) < 720:
            for batch in consumer.poll_batches(10_000):
                by_batch += batch.records
        assert [(*record[:4], tuple(record[4])) for record in by_batch] == by_name
        consumer.seek(("ways", 0), 0)
        columns: list[Any] = []
        while len(columns) < 720:
            for found in consumer.poll_columns(10_000):
                assert found.topic_partition == ("ways", 0)
                columns += zip(
                    found.columns.offsets.tolist(),
                    found.columns.timestamps.tolist(),
                    found.columns.keys(),
                    found.columns.values(),
                    strict=True,
                )
        assert columns == [record[:4] for record in by_name]


def test_a_consumer_waits_for_what_comes(connect: Connect, cluster: embedlog.Cluster) -> None:
    with Producer(connect()) as producer, Consumer(connect()) as consumer:
        producer.send("later", b"before").result(10)
        consumer.assign([("later", 0)])
        assert len(consumer.poll(0)) == 0
        assert consumer.position(("later", 0)) == 1, "latest is the default"
        assert len(consumer.poll(1)) == 0
        producer.send("later", b"after").result(10)
        assert [record.value for record in read(consumer, 1)] == [b"after"]


@pytest.mark.slow
def test_seeking_and_positions(connect: Connect) -> None:
    here = TopicPartition("seek", 0)
    with Producer(connect()) as producer, Consumer(connect()) as consumer:
        producer.send_batch("seek", [b"%d" % number for number in range(100)]).result(10)
        consumer.assign([here])
        for offset in (50, 99, 0, 7):
            consumer.seek(here, offset)
            assert consumer.position(here) == offset
            assert read(consumer, 1)[0].offset == offset
        consumer.seek_to_end(here)
        assert consumer.position(here) == 100
        consumer.seek_to_beginning()
        assert consumer.position(here) == 0
        assert read(consumer, 100)[-1].value == b"99"
        assert consumer.current_lag(here) == 0


def test_offsets_by_time_and_at_the_edges(connect: Connect) -> None:
    with Producer(connect()) as producer, Consumer(connect()) as consumer:
        for number in range(5):
            producer.send("times", b"v", timestamp_ms=1000 + 10 * number).result(10)
        here = TopicPartition("times", 0)
        assert consumer.beginning_offsets([here]) == {here: 0}
        assert consumer.end_offsets([here]) == {here: 5}
        found = consumer.offsets_for_times({here: 1015})
        assert found[here] is not None
        assert (found[here].offset, found[here].timestamp) == (2, 1020)
        assert consumer.offsets_for_times({here: 5000}) == {here: None}
        with pytest.raises(ValueError, match="negative"):
            consumer.offsets_for_times({here: -1})
        # In process the first answer is final; over a network somebody may add the partition.
        with pytest.raises(embedlog.EmbedlogError, match="times-7") as refused:
            consumer.end_offsets([("times", 7)], timeout_ms=50)
        is_final = isinstance(refused.value, errors.UnknownTopicOrPartition)
        assert is_final == isinstance(connect(), embedlog.Cluster), refused.value
        assert "has 1 partitions" in str(refused.value)


def test_paused_partitions_keep_what_was_fetched(connect: Connect) -> None:
    with Admin(connect()) as admin:
        admin.create_topics([NewTopic("pause", 2)]).check()
    with (
        Producer(connect()) as producer,
        Consumer(connect(), auto_offset_reset="earliest", max_poll_records=1) as consumer,
    ):
        for partition in range(2):
            producer.send_batch("pause", [b"a", b"b"], partition=partition).result(10)
        consumer.assign([("pause", 0), ("pause", 1)])
        first = read(consumer, 1)[0]
        held = TopicPartition("pause", first.partition)
        consumer.pause(held)
        assert consumer.paused() == {held}
        assert {record.partition for record in read(consumer, 2)} == {1 - first.partition}
        consumer.resume(held)
        assert [(r.partition, r.offset) for r in read(consumer, 1)] == [(first.partition, 1)]


@pytest.mark.slow
def test_an_offset_out_of_range_follows_the_policy(connect: Connect) -> None:
    here = TopicPartition("range", 0)
    with Producer(connect()) as producer:
        producer.send_batch("range", [b"a", b"b", b"c"]).result(10)
    for policy in ("earliest", "by_duration:PT1H"):
        with Consumer(connect(), auto_offset_reset=policy) as consumer:
            consumer.assign([here])
            consumer.seek(here, 100)
            assert [record.offset for record in read(consumer, 3)] == [0, 1, 2]
    with Consumer(connect(), auto_offset_reset="latest") as consumer:
        consumer.assign([here])
        consumer.seek(here, 100)
        for _ in range(100):
            assert not consumer.poll(100)
            if consumer.position(here) != 100:
                break
        assert consumer.position(here) == 3
    with Consumer(connect(), auto_offset_reset="none") as consumer:
        consumer.assign([here])
        consumer.seek(here, 100)
        with pytest.raises(errors.OffsetOutOfRange, match="offset 100 of range-0"):
            consumer.poll(10_000)
        consumer.seek(here, 2)
        assert read(consumer, 1)[0].value == b"c"


def test_deleted_records_move_a_reader_on(connect: Connect) -> None:
    here = TopicPartition("gone", 0)
    with Producer(connect()) as producer, Admin(connect()) as admin:
        producer.send_batch("gone", [b"%d" % number for number in range(10)]).result(10)
        assert admin.delete_records({here: 4}).check() == {here: 4}
        assert admin.delete_records({here: 99}).errors[here].code == 1
    with Consumer(connect(), auto_offset_reset="earliest") as consumer:
        consumer.assign([here])
        consumer.seek(here, 1)
        assert read(consumer, 6)[0].offset == 4


def eventually(read: Callable[[], object], wanted: object) -> None:
    """Repeat the call until the answer is there: Kafka's brokers learn of a change after its
    answer."""
    for _ in range(1000):
        if read() == wanted:
            return
    assert read() == wanted


def test_topics_are_made_described_grown_and_deleted(connect: Connect) -> None:
    with Admin(connect()) as admin:
        made = admin.create_topics([NewTopic("a", 3, configs={"retention.ms": 5000}), "bad name"])
        assert made["a"].partition_count == 3
        assert made["a"].configs["retention.ms"] == "5000"
        with pytest.raises(errors.InvalidTopic):
            made["bad name"]
        again = admin.create_topics(["a", "b"], validate_only=True)
        assert isinstance(again.errors["a"], errors.TopicAlreadyExists)
        assert "b" in again.values
        eventually(lambda: list(admin.list_topics()), ["a"])
        described = admin.describe_topics(["a", "b"])
        assert [each.leader for each in described["a"].partitions] == [1, 1, 1]
        assert isinstance(described.errors["b"], errors.UnknownTopicOrPartition)
        assert admin.create_partitions({"a": 5}).check() == {"a": None}
        eventually(lambda: len(admin.describe_topics(["a"])["a"].partitions), 5)
        assert isinstance(admin.create_partitions({"a": 1}).errors["a"], errors.InvalidPartitions)
        topic_id = described["a"].topic_id
        gone = admin.delete_topics(["a", "b"])
        assert gone.values == {"a": None}
        assert isinstance(gone.errors["b"], errors.UnknownTopicOrPartition)
        eventually(admin.list_topics, {})
        assert isinstance(admin.delete_topics([topic_id]).errors[topic_id], errors.UnknownTopicId)


def test_settings_are_described_and_altered(connect: Connect) -> None:
    topic = ConfigResource(ResourceType.TOPIC, "set")
    missing = ConfigResource(ResourceType.TOPIC, "missing")
    with Admin(connect()) as admin:

        def retention() -> str | None:
            return admin.describe_configs([topic])[topic]["retention.ms"].value

        admin.create_topics(["set"]).check()
        eventually(lambda: list(admin.describe_configs([topic]).values), [topic])
        by_default = retention()
        described = admin.describe_configs([topic, missing], include_synonyms=True)
        assert described[topic]["retention.ms"].is_default
        assert isinstance(described.errors[missing], errors.UnknownTopicOrPartition)
        changes = {
            "retention.ms": (AlterOperation.SET, 7000),
            "cleanup.policy": (AlterOperation.APPEND, "compact"),
        }
        admin.incremental_alter_configs({topic: changes}).check()
        eventually(retention, "7000")
        entries = admin.describe_configs([topic], names=["retention.ms", "cleanup.policy"])[topic]
        assert entries["cleanup.policy"].value == "delete,compact"
        assert set(entries) == {"retention.ms", "cleanup.policy"}
        admin.alter_configs({topic: {"segment.bytes": 1 << 20}}).check()
        eventually(retention, by_default)
        entries = admin.describe_configs([topic])[topic]
        assert entries["retention.ms"].is_default
        assert entries["segment.bytes"].value == str(1 << 20)
        refused = admin.alter_configs({topic: {"segment.bytes": -7}})
        assert isinstance(refused.errors[topic], errors.InvalidConfig)


def test_the_cluster_its_directories_and_offsets(connect: Connect) -> None:
    here = TopicPartition("dirs", 0)
    with Admin(connect()) as admin, Producer(connect()) as producer:
        producer.send_batch("dirs", [b"x" * 100] * 10).result(10)
        cluster = admin.describe_cluster()
        assert cluster.controller_id in cluster.nodes
        (directory,) = admin.describe_log_dirs()[cluster.controller_id].values()
        assert directory.error is None
        assert directory.replicas[here].size > 1000
        found = admin.list_offsets({here: OffsetSpec.LATEST})
        assert found[here] is not None
        assert found[here].offset == 10
        with pytest.raises(errors.BrokerNotAvailable):
            admin.describe_log_dirs([77])[77]


def test_read_committed_reads_what_is_committed(connect: Connect) -> None:
    with (
        Producer(connect()) as producer,
        Consumer(
            connect(), auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer,
    ):
        producer.send_batch("plain", [b"a", b"b"]).result(10)
        consumer.assign([("plain", 0)])
        assert [record.value for record in read(consumer, 2)] == [b"a", b"b"]


def test_topics_and_partitions_are_looked_up(connect: Connect) -> None:
    with Admin(connect()) as admin:
        admin.create_topics([NewTopic("look", 2)]).check()
    with Consumer(connect(), allow_auto_create_topics=False) as consumer:
        eventually(lambda: [each.partition for each in consumer.partitions_for("look")], [0, 1])
        assert consumer.partitions_for("missing") == []
        assert "look" in consumer.list_topics()
        with pytest.raises(errors.InvalidTopic):
            consumer.partitions_for("bad name")
    with Producer(connect()) as producer:
        assert len(producer.partitions_for("look")) == 2


def test_a_record_above_the_topics_limit_is_refused(connect: Connect) -> None:
    with Admin(connect()) as admin:
        admin.create_topics([NewTopic("small", 1, configs={"max.message.bytes": 500})]).check()
    with Producer(connect()) as producer:
        with pytest.raises(errors.MessageTooLarge):
            producer.send("small", bytes(600)).result(10)
        # A batch of small records is cut until its parts fit.
        assert producer.send_batch("small", [bytes(100)] * 50).result(10)[-1].offset > 0
    with Consumer(connect(), auto_offset_reset="earliest") as consumer:
        consumer.assign([("small", 0)])
        assert len(read(consumer, 50)) == 50


_RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=40),
        st.none() | st.sampled_from([b"", b"a", b"bb", b"ccc"]),
        st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2),
        st.integers(0, 2**40),
        st.none() | st.integers(0, 2),
        st.booleans(),
    ),
    min_size=1,
    max_size=60,
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(records=_RECORDS, batch_size=st.sampled_from([0, 200, 65536]), idempotent=st.booleans())
def test_whatever_is_sent_comes_back_in_order(
    records: list[Any], batch_size: int, idempotent: bool
) -> None:
    expected: dict[int, list[Any]] = {}
    with embedlog.open(num_partitions=3) as cluster:
        with cluster.producer(batch_size=batch_size, enable_idempotence=idempotent) as producer:
            futures = []
            for value, key, headers, stamp, partition, flushes in records:
                futures.append(
                    producer.send(
                        "any",
                        value,
                        key,
                        headers=headers,
                        timestamp_ms=stamp,
                        partition=partition,
                    )
                )
                if flushes:
                    producer.flush()
        for future, (value, key, headers, stamp, partition, _) in zip(
            futures, records, strict=True
        ):
            where = future.result()
            assert partition is None or where.partition == partition
            mine = expected.setdefault(where.partition, [])
            assert where.offset == len(mine)
            mine.append((where.offset, stamp, key, value, tuple(headers)))
        with cluster.consumer(auto_offset_reset="earliest", max_poll_records=7) as consumer:
            consumer.assign([("any", partition) for partition in range(3)])
            found: dict[int, list[Any]] = {}
            for record in read(consumer, len(records)):
                found.setdefault(record.partition, []).append(
                    (record.offset, record.timestamp, record.key, record.value)
                    + (tuple(record.headers),)
                )
    assert found == expected


def test_producing_and_consuming_in_process_loads_nothing_heavy() -> None:
    script = """
import sys
before = set(sys.modules)
import embedlog
with embedlog.open() as cluster, cluster.producer() as producer:
    producer.send("events", b"value").result()
    with cluster.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([("events", 0)])
        assert len(consumer.poll(1000)) == 1
heavy = {"numpy", "socket", "selectors", "typing", "dataclasses", "enum", "logging", "re"}
assert not heavy & (set(sys.modules) - before), heavy & (set(sys.modules) - before)
"""
    paths = f"import sys; sys.path[:0] = {[str(ROOT), *sys.path]!r}\n"
    subprocess.run([sys.executable, "-S", "-c", paths + script], check=True)


def test_clients_say_how_they_are(cluster: embedlog.Cluster) -> None:
    cluster.create_topic("said", 2)
    with cluster.consumer(group_id="g", client_id="reader") as consumer:
        consumer.assign([("said", 0), ("said", 1)])
        assert repr(consumer) == "<Consumer 'reader' of group 'g', 2 partitions>"
    assert repr(consumer) == "<Consumer 'reader' of group 'g', closed>"
    with cluster.producer(client_id="writer", linger_ms=10_000) as producer:
        producer.send("said", b"v", partition=0)
        assert repr(producer) == "<Producer 'writer', 1 batches on their way>"
    assert repr(producer) == "<Producer 'writer', closed>"
    with cluster.admin() as admin:
        assert repr(admin) == "<Admin ''>"
    assert repr(admin) == "<Admin '', closed>"
