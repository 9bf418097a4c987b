"""DeleteRecords: which records may be deleted, and the answers."""

from __future__ import annotations

import pytest

from tests.apis.conftest import Client
from tests.golden.batches import simple
from tests.golden.requests import Topic, produce
from wire.error_codes import ErrorCode
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

NONE = ErrorCode.NONE


def delete(
    client: Client, topic: Topic, offset: int, version: int = 2, *,
    partition: int = 0, timeout_ms: int = 1000,
) -> tuple[int, int]:  # fmt: skip
    """Delete; return (error code, low watermark)."""
    asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic[0], partitions=[asked])], timeout_ms=timeout_ms
    )
    found = client.call(request, version).topics[0].partitions[0]
    assert found.partition_index == partition
    return found.error_code, found.low_watermark


def filled(client: Client, **configs: object) -> Topic:
    """A topic with three records."""
    topic = client.make_topic(**configs)
    client.call(produce(topic, 9, simple(b"a", b"b", b"c", key=b"k")), 9)
    return topic


@pytest.mark.parametrize("version", range(3))
def test_records_below_an_offset_go(client: Client, version: int) -> None:
    topic = filled(client)
    assert delete(client, topic, 0, version) == (NONE, 0)
    assert delete(client, topic, 2, version) == (NONE, 2)
    assert delete(client, topic, 1, version) == (NONE, 2)
    assert delete(client, topic, -1, version) == (NONE, 3)


@pytest.mark.parametrize("offset", [4, -2, 2**60])
def test_offsets_that_are_not_there(client: Client, offset: int) -> None:
    topic = filled(client)
    assert delete(client, topic, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete(client, topic, 0) == (NONE, 0)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_no_time_to_wait_is_no_error(client: Client, timeout_ms: int) -> None:
    topic = filled(client)
    assert delete(client, topic, 2, timeout_ms=timeout_ms) == (NONE, 2)


def test_compacted_topics_keep_their_records_unless_they_delete_too(client: Client) -> None:
    compacted = filled(client, cleanup_policy="compact")
    assert delete(client, compacted, 1) == (ErrorCode.POLICY_VIOLATION, -1)
    both = filled(client, cleanup_policy="compact,delete")
    assert delete(client, both, 1) == (NONE, 1)


def test_internal_and_unknown_topics(client: Client) -> None:
    made = client.cluster.create_topic("__consumer_offsets", 1)
    internal = delete(client, (made.name, made.topic_id), 0)
    assert internal == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(client, (made.name, made.topic_id), 0, partition=9) == unknown
    assert delete(client, ("nowhere", b""), 0) == unknown
    assert delete(client, filled(client), 0, partition=9) == unknown
