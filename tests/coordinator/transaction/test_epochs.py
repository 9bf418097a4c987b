"""Epochs of producers that start anew, repeat a request, or use an older version."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.coordinator.transaction.world import World
from wire.error_codes import ErrorCode

EPOCH_MAX = 32_767
LAST_OF_CLIENTS = EPOCH_MAX - 1


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.cluster.close()


def test_a_producer_whose_id_was_forgotten_begins_anew(world: World) -> None:
    producer_id, epoch = world.producer(producer_id=77, epoch=3)
    assert producer_id != 77
    assert epoch == 0


def test_an_initialization_may_be_repeated_more_than_once(world: World) -> None:
    pid, epoch = world.producer()
    for _ in range(4):
        assert world.producer(producer_id=pid, epoch=epoch) == (pid, 1)


def test_each_initialization_sets_the_time_out(world: World) -> None:
    world.producer(timeout_ms=300)
    assert world.add(world.producer(timeout_ms=60_000), 0) == [0]
    world.let_pass(21_000)
    assert world.written()[-1].state == "Ongoing"


def test_a_fence_may_use_the_largest_epoch(world: World) -> None:
    pid, _ = world.producer()
    world.set_epoch(LAST_OF_CLIENTS)
    assert world.add((pid, LAST_OF_CLIENTS), 0) == [0]
    assert world.initialize().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    assert world.markers[-1][:2] == (pid, EPOCH_MAX)
    new, epoch = world.producer()
    assert new != pid
    assert epoch == 0


@pytest.mark.parametrize("level", [1, 2])
def test_a_timed_out_producer_learns_its_epoch_from_version_2_on(world: World, level: int) -> None:
    world.set_level(level)
    pid, epoch = world.producer(timeout_ms=300)
    assert world.add((pid, epoch), 0) == [0]
    world.let_pass(21_000)
    assert world.written()[-1].state == "CompleteAbort"
    answer = world.initialize("t", pid, epoch)
    if level == 1:
        assert answer.error_code == ErrorCode.PRODUCER_FENCED
    else:
        assert (answer.error_code, answer.producer_epoch) == (0, 1)


def test_a_zombie_of_an_older_client_gets_no_later_epoch(world: World) -> None:
    pid, _ = world.producer(version=4)
    assert world.producer(version=4) == (pid, 1)
    assert world.add((pid, 1), 0) == [0]
    assert world.end((pid, 1), version=4)[0] == 0
    assert world.end((pid, 0))[0] == ErrorCode.PRODUCER_FENCED


def test_an_older_client_waits_for_the_markers_as_well(world: World) -> None:
    producer = world.producer(version=4)
    assert world.add(producer, 0) == [0]
    world.marker_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.end(producer, version=4)[0] == 0
    for is_committed in (True, False):
        code = world.end(producer, version=4, is_committed=is_committed)[0]
        assert code == ErrorCode.CONCURRENT_TRANSACTIONS


def test_a_client_of_version_2_is_refused_at_level_0(world: World) -> None:
    world.set_level(0)
    producer = world.producer()
    assert world.end(producer, is_committed=False)[0] == ErrorCode.UNSUPPORTED_VERSION
    assert world.register(producer, 0) == [ErrorCode.UNSUPPORTED_VERSION]
    assert [each.state for each in world.written()] == ["Empty"]


def test_a_transaction_keeps_its_version_when_the_level_is_lowered(world: World) -> None:
    producer = world.producer()
    assert world.register(producer, 0) == [0]
    world.marker_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.end(producer)[0] == 0
    world.set_level(0)
    world.marker_code = ErrorCode.NONE
    world.let_pass(300)
    last = world.written()[-1]
    assert (last.state, last.client_version) == ("CompleteCommit", 2)


def test_a_partition_is_added_to_others(world: World) -> None:
    producer = world.producer()
    assert world.add(producer, 0) == [0]
    assert world.add(producer, 0, 1) == [0, 0]
    assert world.written()[-1].partitions == [0, 1]
