"""A Produce of version 12 waits for the end of the last transaction, as TV2 allows.

A TxnOffsetCommit of version 5 waits as well. Kafka refuses it, so that its client tries again after
retry.backoff.ms: a transaction for each record would then cost 100 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog.broker import topics
from embedlog.broker.context import RequestContext
from embedlog.runtime.pending import Pending
from tests.coordinator.transaction.world import TOPIC, World
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.records import build_batch
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.schemas.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

LIMIT_MS = 100
"""add.partitions.to.txn.retry.backoff.max.ms"""


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.cluster.close()


def ending(world: World) -> tuple[int, int]:
    """Return the next producer after a transaction whose markers are not written yet."""
    producer = world.producer()
    assert world.register(producer, 0) == [0]
    world.marker_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    code, producer_id, epoch = world.end(producer)
    assert code == ErrorCode.NONE
    return producer_id, epoch


def produce(world: World, producer: tuple[int, int], version: int = 12) -> Any:
    """Begin to send one record of the next transaction."""
    records = build_batch(
        [b"x"],
        timestamps=1,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
        transactional=True,
    )
    request = ProduceRequest(
        transactional_id="t",
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=TOPIC, partition_data=[PartitionProduceData(index=1, records=records)]
            )
        ],
    )
    return world.cluster.broker().core.handle(RequestContext(ApiKey.PRODUCE, version), request)


def commit_offset(world: World, producer: tuple[int, int], version: int = 5) -> Any:
    """Begin to store an offset in the next transaction."""
    core = world.cluster.broker().core
    assert topics.ensure_internal_topic(core, "__consumer_offsets")
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id="g",
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
    )
    return core.handle(RequestContext(ApiKey.TXN_OFFSET_COMMIT, version), request)


def test_an_offset_is_stored_as_soon_as_the_last_marker_is_written(world: World) -> None:
    answer = commit_offset(world, ending(world))
    assert isinstance(answer, Pending)
    assert not answer.done()
    world.marker_code = ErrorCode.NONE
    began_ms = world.runtime.clock.monotonic_ms()
    assert world.runtime.scheduler.wait(answer, 10 * LIMIT_MS)
    assert answer.result().topics[0].partitions[0].error_code == ErrorCode.NONE
    assert world.runtime.clock.monotonic_ms() - began_ms < LIMIT_MS


def test_a_stored_offset_does_not_wait_for_ever(world: World) -> None:
    answer = commit_offset(world, ending(world))
    world.let_pass(LIMIT_MS - 1)
    assert not answer.done()
    world.let_pass(21)
    code = answer.result().topics[0].partitions[0].error_code
    assert code == ErrorCode.CONCURRENT_TRANSACTIONS


def code_of(response: Any) -> int:
    (topic,) = response.responses
    (partition,) = topic.partition_responses
    code: int = partition.error_code
    return code


def test_it_is_appended_as_soon_as_the_last_marker_is_written(world: World) -> None:
    answer = produce(world, ending(world))
    assert isinstance(answer, Pending)
    assert not answer.done()
    world.marker_code = ErrorCode.NONE
    began_ms = world.runtime.clock.monotonic_ms()
    assert world.runtime.scheduler.wait(answer, 10 * LIMIT_MS)
    assert code_of(answer.result()) == ErrorCode.NONE
    assert world.runtime.clock.monotonic_ms() - began_ms < LIMIT_MS


def test_it_does_not_wait_for_ever(world: World) -> None:
    answer = produce(world, ending(world))
    world.let_pass(LIMIT_MS - 1)
    assert not answer.done()
    world.let_pass(21)
    assert code_of(answer.result()) == ErrorCode.CONCURRENT_TRANSACTIONS


def test_an_older_client_is_told_at_once(world: World) -> None:
    answer = produce(world, ending(world), version=11)
    response = answer.result() if isinstance(answer, Pending) else answer
    assert code_of(response) == ErrorCode.NOT_ENOUGH_REPLICAS


def test_closing_answers_what_waits(world: World) -> None:
    answer = produce(world, ending(world))
    world.cluster.close()
    assert answer.done()
