"""ListOffsets: ends, starts, times, and the special timestamps of each version."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apis.conftest import Client
from tests.golden.batches import simple
from tests.golden.requests import Topic, list_offsets, produce
from wire.error_codes import ErrorCode
from wire.records import build_batch
from wire.schemas.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from wire.schemas.list_offsets import ListOffsetsPartitionResponse

ONE_OFFSET = range(1, 12)
LATEST = 11
NONE = ErrorCode.NONE
LATEST_OFFSET, EARLIEST_OFFSET, MAX_TIMESTAMP = -1, -2, -3


def put(client: Client, topic: Topic, *timestamps: int) -> None:
    """Append one batch with a record for each timestamp."""
    batch = build_batch([b"v"] * len(timestamps), timestamps=list(timestamps))
    response = client.call(produce(topic, 9, batch), 9)
    assert response.responses[0].partition_responses[0].error_code == NONE


def find(
    client: Client, topic: Topic, timestamp: int, version: int = LATEST, **how: Any
) -> ListOffsetsPartitionResponse:
    """List the offset of one timestamp of one partition."""
    how.setdefault("replica_id", -1)
    response = client.call(list_offsets(topic[0], timestamp, **how), version)
    return response.topics[0].partitions[0]


def place(found: ListOffsetsPartitionResponse) -> tuple[int, int, int, int]:
    return found.error_code, found.timestamp, found.offset, found.leader_epoch


def trim(client: Client, topic: Topic, offset: int) -> None:
    """DeleteRecords below `offset`."""
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    client.call(
        DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic[0], partitions=[partition])], timeout_ms=1000
        )
    )


@pytest.mark.parametrize("version", ONE_OFFSET)
def test_both_ends_of_a_log(client: Client, version: int) -> None:
    topic = client.make_topic()
    epoch = 0 if version >= 4 else -1
    assert place(find(client, topic, LATEST_OFFSET, version)) == (NONE, -1, 0, epoch)
    assert place(find(client, topic, EARLIEST_OFFSET, version)) == (NONE, -1, 0, epoch)
    put(client, topic, 100, 200)
    put(client, topic, 300)
    assert place(find(client, topic, LATEST_OFFSET, version)) == (NONE, -1, 3, epoch)
    assert place(find(client, topic, EARLIEST_OFFSET, version)) == (NONE, -1, 0, epoch)
    trim(client, topic, 2)
    assert place(find(client, topic, EARLIEST_OFFSET, version)) == (NONE, -1, 2, epoch)


@pytest.mark.parametrize("version", [1, 4, 11])
def test_the_first_record_that_is_not_older(client: Client, version: int) -> None:
    topic = client.make_topic()
    put(client, topic, 100, 200)
    put(client, topic, 150, 300)
    for asked, timestamp, offset in [(0, 100, 0), (101, 200, 1), (201, 300, 3), (300, 300, 3)]:
        found = find(client, topic, asked, version)
        assert (found.timestamp, found.offset) == (timestamp, offset), asked
    assert place(find(client, topic, 301, version)) == (NONE, -1, -1, -1)


def test_deleted_records_are_not_found(client: Client) -> None:
    topic = client.make_topic()
    put(client, topic, 100, 200)
    put(client, topic, 300)
    trim(client, topic, 1)
    assert find(client, topic, 0).offset == 1


def test_the_largest_timestamp(client: Client) -> None:
    topic = client.make_topic()
    assert place(find(client, topic, MAX_TIMESTAMP)) == (NONE, -1, -1, -1)
    put(client, topic, 100, 500, 200)
    put(client, topic, 300)
    assert place(find(client, topic, MAX_TIMESTAMP)) == (NONE, 500, 1, 0)


def test_without_tiered_storage_nothing_is_tiered(client: Client) -> None:
    topic = client.make_topic()
    put(client, topic, 100)
    assert place(find(client, topic, -4)) == (NONE, -1, 0, 0)
    assert place(find(client, topic, -5)) == (NONE, -1, -1, -1)
    assert place(find(client, topic, -6)) == (NONE, -1, -1, -1)


@pytest.mark.parametrize(
    "timestamp, first", [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 99), (-100, 99)]
)
def test_special_timestamps_came_one_by_one(client: Client, timestamp: int, first: int) -> None:
    topic = client.make_topic()
    put(client, topic, 100)
    for version in ONE_OFFSET:
        found = find(client, topic, timestamp, version)
        expected = NONE if version >= first else ErrorCode.UNSUPPORTED_VERSION
        assert found.error_code == expected, version
        if expected:
            assert place(found)[1:] == (-1, -1, -1)


def test_leader_epochs_are_checked(client: Client) -> None:
    topic = client.make_topic()
    client.broker.controller.bump_leader_epochs([(topic[0], 0)])
    for epoch, code in [
        (-1, NONE),
        (1, NONE),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (-2, ErrorCode.FENCED_LEADER_EPOCH),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ]:
        assert find(client, topic, LATEST_OFFSET, epoch=epoch).error_code == code, epoch
    debugging = find(client, topic, LATEST_OFFSET, epoch=0, replica_id=-2)
    assert debugging.error_code == NONE


def test_errors_of_a_partition(client: Client) -> None:
    topic = client.make_topic()
    missing = find(client, topic, LATEST_OFFSET, partition=7)
    assert place(missing) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)
    nowhere = find(client, ("nowhere", b""), LATEST_OFFSET)
    assert nowhere.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_named_twice_is_an_error_answered_once(client: Client) -> None:
    topic = client.make_topic()
    response = client.call(list_offsets(topic[0], -1, -2, replica_id=-1), LATEST)
    [found] = response.topics[0].partitions
    assert found.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("level", [2, -1])
def test_an_isolation_level_that_does_not_exist(client: Client, level: int) -> None:
    topic = client.make_topic()
    found = find(client, topic, LATEST_OFFSET, isolation_level=level)
    assert found.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_isolation_bounds_the_end(client: Client) -> None:
    from embedlog.storage.validation.origin import AppendOrigin

    topic = client.make_topic()
    put(client, topic, 100)
    partition = client.broker.replica_manager.partition(topic[0], 0)
    client.broker.replica_manager.append(
        partition,
        simple(b"open", attributes=0x10, producer_id=9, producer_epoch=0, base_sequence=0),
        acks=1,
        origin=AppendOrigin.COORDINATOR,
    )
    assert find(client, topic, LATEST_OFFSET).offset == 2
    assert find(client, topic, LATEST_OFFSET, isolation_level=1).offset == 1
    assert find(client, topic, 101, isolation_level=1).offset == -1
    assert find(client, topic, 101).offset == 1


def test_version_0_lists_the_offsets_of_segments(client: Client) -> None:
    topic = client.make_topic()
    partition = client.broker.replica_manager.partition(topic[0], 0)
    for _ in range(3):
        with partition.lock:
            partition.log.roll()
        put(client, topic, 100)

    def listed(timestamp: int, count: int) -> list[int]:
        request = list_offsets(topic[0], timestamp, replica_id=-1)
        request.topics[0].partitions[0].max_num_offsets = count
        [found] = client.call(request, 0).topics[0].partitions
        assert found.error_code == NONE
        return found.old_style_offsets

    assert listed(-1, 10) == [3, 2, 1, 0]
    assert listed(-1, 1) == [3]
    assert listed(-2, 10) == [0]
    assert listed(-1, 0) == []
    assert listed(0, 10) == []
    assert listed(2**62, 2) == [3, 2]
