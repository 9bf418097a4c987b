"""DescribeProducers: a partition's state of its idempotent producers."""

from __future__ import annotations

from typing import Any

from tests.apis.conftest import Client
from tests.golden.batches import BASE_TIMESTAMP, simple
from tests.golden.requests import produce
from wire.error_codes import ErrorCode
from wire.schemas.describe_producers import DescribeProducersRequest, TopicRequest


def describe(client: Client, topic: str, *indexes: int) -> list[Any]:
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=topic, partition_indexes=list(indexes))]
    )
    [answer] = client.call(request).topics
    assert answer.name == topic
    return list(answer.partitions)


def test_producers_of_a_partition(client: Client) -> None:
    topic = client.make_topic(partitions=2)
    for sequence in (0, 2):
        batch = simple(b"a", b"b", producer_id=9, producer_epoch=3, base_sequence=sequence)
        client.call(produce(topic, 9, batch), 9)
    client.call(produce(topic, 9, simple(b"plain")), 9)
    first, second = describe(client, topic[0], 0, 1)
    [producer] = first.active_producers
    assert (producer.producer_id, producer.producer_epoch) == (9, 3)
    assert (producer.last_sequence, producer.last_timestamp) == (3, BASE_TIMESTAMP)
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, -1)
    assert (second.error_code, second.active_producers) == (ErrorCode.NONE, [])


def test_what_does_not_exist(client: Client) -> None:
    topic = client.make_topic()
    [missing] = describe(client, topic[0], 9)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert missing.error_message is None
    [unknown] = describe(client, "nowhere", 0)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert unknown.error_message == "This server does not host this topic-partition."
    [illegal] = describe(client, "a b", 0)
    assert illegal.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert illegal.error_message.startswith("Topic name is invalid: 'a b' contains")
