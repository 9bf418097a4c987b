"""Batches and partitions that do not belong to a transaction, by version and setting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog.broker import topics
from embedlog.runtime.pending import Pending
from embedlog.topic_names import OFFSETS_TOPIC
from tests.coordinator.transaction.world import TOPIC, World
from wire.error_codes import ErrorCode
from wire.records import build_batch
from wire.schemas.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.schemas.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.cluster.close()


def batch(producer: tuple[int, int]) -> bytes:
    producer_id, epoch = producer
    return build_batch(
        [b"x"],
        timestamps=1,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )


def produce(world: World, *batches: bytes, version: int = 12) -> list[int]:
    """Send a batch to each partition from 0 on; return the error codes."""
    data = [PartitionProduceData(index=n, records=each) for n, each in enumerate(batches)]
    request = ProduceRequest(
        transactional_id="t",
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=data)],
    )
    (topic,) = world.ask(request, version).responses
    return [each.error_code for each in topic.partition_responses]


@pytest.mark.parametrize(
    ("version", "code"),
    [(10, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE), (12, 0)],
)
def test_a_batch_for_a_partition_that_was_not_added(world: World, version: int, code: int) -> None:
    producer = world.producer()
    assert world.add(producer, 1) == [0]
    assert produce(world, batch(producer), version=version) == [code]


def test_without_verification_version_2_adds_partitions_all_the_same() -> None:
    world = World(config={"transaction.partition.verification.enable": "false"})
    producer = world.producer()
    assert produce(world, batch(producer)) == [0]
    assert world.end(producer)[0] == 0
    assert [places for _, _, _, places in world.markers] == [{TOPIC: [0]}]
    world.cluster.close()


def test_a_batch_of_a_fenced_producer_gets_the_error_that_producers_know(world: World) -> None:
    producer = world.producer()
    world.producer()
    assert produce(world, batch(producer)) == [ErrorCode.INVALID_PRODUCER_EPOCH]


def test_a_request_has_one_producer(world: World) -> None:
    one, other = world.producer(), world.producer("other")
    refused = [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
    assert produce(world, batch(one), batch(other)) == refused


@pytest.mark.parametrize(
    ("version", "code"),
    [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)],
)
def test_a_fenced_producer_that_adds_partitions(world: World, version: int, code: int) -> None:
    producer = world.producer()
    world.producer()
    assert world.add(producer, 0, version=version) == [code]


def test_a_broker_adds_partitions_of_the_offsets_topic(world: World) -> None:
    assert topics.ensure_internal_topic(world.cluster.broker().core, OFFSETS_TOPIC)
    producer_id, epoch = world.producer()
    transaction = AddPartitionsToTxnTransaction(
        transactional_id="t",
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[AddPartitionsToTxnTopic(name=OFFSETS_TOPIC, partitions=[3])],
    )
    answer = world.ask(AddPartitionsToTxnRequest(transactions=[transaction]), 5)
    (result,) = answer.results_by_transaction
    (topic,) = result.topic_results
    assert [each.partition_error_code for each in topic.results_by_partition] == [0]
    assert world.written()[-1].partitions == [3]


def begin_marker(world: World, topic: str = TOPIC, *, epoch: int = 0) -> Any:
    marker = WritableTxnMarker(
        producer_id=1,
        producer_epoch=epoch,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
        coordinator_epoch=0,
        transaction_version=0,
    )
    world.cluster.broker().core.interceptor = None
    return world.begin(WriteTxnMarkersRequest(markers=[marker]), 2)


def code_of(answer: Any) -> int:
    code: int = answer.markers[0].topics[0].partitions[0].error_code
    return code


def test_a_marker_is_written_when_the_disk_has_it() -> None:
    world = World(path="/data", durability="fsync")
    answer = begin_marker(world)
    assert isinstance(answer, Pending)
    assert not answer.done()
    assert world.runtime.scheduler.wait(answer, 60_000)
    assert code_of(answer.result()) == ErrorCode.NONE
    world.cluster.close()


def test_a_marker_without_an_epoch_is_refused(world: World) -> None:
    assert code_of(begin_marker(world, epoch=-1)) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_marker_for_a_group_that_has_no_coordinator_here_is_for_another_leader(
    world: World,
) -> None:
    core = world.cluster.broker().core
    assert topics.ensure_internal_topic(core, OFFSETS_TOPIC)
    core.group_coordinator.runtime.close()
    answer = begin_marker(world, OFFSETS_TOPIC)
    response = answer.result() if isinstance(answer, Pending) else answer
    assert code_of(response) == ErrorCode.NOT_LEADER_OR_FOLLOWER
