"""ConsumerGroupHeartbeat: joining, epochs, assignments, leaving, sessions."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import errors
from tests.coordinator.consumer.world import GROUP, REBALANCE_MS, SESSION_MS, World, settle

FULL: dict[str, Any] = {
    "rebalance_timeout_ms": REBALANCE_MS,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}


@pytest.fixture
def world() -> World:
    made = World()
    made.make_topic("t", 4)
    return made


# The request


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"group_id": "  "}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"
            " (re-)joining.",
        ),
        ({"epoch": -2}, "InstanceId can't be null."),
        ({"epoch": -3, "instance_id": "i"}, "MemberEpoch is invalid."),
    ],
)
def test_what_no_state_could_make_valid(world: World, fields: dict[str, Any], message: str) -> None:
    asked = {"member_id": "m", "epoch": 0, **FULL, **fields}
    with pytest.raises(errors.InvalidRequest) as caught:
        world.heartbeat(**asked)
    assert caught.value.message == message


def test_a_join_must_not_own_anything(world: World) -> None:
    owned = world.by_id({"t": {0}})
    with pytest.raises(errors.InvalidRequest):
        world.heartbeat("m", 0, **{**FULL, "topic_partitions": owned})


@pytest.mark.parametrize("name", ["", "sticky"])
def test_an_assignor_that_is_not_configured(world: World, name: str) -> None:
    with pytest.raises(errors.UnsupportedAssignor) as caught:
        world.heartbeat("m", 0, **FULL, server_assignor=name)
    assert str(caught.value).endswith("Supported assignors: uniform, range.")


def test_version_0_gets_its_member_id_from_the_coordinator(world: World) -> None:
    response = world.heartbeat("", 0, version=0, **FULL)
    assert len(response.member_id or "") == 22
    assert list(world.group().members) == [response.member_id]
    with pytest.raises(errors.InvalidRequest):
        world.heartbeat("", 1, version=0)
    with pytest.raises(errors.InvalidRequest):
        world.heartbeat("", -1, version=0)


# Joining


def test_the_first_member_has_everything_at_once(world: World) -> None:
    member = world.join("m", "t")
    assert member.owned == {"t": {0, 1, 2, 3}}
    assert member.epoch == 2
    assert member.interval_ms == 5000
    assert world.group().state_name() == "Stable"


def test_subscribing_to_nothing_is_no_change(world: World) -> None:
    response = world.heartbeat("m", 0, **{**FULL, "subscribed_topic_names": []})
    assert response.member_epoch == 1
    assert world.named(response) == {}
    assert world.group().state_name() == "Stable"


def test_partitions_move_when_they_were_given_up(world: World) -> None:
    first = world.join("m1", "t")
    second = world.join("m2", "t")
    assert (second.epoch, second.owned) == (3, {})
    assert first.beat() == {"t": {0, 1}}
    assert first.epoch == 2
    assert second.beat() is None
    assert first.confirm() is None
    assert first.epoch == 3
    assert second.beat() == {"t": {2, 3}}
    assert world.group().state_name() == "Stable"


def test_owning_is_assumed_until_the_member_says_otherwise(world: World) -> None:
    first = world.join("m1", "t")
    second = world.join("m2", "t")
    first.beat()
    assert first.beat() is None
    assert first.beat(topic_partitions=world.by_id({"t": {0, 1, 2, 3}})) is None
    assert second.beat() is None
    assert world.group().members["m1"].state == 1


def test_the_second_assignment_keeps_its_distance() -> None:
    world = World(group_consumer_assignment_interval_ms=1000)
    world.make_topic("t", 4)
    first = world.join("m1", "t")
    second = world.join("m2", "t")
    assert (second.epoch, second.owned) == (2, {})
    assert world.group().state_name() == "Assigning"
    world.elapse(999)
    assert first.beat() is None
    world.elapse(1)
    assert first.beat() == {"t": {0, 1}}
    assert world.group().state_name() == "Reconciling"


def test_an_emptied_group_need_not_wait_for_its_next_assignment() -> None:
    world = World(group_consumer_assignment_interval_ms=1000)
    world.make_topic("t", 4)
    world.join("m1", "t").leave()
    assert world.join("m2", "t").owned == {"t": {0, 1, 2, 3}}


def test_a_clock_set_back_does_not_hold_assignments_up() -> None:
    world = World(group_consumer_assignment_interval_ms=1000)
    world.make_topic("t", 4)
    world.join("m1", "t")
    world.runtime.clock.set_wall(world.runtime.clock.wall_ms() - 60_000)
    assert world.join("m2", "t").epoch == 3


def test_joining_again_brings_the_assignment_again(world: World) -> None:
    member = world.join("m", "t")
    assert member.rejoin() == {"t": {0, 1, 2, 3}}
    assert member.epoch == 2


def test_a_full_request_is_answered_with_the_assignment(world: World) -> None:
    member = world.join("m", "t")
    assert member.confirm() is None
    everything = {"t": {0, 1, 2, 3}}
    assert member.confirm(rebalance_timeout_ms=1, subscribed_topic_names=["t"]) == everything
    assert member.confirm(rebalance_timeout_ms=1, subscribed_topic_regex="") == everything
    assert member.confirm(rebalance_timeout_ms=1) is None
    assert member.beat(rebalance_timeout_ms=1, subscribed_topic_names=["t"]) is None


def test_group_max_size() -> None:
    world = World(group_consumer_max_size=1)
    member = world.join("m1", "t")
    with pytest.raises(errors.GroupMaxSizeReached):
        world.join("m2", "t")
    member.rejoin()


def test_settings_of_the_group_win(world: World) -> None:
    world.configure(
        GROUP, consumer_heartbeat_interval_ms="7000", consumer_session_timeout_ms="50000"
    )
    member = world.join("m", "t")
    assert member.interval_ms == 7000
    world.elapse(49_999)
    assert not world.group().is_empty()
    world.elapse(1)
    assert world.group().is_empty()


# Subscriptions and topics


def test_what_is_not_read_any_more_goes_before_the_next_assignment() -> None:
    world = World(group_consumer_assignment_interval_ms=1000)
    world.make_topic("t", 2)
    world.make_topic("u", 2)
    member = world.join("m", "t", "u")
    assert member.beat(subscribed_topic_names=["u"]) == {"u": {0, 1}}
    assert world.group().state_name() == "Assigning"
    world.elapse(1000)
    member.confirm()
    assert world.group().state_name() == "Stable"


def test_a_topic_that_comes_later(world: World) -> None:
    member = world.join("m", "later")
    assert member.beat() is None
    world.make_topic("later", 2)
    assert member.beat() == {"later": {0, 1}}
    world.make_topic("later", 3)
    assert member.confirm() == {"later": {0, 1, 2}}


def test_a_topic_that_goes(world: World) -> None:
    member = world.join("m", "t")
    world.delete_topic("t")
    assert member.beat() == {}
    member.confirm()
    assert world.group().state_name() == "Stable"
    world.make_topic("t", 1)
    assert member.confirm() == {"t": {0}}


def test_topics_that_nobody_reads_change_nothing(world: World) -> None:
    member = world.join("m", "t")
    world.make_topic("other", 2)
    appends = len(world.batches)
    member.beat()
    assert len(world.batches) == appends


# Epochs


def test_an_epoch_ahead_of_the_member_is_fenced(world: World) -> None:
    member = world.join("m", "t")
    member.epoch += 1
    with pytest.raises(errors.FencedMemberEpoch):
        member.confirm()


def test_the_last_answer_may_have_been_lost(world: World) -> None:
    first = world.join("m1", "t")
    second = world.join("m2", "t")
    first.beat()
    second.confirm()
    first.confirm()
    assert first.epoch == 3
    first.epoch = 2
    first.confirm()
    assert first.epoch == 3


def test_an_older_epoch_with_more_than_was_assigned_is_fenced(world: World) -> None:
    first = world.join("m1", "t")
    world.join("m2", "t")
    first.beat()
    first.confirm()
    for owned in (None, world.by_id({"t": {0, 1, 2}})):
        with pytest.raises(errors.FencedMemberEpoch):
            world.heartbeat("m1", 2, topic_partitions=owned)
    with pytest.raises(errors.FencedMemberEpoch):
        world.heartbeat("m1", 1, topic_partitions=[])


def test_strangers(world: World) -> None:
    with pytest.raises(errors.GroupIdNotFound) as caught:
        world.heartbeat("m", 1)
    assert caught.value.message == "Consumer group g not found."
    with pytest.raises(errors.GroupIdNotFound):
        world.heartbeat("m", -1)
    world.join("m", "t")
    for epoch in (1, -1):
        with pytest.raises(errors.UnknownMemberId):
            world.heartbeat("x", epoch)


# Leaving


def test_leaving_frees_everything(world: World) -> None:
    first, second = world.join("m1", "t"), world.join("m2", "t")
    settle(first, second)
    second.leave()
    assert world.group().state_name() == "Assigning"
    assert first.confirm() == {"t": {0, 1, 2, 3}}
    first.leave()
    assert world.group().state_name() == "Empty"
    assert world.group().group_epoch == world.group().target_epoch


def test_a_silent_member_is_removed(world: World) -> None:
    first, second = world.join("m1", "t"), world.join("m2", "t")
    settle(first, second)
    world.elapse(SESSION_MS - 1)
    first.beat()
    world.elapse(1)
    assert list(world.group().members) == ["m1"]
    with pytest.raises(errors.UnknownMemberId):
        second.beat()


def test_a_member_that_does_not_give_up_is_removed(world: World) -> None:
    first, second = world.join("m1", "t"), world.join("m2", "t")
    first.beat()
    for _ in range(3):
        world.elapse(REBALANCE_MS // 3 - 1)
        first.beat()
        second.beat()
    assert list(world.group().members) == ["m1", "m2"]
    world.elapse(3)
    assert list(world.group().members) == ["m2"]
    assert second.beat() == {"t": {0, 1, 2, 3}}


def test_who_has_given_up_in_time_stays(world: World) -> None:
    first, second = world.join("m1", "t"), world.join("m2", "t")
    first.beat()
    world.elapse(REBALANCE_MS - 1)
    settle(first, second)
    world.elapse(REBALANCE_MS)
    assert list(world.group().members) == ["m1", "m2"]


# Assignors


def test_the_assignor_most_members_ask_for(world: World) -> None:
    world.make_topic("u", 3)
    world.make_topic("v", 3)
    for name in ("a", "b"):
        world.join(name, "u", "v")
    members = [world.join(name, "u", "v", server_assignor="range") for name in ("c", "d")]
    assert world.group().assignor_votes.preferred("uniform") == "range"
    assert world.group().target["a"].keys() == world.group().target["b"].keys()
    assert world.group().target["d"] == {}
    for member in members:
        member.leave()
    assert world.group().assignor_votes.preferred("uniform") == "uniform"


def test_range_makes_co_partitions(world: World) -> None:
    world.make_topic("u", 3)
    world.make_topic("v", 3)
    members = [world.join(name, "u", "v", server_assignor="range") for name in ("b", "a")]
    settle(*members)
    assert members[0].owned == {"u": {2}, "v": {2}}
    assert members[1].owned == {"u": {0, 1}, "v": {0, 1}}


# Failing appends


def test_an_append_that_fails_changes_nothing(world: World) -> None:
    world.refusal = errors.CoordinatorNotAvailable()
    with pytest.raises(errors.CoordinatorNotAvailable):
        world.join("m", "t")
    assert world.shard.groups == {}
    world.refusal = None
    first, second = world.join("m1", "t"), world.join("m2", "t")
    world.refusal = errors.CoordinatorNotAvailable()
    before = world.group().members["m1"]
    with pytest.raises(errors.CoordinatorNotAvailable):
        first.beat()
    assert world.group().members["m1"] is before
    world.refusal = None
    settle(first, second)
    assert first.owned == {"t": {0, 1}}
    assert second.owned == {"t": {2, 3}}
