"""Markers of decided transactions: lost requests, partitions that differ, shards that move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedlog.common import TopicPartition
from embedlog.coordinator.placement import partition_of
from embedlog.topic_names import TRANSACTIONS_TOPIC
from tests.coordinator.transaction.world import TOPIC, World
from wire.error_codes import ErrorCode
from wire.schemas.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from wire.schemas.describe_transactions import DescribeTransactionsRequest

RETRIED_MS = 500
"""Some retries take place in this time, and no check for time-outs."""


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.cluster.close()


def decided(world: World, *partitions: int, version: int = 5) -> tuple[int, int]:
    """Decide a transaction whose partitions do not take its markers yet."""
    producer = world.producer()
    assert world.add(producer, *partitions) == [0] * len(partitions)
    world.marker_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.end(producer, version=version)[0] == 0
    return producer


def test_a_request_that_is_lost_is_repeated(world: World) -> None:
    producer = world.producer()
    assert world.add(producer, 0) == [0]
    world.loses_markers = True
    assert world.end(producer)[0] == 0
    world.loses_markers = False
    world.let_pass(RETRIED_MS)
    assert len(world.markers) == 2
    assert world.written()[-1].state == "CompleteCommit"


def test_only_partitions_without_a_marker_are_asked_again_and_described(world: World) -> None:
    producer = world.producer()
    assert world.add(producer, 0, 1, 2) == [0, 0, 0]
    world.marker_codes[1] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.end(producer)[0] == 0
    world.let_pass(RETRIED_MS)
    asked = [places[TOPIC] for _, _, _, places in world.markers]
    assert asked[0] == [0, 1, 2]
    assert {tuple(each) for each in asked[1:]} == {(1,)}
    answer = world.ask(DescribeTransactionsRequest(transactional_ids=["t"]), 0)
    (state,) = answer.transaction_states
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [(TOPIC, [1])]


def test_a_topic_that_is_deleted_during_the_retries_needs_no_marker(world: World) -> None:
    decided(world, 0)
    world.cluster.admin().delete_topics([TOPIC])
    world.let_pass(RETRIED_MS)
    assert world.written()[-1].state == "CompleteCommit"


def test_a_topic_made_anew_with_fewer_partitions_needs_no_marker_of_the_others(
    world: World,
) -> None:
    producer = world.producer()
    assert world.add(producer, 2) == [0]
    world.cluster.admin().delete_topics([TOPIC])
    world.cluster.create_topic(TOPIC, 2)
    assert world.end(producer)[0] == 0
    assert world.markers == []
    assert world.written()[-1].state == "CompleteCommit"


def _limit(world: World, size: int) -> None:
    config = AlterableConfig(name="max.message.bytes", value=str(size))
    resource = AlterConfigsResource(
        resource_type=2, resource_name=TRANSACTIONS_TOPIC, configs=[config]
    )
    answer: Any = world.ask(AlterConfigsRequest(resources=[resource]), 2)
    assert answer.responses[0].error_code == ErrorCode.NONE, answer


def test_an_end_that_the_log_refuses_is_repeated(world: World) -> None:
    decided(world, 0)
    _limit(world, 10)
    world.marker_code = ErrorCode.NONE
    world.let_pass(RETRIED_MS)
    assert world.written()[-1].state == "PrepareCommit"
    _limit(world, 1_000_000)
    world.let_pass(RETRIED_MS)
    assert world.written()[-1].state == "CompleteCommit"


def test_a_shard_that_comes_back_ends_its_transactions(world: World) -> None:
    decided(world, 0)
    world.coordinator.runtime.unload_all()
    world.coordinator.load()
    world.marker_code = ErrorCode.NONE
    world.let_pass(RETRIED_MS)
    assert world.written()[-1].state == "CompleteCommit"


@pytest.mark.parametrize(("client", "version"), [(4, 0), (5, 2)])
def test_a_marker_has_the_epoch_of_its_coordinator_and_the_version_of_the_client(
    world: World, client: int, version: int
) -> None:
    controller = world.cluster.broker().core.controller
    count = len(controller.image.topics_by_name[TRANSACTIONS_TOPIC].partitions)
    controller.bump_leader_epochs([TopicPartition(TRANSACTIONS_TOPIC, partition_of("t", count))], 3)
    decided(world, 0, version=client)
    assert world.marker_versions[0] == (3, version)


def test_a_registration_of_another_broker_does_not_wait(world: World) -> None:
    pid, epoch = decided(world, 0)
    clock = world.runtime.clock
    began_ms = clock.monotonic_ms()
    assert world.register((pid, epoch + 1), 1) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert clock.monotonic_ms() == began_ms
