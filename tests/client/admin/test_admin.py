"""Topics, settings, records and brokers: each item has its own result or error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from embedlog import Admin, ConfigResource, Producer, ResourceType, TopicPartition, errors
from embedlog.client.admin.results import AlterOperation, OffsetSpec
from tests.client.admin.test_coordinators import NEWEST, Nodes
from tests.client.test_clients import eventually
from wire.api_keys import ApiKey
from wire.schemas import delete_records, metadata

Connect = Callable[[], Any]


def test_topics_have_their_own_errors(connect: Connect) -> None:
    with Admin(connect()) as admin:
        made = admin.create_topics({"mine": 2, "not/a name": 1, "none": 0})
        assert list(made.values) == ["mine"]
        assert isinstance(made.errors["not/a name"], errors.InvalidTopic)
        assert isinstance(made.errors["none"], errors.InvalidPartitions)
        assert isinstance(admin.create_topics(["mine"]).errors["mine"], errors.TopicAlreadyExists)

        grown = admin.create_partitions({"mine": 3, "absent": 2})
        assert list(grown.values) == ["mine"]
        assert isinstance(grown.errors["absent"], errors.UnknownTopicOrPartition)

        eventually(lambda: len(admin.describe_topics(["mine"])["mine"].partitions), 3)
        described = admin.describe_topics(["mine", "absent"])
        assert list(described.values) == ["mine"]
        assert isinstance(described.errors["absent"], errors.UnknownTopicOrPartition)

        deleted = admin.delete_topics(["mine", "absent"])
        assert list(deleted.values) == ["mine"]
        assert isinstance(deleted.errors["absent"], errors.UnknownTopicOrPartition)


def test_settings_have_their_own_errors(connect: Connect) -> None:
    topic = ConfigResource(ResourceType.TOPIC, "mine")
    absent = ConfigResource(ResourceType.TOPIC, "absent")
    stranger = ConfigResource(ResourceType.BROKER, "77")
    nobody = ConfigResource(ResourceType.BROKER, "seven")
    with Admin(connect()) as admin:
        admin.create_topics(["mine"]).check()
        eventually(lambda: list(admin.list_topics()), ["mine"])
        here = ConfigResource(ResourceType.BROKER, str(admin.describe_cluster().controller_id))
        described = admin.describe_configs([topic, absent, stranger, here, nobody])
        assert set(described.values) == {topic, here}
        assert "retention.ms" in described[topic]
        assert "log.retention.hours" in described[here]
        assert isinstance(described.errors[absent], errors.UnknownTopicOrPartition)
        assert isinstance(described.errors[stranger], errors.BrokerNotAvailable)
        assert isinstance(described.errors[nobody], errors.InvalidRequest)

        change = {"retention.ms": (AlterOperation.SET, 5)}
        altered = admin.incremental_alter_configs({topic: change, absent: change, stranger: change})
        assert list(altered.values) == [topic]
        assert isinstance(altered.errors[absent], errors.UnknownTopicOrPartition)
        assert isinstance(altered.errors[stranger], errors.BrokerNotAvailable)
        only = ["retention.ms"]
        eventually(lambda: admin.describe_configs([topic], names=only)[topic][only[0]].value, "5")


def test_records_and_offsets_have_their_own_errors(connect: Connect) -> None:
    here, beyond, absent = (TopicPartition(*key) for key in (("mine", 0), ("mine", 9), ("no", 0)))
    with Admin(connect()) as admin, Producer(connect()) as producer:
        admin.create_topics(["mine"]).check()
        producer.send_batch("mine", [b"v"] * 5).result(10)
        deleted = admin.delete_records({here: 3, beyond: 1, absent: 1}, timeout_ms=2_000)
        assert deleted.values == {here: 3}
        assert isinstance(deleted.errors[beyond], errors.UnknownTopicOrPartition)
        assert isinstance(deleted.errors[absent], errors.UnknownTopicOrPartition)
        assert isinstance(admin.delete_records({here: 9}).errors[here], errors.OffsetOutOfRange)
        first = admin.list_offsets({here: OffsetSpec.EARLIEST})[here]
        assert first is not None
        assert first.offset == 3


def test_directories_have_an_error_for_each_broker(connect: Connect) -> None:
    with Admin(connect()) as admin:
        node_id = admin.describe_cluster().controller_id
        found = admin.describe_log_dirs([node_id, 77])
        assert list(found.values) == [node_id]
        assert isinstance(found.errors[77], errors.BrokerNotAvailable)


def test_a_leader_that_fails_takes_only_its_own_partitions_along() -> None:
    def described(leader: int) -> Any:
        partitions = [
            metadata.MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=0),
            metadata.MetadataResponsePartition(partition_index=1, leader_id=leader, leader_epoch=1),
        ]
        topic = metadata.MetadataResponseTopic(name="t", topic_id=b"t" * 16, partitions=partitions)
        nodes = [
            metadata.MetadataResponseBroker(node_id=number, host="localhost", port=9091 + number)
            for number in (1, 2)
        ]
        return metadata.MetadataResponse(brokers=nodes, controller_id=1, topics=[topic])

    def deleted(request: Any) -> Any:
        (topic,) = request.topics
        results = [
            delete_records.DeleteRecordsPartitionResult(
                partition_index=each.partition_index, low_watermark=each.offset
            )
            for each in topic.partitions
        ]
        answered = delete_records.DeleteRecordsTopicResult(name="t", partitions=results)
        return delete_records.DeleteRecordsResponse(topics=[answered])

    nodes = Nodes({**NEWEST, ApiKey.DELETE_RECORDS: (0, 2)})
    nodes.script(metadata.MetadataRequest, described(2), described(1))
    nodes.script(
        delete_records.DeleteRecordsRequest, deleted, errors.error_for(13, "gone"), deleted
    )
    with Admin(nodes) as admin:
        assert admin.delete_records({("t", 0): 3, ("t", 1): 4}).check() == {
            ("t", 0): 3,
            ("t", 1): 4,
        }
    asked = [node for node, _ in nodes.of_kind(delete_records.DeleteRecordsRequest)]
    assert asked == [1, 2, 1]

    nodes = Nodes({**NEWEST, ApiKey.DELETE_RECORDS: (0, 2)})
    nodes.script(metadata.MetadataRequest, described(2))
    nodes.script(delete_records.DeleteRecordsRequest, deleted, errors.error_for(31, "not you"))
    with Admin(nodes) as admin:
        results = admin.delete_records({("t", 0): 3, ("t", 1): 4})
    assert results.values == {("t", 0): 3}
    assert isinstance(results.errors[TopicPartition("t", 1)], errors.ClusterAuthorizationFailed)
