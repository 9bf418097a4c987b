"""Calls of administrators, and their errors."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from embedlog.testing import Kafka, rec
from tests.testing.scenarios.clients import SECONDS, admin, failure, producer, reader, send, take

pytestmark = pytest.mark.interop
BROKERS = 3


@pytest.fixture
def by(kafka: Kafka) -> AdminClient:
    return admin(kafka)


def test_a_topic_grows(kafka: Kafka, topic: str, by: AdminClient) -> None:
    """`create_partitions` adds partitions, which take records."""
    by.create_partitions([NewPartitions(topic, 3)])[topic].result(SECONDS)
    assert send(producer(kafka), topic, [b"x"], partition=2) == ["offset 0"]


def test_partitions_get_the_brokers_that_are_asked_for(
    kafka: Kafka, topic: str, by: AdminClient
) -> None:
    """New partitions and new topics take an explicit assignment of replicas."""
    new = NewPartitions(topic, 2, replica_assignment=[[3, 1, 2]])
    by.create_partitions([new])[topic].result(SECONDS)
    assert kafka.partition(topic, 1).replicas == (3, 1, 2)
    other = NewTopic(f"{topic}-2", 2, replica_assignment=[[2, 1], [1, 3]])
    by.create_topics([other])[f"{topic}-2"].result(SECONDS)
    assert kafka.partition(f"{topic}-2", 0).replicas == (2, 1)


def test_a_topic_does_not_shrink(topic: str, by: AdminClient) -> None:
    """A number of partitions that is not larger is refused."""
    raised = failure(by.create_partitions([NewPartitions(topic, 1)])[topic].result, SECONDS)
    assert raised.name() == "INVALID_PARTITIONS"


def test_a_trial_changes_nothing(kafka: Kafka, topic: str, by: AdminClient) -> None:
    """With validate_only the cluster checks a call, and creates nothing."""
    by.create_partitions([NewPartitions(topic, 5)], validate_only=True)[topic].result(SECONDS)
    name = f"{topic}-2"
    by.create_topics([NewTopic(name, 1, 1)], validate_only=True)[name].result(SECONDS)
    topics = by.list_topics(timeout=SECONDS).topics
    assert len(topics[topic].partitions) == 1
    assert name not in topics


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"num_partitions": 1, "replication_factor": 9}, "INVALID_REPLICATION_FACTOR"),
        ({"num_partitions": 1, "config": {"no.such": "1"}}, "INVALID_CONFIG"),
        ({"num_partitions": 1, "config": {"retention.ms": "x"}}, "INVALID_CONFIG"),
    ],
)
def test_a_topic_that_cannot_be_is_refused(
    topic: str, by: AdminClient, settings: dict[str, Any], error: str
) -> None:
    """Each impossible wish has its error, and nothing is created."""
    name = f"{topic}-2"
    raised = failure(by.create_topics([NewTopic(name, **settings)])[name].result, SECONDS)
    assert raised.name() == error


def test_names_are_taken_once_and_deleted_once(topic: str, by: AdminClient) -> None:
    """A second topic of a name, and the deletion of an unknown topic, are refused."""
    made = by.create_topics([NewTopic(topic, 1)])[topic]
    assert failure(made.result, SECONDS).name() == "TOPIC_ALREADY_EXISTS"
    by.delete_topics([topic])[topic].result(SECONDS)
    again = by.delete_topics([topic])[topic]
    assert failure(again.result, SECONDS).name() == "UNKNOWN_TOPIC_OR_PART"


def test_a_topic_of_the_same_name_is_another_topic(kafka: Kafka, topic: str) -> None:
    """A topic is deleted and created again under a producer: records go to the new one."""
    to = producer(kafka, topic_metadata_refresh_interval_ms=50)
    assert send(to, topic, [b"old"]) == ["offset 0"]
    kafka.admin().delete_topics([topic])
    kafka.create_topic(topic, 1, replication_factor=3)
    send(to, topic, [b"new"])
    assert kafka.topic(topic).values() == [b"new"]


def test_settings_are_altered_and_read_back(topic: str, by: AdminClient) -> None:
    """Set, append, subtract and delete: each is seen by the next look."""

    def alter(kind: AlterConfigOpType, name: str, value: str | None) -> None:
        entry = ConfigEntry(name, value, incremental_operation=kind)
        resource = ConfigResource("topic", topic, incremental_configs=[entry])
        by.incremental_alter_configs([resource])[resource].result(SECONDS)

    def value(name: str) -> str:
        resource = ConfigResource("topic", topic)
        return str(by.describe_configs([resource])[resource].result(SECONDS)[name].value)

    alter(AlterConfigOpType.SET, "retention.ms", "1234567")
    assert value("retention.ms") == "1234567"
    alter(AlterConfigOpType.APPEND, "cleanup.policy", "compact")
    assert value("cleanup.policy") == "delete,compact"
    alter(AlterConfigOpType.SUBTRACT, "cleanup.policy", "delete")
    assert value("cleanup.policy") == "compact"
    alter(AlterConfigOpType.DELETE, "retention.ms", None)
    assert value("retention.ms") == "604800000"


def test_deleted_records_move_the_beginning(kafka: Kafka, topic: str, by: AdminClient) -> None:
    """`delete_records` returns the new beginning, and refuses offsets beyond the end."""
    kafka.topic(topic).put_many([b"%d" % number for number in range(5)])
    place = TopicPartition(topic, 0, 3)
    assert by.delete_records([place])[place].result(SECONDS).low_watermark == 3
    beyond = TopicPartition(topic, 0, 9)
    told = failure(by.delete_records([beyond])[beyond].result, SECONDS)
    assert told.name() == "OFFSET_OUT_OF_RANGE"
    assert take(reader(kafka, topic, offset=3), 2) == [b"3", b"4"]


@pytest.mark.parametrize("codec", [None, "gzip"])
def test_the_latest_time_is_found_in_the_middle_of_a_batch(
    kafka: Kafka, topic: str, by: AdminClient, codec: str | None
) -> None:
    """The offset of the largest timestamp, also if it is not the last record of its batch."""
    place = TopicPartition(topic, 0)

    def latest() -> int:
        found = by.list_offsets({place: OffsetSpec.max_timestamp()})
        return int(found[place].result(SECONDS).offset)

    assert latest() == -1
    now = kafka.cluster.runtime.clock.wall_ms()
    seeds = [rec(value=b"x", timestamp=now + each) for each in (0, 2_000, 1_000)]
    kafka.topic(topic).put_many(seeds, compression=codec)
    assert latest() == 1


def test_a_preferred_leader_is_elected(kafka: Kafka, topic: str, by: AdminClient) -> None:
    """After the preferred leader has come back, `elect_leaders` makes it lead again."""
    partition = kafka.partition(topic, 0)
    preferred = kafka.broker(partition.replicas[0])
    preferred.stop()
    assert partition.leader != preferred.node_id
    preferred.start()
    send(producer(kafka, acks="all"), topic, [b"x"])
    place = TopicPartition(topic, 0)
    for _ in range(100):
        result = by.elect_leaders(ElectionType.PREFERRED, [place]).result(SECONDS)
        error = result[place]
        if error is None or error.name() == "ELECTION_NOT_NEEDED":
            break
        send(producer(kafka), topic, [b"x"])  # the broker is not in sync yet
    assert partition.leader == preferred.node_id


def test_a_request_of_an_administrator_keeps_its_time_out(kafka: Kafka, by: AdminClient) -> None:
    """The controller does not answer: the call fails with its time-out."""
    by.list_topics(timeout=SECONDS)
    with kafka.hold("CreateTopics") as hold:
        made = by.create_topics([NewTopic("never", 1)], request_timeout=0.3)["never"]
        assert failure(made.result, SECONDS).name() == "_TIMED_OUT"
        hold.wait()


def test_a_controller_that_has_moved_is_told(kafka: Kafka, topic: str, by: AdminClient) -> None:
    """NOT_CONTROLLER for one call: the call fails with it, and the next call succeeds."""
    name = f"{topic}-2"
    with kafka.fault("CreateTopics", error="NOT_CONTROLLER"):
        made = by.create_topics([NewTopic(name, 1, 1)])[name]
        assert failure(made.result, SECONDS).name() == "NOT_CONTROLLER"
    by.create_topics([NewTopic(name, 1, 1)])[name].result(SECONDS)
