"""Offsets of a transaction are invisible before its marker, and then appear all at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedlog.broker import topics
from embedlog.testing import SimRuntime, sim_runtime
from embedlog.topic_names import OFFSETS_TOPIC
from tests.coordinator.transaction.world import TOPIC, World
from tests.support.offsets import commit, commit_codes, fetch, fetched
from wire.error_codes import ErrorCode
from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from wire.schemas.delete_groups import DeleteGroupsRequest
from wire.schemas.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from wire.schemas.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

PLACE = (TOPIC, 0)


def opened(runtime: SimRuntime | None = None, path: str | None = None) -> World:
    """Make a world whose markers are written."""
    world = World(runtime, path)
    world.cluster.broker().core.interceptor = None
    assert topics.ensure_internal_topic(world.cluster.broker().core, OFFSETS_TOPIC)
    return world


@pytest.fixture
def world() -> Iterator[World]:
    made = opened()
    yield made
    made.cluster.close()


def txn_commit(
    world: World, producer: tuple[int, int], offset: int, *, version: int = 5, **fields: object
) -> int:
    """Send a TxnOffsetCommit of one offset; return its error code."""
    request = TxnOffsetCommitRequest(
        **{
            "transactional_id": "t",
            "group_id": "g",
            "producer_id": producer[0],
            "producer_epoch": producer[1],
            "topics": [
                TxnOffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=0, committed_offset=offset, committed_metadata=""
                        )
                    ],
                )
            ],
            **fields,
        }
    )
    (topic,) = world.ask(request, version).topics
    code: int = topic.partitions[0].error_code
    return code


def committed(world: World, **how: object) -> dict[tuple[object, int], int]:
    """Return the group's committed offsets."""
    answer = world.ask(fetch("g", [PLACE], **how), 9)
    return fetched(answer)


@pytest.mark.parametrize("is_committed", [True, False])
def test_offsets_wait_for_the_marker(world: World, is_committed: bool) -> None:
    world.ask(commit("g", {PLACE: 3}), 8)
    producer = world.producer()
    assert txn_commit(world, producer, 7) == 0
    assert committed(world) == {PLACE: 3}
    stable = world.ask(fetch("g", [PLACE], require_stable=True), 9)
    assert stable.groups[0].topics[0].partitions[0].error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert world.end(producer, is_committed=is_committed)[0] == 0
    assert committed(world) == {PLACE: 7 if is_committed else 3}
    stable = world.ask(fetch("g", [PLACE], require_stable=True), 9)
    assert stable.groups[0].topics[0].partitions[0].error_code == 0
    assert world.written()[-1].state == ("CompleteCommit" if is_committed else "CompleteAbort")


@pytest.mark.parametrize("is_committed", [True, False])
def test_they_wait_through_a_restart(is_committed: bool) -> None:
    runtime = sim_runtime(seed=3)
    first = opened(runtime, "/data")
    producer = first.producer()
    assert txn_commit(first, producer, 7) == 0
    first.cluster.close()

    second = opened(sim_runtime(seed=3, files=runtime.files), "/data")
    assert committed(second) == {PLACE: -1}
    assert second.end(producer, is_committed=is_committed)[0] == 0
    assert committed(second) == {PLACE: 7 if is_committed else -1}
    second.cluster.close()

    third = opened(sim_runtime(seed=3, files=second.runtime.files), "/data")
    assert committed(third) == {PLACE: 7 if is_committed else -1}
    third.cluster.close()


def test_a_plain_commit_behind_that_of_a_transaction_counts(world: World) -> None:
    producer = world.producer()
    assert txn_commit(world, producer, 7) == 0
    assert commit_codes(world.ask(commit("g", {PLACE: 9}), 8)) == {PLACE: 0}
    world.end(producer)
    assert committed(world) == {PLACE: 9}


def test_before_version_5_the_offsets_must_have_been_added(world: World) -> None:
    producer = world.producer()
    assert txn_commit(world, producer, 7, version=4) == ErrorCode.TRANSACTION_ABORTABLE
    assert txn_commit(world, producer, 7, version=3) == ErrorCode.INVALID_TXN_STATE
    assert committed(world) == {PLACE: -1}


def test_a_fenced_producer_commits_nothing(world: World) -> None:
    producer = pid, _ = world.producer()
    assert txn_commit(world, producer, 7) == 0
    world.initialize()
    assert world.producer() == (pid, 2)
    assert txn_commit(world, producer, 8) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert txn_commit(world, (pid + 5, 0), 8) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert committed(world) == {PLACE: -1}


def test_a_member_that_is_none_commits_nothing(world: World) -> None:
    producer = world.producer()
    somebody = {"member_id": "m", "generation_id_or_member_epoch": 4}
    assert txn_commit(world, producer, 7, **somebody) == ErrorCode.ILLEGAL_GENERATION
    assert txn_commit(world, producer, 7, group_id="") == ErrorCode.INVALID_GROUP_ID


def test_an_offset_that_a_transaction_commits_twice_is_stable_after_its_end(world: World) -> None:
    producer = world.producer()
    for offset in (7, 8):
        assert txn_commit(world, producer, offset) == 0
    assert world.end(producer)[0] == 0
    stable = world.ask(fetch("g", [PLACE], require_stable=True), 9)
    assert fetched(stable) == {PLACE: 8}


def test_a_deleted_offset_does_not_come_back_with_its_transaction(world: World) -> None:
    producer = world.producer()
    assert txn_commit(world, producer, 7) == 0
    topic = OffsetDeleteRequestTopic(
        name=TOPIC, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
    )
    answer = world.ask(OffsetDeleteRequest(group_id="g", topics=[topic]), 0)
    assert answer.topics[0].partitions[0].error_code == 0
    assert world.end(producer)[0] == 0
    assert committed(world) == {PLACE: -1}


def test_a_deleted_group_does_not_come_back_with_its_transaction(world: World) -> None:
    producer = world.producer()
    assert txn_commit(world, producer, 7) == 0
    answer = world.ask(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert [each.error_code for each in answer.results] == [0]
    assert world.end(producer)[0] == 0
    assert committed(world) == {PLACE: -1}


def test_a_commit_of_a_transaction_has_its_leader_epoch(world: World) -> None:
    producer = world.producer()
    topic = TxnOffsetCommitRequestTopic(
        name=TOPIC,
        partitions=[
            TxnOffsetCommitRequestPartition(
                partition_index=0, committed_offset=7, committed_leader_epoch=3
            )
        ],
    )
    assert txn_commit(world, producer, 7, topics=[topic]) == 0
    assert world.end(producer)[0] == 0
    answer = world.ask(fetch("g", [PLACE]), 9)
    assert answer.groups[0].topics[0].partitions[0].committed_leader_epoch == 3


def test_a_transaction_of_a_stale_member_gets_the_error_that_producers_know(world: World) -> None:
    join = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    epoch = world.ask(join, 1).member_epoch
    producer = world.producer()
    member = {"member_id": "m", "generation_id_or_member_epoch": epoch + 5}
    assert txn_commit(world, producer, 7, **member) == ErrorCode.ILLEGAL_GENERATION
    member["generation_id_or_member_epoch"] = epoch
    assert txn_commit(world, producer, 7, **member) == 0
