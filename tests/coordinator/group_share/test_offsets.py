"""Setting, deleting and describing start offsets, and deleting groups with their state."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import errors
from embedlog.coordinator.group.share.described_offsets import describe_offsets
from embedlog.errors import KafkaError
from embedlog.runtime.pending import Pending, completed
from tests.coordinator.group_share.share_state import Summary
from tests.coordinator.group_share.world import GROUP, Sharer, ShareWorld
from wire.error_codes import ErrorCode

NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.fixture
def world() -> ShareWorld:
    made = ShareWorld()
    made.make_topic("t", 2)
    made.make_topic("u", 1)
    return made


def codes(answer: Pending[Any]) -> dict[int, int]:
    (topic,) = answer.result().responses
    return {each.partition_index: each.error_code for each in topic.partitions}


def refusal(answer: Pending[Any]) -> int:
    error = answer.error()
    assert isinstance(error, KafkaError)
    return error.code


def offsets(world: ShareWorld, topic: str, *numbers: int, end: int = 10) -> list[tuple[int, ...]]:
    """Return (partition, start offset, lag, error code) of partitions whose logs end at `end`."""

    def ends(places: Any) -> Pending[Any]:
        return completed(dict.fromkeys(places, (0, end)))

    found = describe_offsets(
        GROUP, [(topic, numbers)], metadata=world.image, state=world.states, end_offsets=ends
    ).result()
    return [
        (each.partition_index, each.start_offset, each.lag, each.error_code)
        for topic_found in found
        for each in topic_found.partitions
    ]


# Setting


def test_a_group_is_made_for_its_offsets(world: ShareWorld) -> None:
    assert codes(world.alter("t", {0: 5})) == {0: 0}
    group = world.share_group()
    assert (group.state_name(), group.group_epoch) == ("Empty", 1)
    assert world.initialized() == {"t": {0}}
    assert offsets(world, "t", 0, 1) == [(0, 5, 5, 0), (1, -1, -1, 0)]
    assert world.restarted().initialized() == {"t": {0}}


def test_no_group_is_made_for_topics_that_do_not_exist(world: ShareWorld) -> None:
    assert codes(world.alter("x", {0: 5})) == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert GROUP not in world.shard.groups


def test_offsets_of_a_group_with_members_stay(world: ShareWorld) -> None:
    member = Sharer(world, "m", "t")
    assert refusal(world.alter("t", {0: 5})) == ErrorCode.NON_EMPTY_GROUP
    assert refusal(world.forget("t")) == ErrorCode.NON_EMPTY_GROUP
    assert refusal(world.delete_group()) == ErrorCode.NON_EMPTY_GROUP
    member.leave()
    assert codes(world.alter("t", {0: 5})) == {0: 0}
    assert set(world.states.epochs.values()) == {2, world.share_group().group_epoch}


def test_the_answer_waits_for_the_share_coordinator(world: ShareWorld) -> None:
    world.states.holds = True
    answer = world.alter("t", {0: 5})
    assert not answer.done()
    assert world.share_group().state_topics.initializing
    world.states.release()
    assert codes(answer) == {0: 0}


def test_an_error_of_the_share_coordinator_is_the_answer(world: ShareWorld) -> None:
    world.alter("t", {0: 5})
    world.states.code = NOT_AVAILABLE
    assert codes(world.alter("t", {0: 7, 1: 7})) == {0: NOT_AVAILABLE, 1: NOT_AVAILABLE}
    assert world.initialized() == {"t": {0}}
    assert not world.share_group().state_topics.initializing


def test_a_result_that_cannot_be_stored_is_an_error(world: ShareWorld) -> None:
    world.states.holds = True
    answer = world.alter("t", {0: 5})
    world.refusal = errors.NotCoordinator()
    world.states.release()
    assert refusal(answer) == ErrorCode.NOT_COORDINATOR


def test_a_negative_partition_refuses_the_whole_request(world: ShareWorld) -> None:
    assert refusal(world.alter("t", {0: 5, -1: 5})) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not world.states.calls
    assert GROUP not in world.shard.groups


def test_groups_of_offsets_are_limited(world: ShareWorld) -> None:
    few = ShareWorld(like=world, embedlog_max_groups=1)
    few.alter("t", {0: 1})
    assert refusal(few.alter("t", {0: 1}, group_id="h")) == ErrorCode.POLICY_VIOLATION
    assert codes(few.alter("t", {0: 2})) == {0: 0}


# Deleting


def forgotten(answer: Pending[Any]) -> dict[str, int]:
    return {each.topic_name: each.error_code for each in answer.result().responses}


def test_offsets_are_deleted_by_topic(world: ShareWorld) -> None:
    world.alter("t", {0: 5, 1: 6})
    world.alter("u", {0: 7})
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert forgotten(world.forget("t", "x")) == {"t": 0, "x": unknown}
    assert world.initialized() == {"u": {0}}
    assert forgotten(world.forget("t")) == {"t": unknown}
    assert offsets(world, "t", 0) == [(0, -1, -1, 0)]
    assert offsets(world, "u", 0) == [(0, 7, 3, 0)]


def test_a_failed_deletion_can_be_tried_again(world: ShareWorld) -> None:
    world.alter("t", {0: 5})
    world.states.code = NOT_AVAILABLE
    assert forgotten(world.forget("t")) == {"t": NOT_AVAILABLE}
    assert not world.initialized()
    again = world.restarted()
    assert list(again.share_group().state_topics.deleting.values()) == ["t"]
    world.states.code = 0
    assert forgotten(again.forget("t")) == {"t": 0}
    assert not again.share_group().state_topics.deleting
    assert not world.states.states


def test_a_member_that_comes_meanwhile_gets_new_state(world: ShareWorld) -> None:
    world.alter("t", {0: 5})
    world.states.holds = True
    answer = world.forget("t")
    member = Sharer(world, "m", "t")
    world.states.release()
    assert forgotten(answer) == {"t": 0}
    assert member.beat() == {"t": {0, 1}}
    assert world.initialized() == {"t": {0, 1}}


# Deleting groups


def test_a_group_goes_after_its_state(world: ShareWorld) -> None:
    world.alter("t", {0: 5})
    world.states.holds = True
    answer = world.delete_group()
    assert GROUP in world.shard.groups
    world.states.release()
    assert answer.result().error_code == 0
    assert GROUP not in world.shard.groups
    assert not world.states.states
    assert GROUP not in world.restarted().shard.groups


def test_a_group_stays_if_its_state_cannot_be_deleted(world: ShareWorld) -> None:
    world.alter("t", {0: 5})
    world.states.code = NOT_AVAILABLE
    assert refusal(world.delete_group()) == NOT_AVAILABLE
    assert GROUP in world.shard.groups
    world.states.code = 0
    assert world.delete_group().result().error_code == 0
    assert not world.states.states


def test_a_group_stays_if_a_member_comes_meanwhile(world: ShareWorld) -> None:
    world.alter("t", {0: 5})
    world.states.holds = True
    answer = world.delete_group()
    world.beat("m", 0, "u")
    world.states.release()
    assert refusal(answer) == ErrorCode.NON_EMPTY_GROUP
    assert world.share_group().members.keys() == {"m"}


def test_a_group_of_deleted_topics_goes_at_once(world: ShareWorld) -> None:
    world.alter("t", {0: 5})
    world.delete_topic("t")
    world.states.calls.clear()
    assert world.delete_group().result().error_code == 0
    assert not world.states.calls


# Describing


def test_a_lag_counts_what_is_not_done(world: ShareWorld) -> None:
    topic_id = world.image.topics_by_name["t"].topic_id
    world.states.states[GROUP, (topic_id, 0)] = Summary(0, 4, 3, 2)
    world.states.states[GROUP, (topic_id, 1)] = Summary(0, 4, -1, -1)
    assert offsets(world, "t", 0, 1, end=10) == [(0, 3, 5, 0), (1, -1, -1, 0)]


def test_an_error_of_the_state_is_no_offset(world: ShareWorld) -> None:
    world.states.code = NOT_AVAILABLE
    assert offsets(world, "t", 0) == [(0, -1, -1, 0)]


def test_an_error_of_a_leader_is_the_error_of_its_partition(world: ShareWorld) -> None:
    world.alter("t", {0: 5, 1: 6})

    def ends(places: Any) -> Pending[Any]:
        return completed({place: (6 if place[1] else 0, 10) for place in places})

    (topic,) = describe_offsets(
        GROUP, [("t", [0, 1])], metadata=world.image, state=world.states, end_offsets=ends
    ).result()
    assert [(each.lag, each.error_code) for each in topic.partitions] == [(5, 0), (-1, 6)]


@pytest.mark.parametrize(("group", "numbers"), [("", [0]), (GROUP, []), (GROUP, [-1])])
def test_what_kafka_cannot_describe_is_a_server_error(
    world: ShareWorld, group: str, numbers: list[int]
) -> None:
    found = describe_offsets(
        group, [("t", numbers)], metadata=world.image, state=world.states,
        end_offsets=lambda _places: completed({}),
    )  # fmt: skip
    assert refusal(found) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_unknown_topics_need_no_share_coordinator(world: ShareWorld) -> None:
    assert offsets(world, "x", 0, -1) == [(0, -1, -1, 0), (-1, -1, -1, 0)]
    assert offsets(world, "t", 7) == [(7, -1, -1, 0)]
    assert not world.states.calls
