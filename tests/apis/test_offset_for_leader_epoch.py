"""OffsetForLeaderEpoch: the end of each epoch, and fencing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apis.conftest import Client
from tests.golden.batches import simple
from tests.golden.requests import Topic, produce
from wire.error_codes import ErrorCode
from wire.schemas.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

NONE = ErrorCode.NONE


def ask(
    client: Client, topic: Topic, epoch: int, version: int = 4, *, partition: int = 0, **how: Any
) -> EpochEndOffset:
    asked = OffsetForLeaderPartition(partition=partition, leader_epoch=epoch, **how)
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=topic[0], partitions=[asked])]
    )
    return client.call(request, version).topics[0].partitions[0]


def two_epochs(client: Client) -> Topic:
    """A log of two records of epoch 0 and one of epoch 2."""
    topic = client.make_topic()
    client.call(produce(topic, 9, simple(b"a", b"b")), 9)
    for _ in range(2):
        client.broker.controller.bump_leader_epochs([(topic[0], 0)])
    client.call(produce(topic, 9, simple(b"c")), 9)
    return topic


@pytest.mark.parametrize("version", range(5))
def test_the_end_of_each_epoch(client: Client, version: int) -> None:
    topic = two_epochs(client)
    # Epoch 1 has no records: epoch 2 began at the same offset and took its place.
    for epoch, known, end in [(0, 0, 2), (1, 0, 2), (2, 2, 3), (3, -1, -1), (-1, -1, -1)]:
        found = ask(client, topic, epoch, version)
        assert (found.error_code, found.end_offset) == (NONE, end), epoch
        if version >= 1:
            assert found.leader_epoch == known


def test_an_epoch_without_records_answers_an_earlier_one(client: Client) -> None:
    topic = client.make_topic()
    partition = client.broker.replica_manager.partition(topic[0], 0)
    client.call(produce(topic, 9, simple(b"a")), 9)
    with partition.lock:
        partition.leader_epoch = 5
        partition.log.epochs.assign(5)
    found = ask(client, topic, 3)
    assert (found.leader_epoch, found.end_offset) == (0, 1)


def test_an_empty_log_and_an_epoch_before_all(client: Client) -> None:
    topic = client.make_topic()
    assert ask(client, topic, 0).end_offset == 0
    before = ask(client, topic, -2)
    assert (before.leader_epoch, before.end_offset) == (-2, 0)


def test_the_clients_epoch_is_checked(client: Client) -> None:
    topic = two_epochs(client)
    for epoch, code in [
        (-1, NONE),
        (2, NONE),
        (1, ErrorCode.FENCED_LEADER_EPOCH),
        (-2, ErrorCode.FENCED_LEADER_EPOCH),
        (3, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ]:
        found = ask(client, topic, 0, current_leader_epoch=epoch)
        assert found.error_code == code, epoch
        if code:
            assert (found.leader_epoch, found.end_offset) == (-1, -1)


def test_unknown_partitions(client: Client) -> None:
    topic = client.make_topic()
    for found in (ask(client, topic, 0, partition=9), ask(client, ("nowhere", b""), 0)):
        assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (found.leader_epoch, found.end_offset) == (-1, -1)
