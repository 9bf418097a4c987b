"""Static members: an instance id outlives its member ids."""

from __future__ import annotations

import pytest

from embedlog import errors
from tests.coordinator.consumer.world import SESSION_MS, World, settle


@pytest.fixture
def world() -> World:
    made = World()
    made.make_topic("t", 4)
    return made


def test_an_instance_id_in_use_is_not_given_away(world: World) -> None:
    member = world.join("m", "t", instance_id="i")
    for name in ("other", "m"):
        with pytest.raises(errors.UnreleasedInstanceId) as caught:
            world.join(name, "t", instance_id="i")
        assert str(caught.value) == (
            f"Static member {name} with instance id i cannot join the group because the instance id"
            " is owned by m member."
        )
    assert member.beat() is None


def test_a_successor_takes_everything_over(world: World) -> None:
    first, second = world.join("m1", "t", instance_id="i1"), world.join("m2", "t")
    settle(first, second)
    first.leave(-2)
    group_epoch = world.group().group_epoch
    assert world.group().members["m1"].epoch == -2
    successor = world.join("m3", "t", instance_id="i1")
    assert successor.owned == {"t": {0, 1}}
    assert successor.epoch == second.epoch
    assert world.group().group_epoch == group_epoch
    assert sorted(world.group().members) == ["m2", "m3"]
    assert world.group().state_name() == "Stable"


def test_the_same_member_id_may_come_back(world: World) -> None:
    member = world.join("m", "t", instance_id="i")
    member.leave(-2)
    assert member.rejoin() == {"t": {0, 1, 2, 3}}


def test_a_successor_with_another_subscription(world: World) -> None:
    world.make_topic("u", 2)
    member = world.join("m", "t", instance_id="i")
    member.leave(-2)
    successor = world.join("n", "u", instance_id="i")
    assert successor.owned == {"u": {0, 1}}
    assert world.group().group_epoch == 3
    assert world.group().is_subscribed_to("u")
    assert not world.group().is_subscribed_to("t")


def test_an_absent_member_keeps_its_partitions_for_a_session(world: World) -> None:
    first, second = world.join("m1", "t", instance_id="i1"), world.join("m2", "t")
    settle(first, second)
    first.leave(-2)
    world.elapse(SESSION_MS - 1)
    second.confirm()
    assert second.owned == {"t": {2, 3}}
    world.elapse(1)
    assert second.confirm() == {"t": {0, 1, 2, 3}}


def test_leaving_for_good(world: World) -> None:
    member = world.join("m", "t", instance_id="i")
    member.leave(-1)
    assert world.group().is_empty()
    assert world.group().static_members == {}


@pytest.mark.parametrize("epoch", [2, -1, -2])
def test_an_instance_id_of_somebody_else(world: World, epoch: int) -> None:
    world.join("m", "t", instance_id="i")
    with pytest.raises(errors.FencedInstanceId):
        world.heartbeat("x", epoch, instance_id="i")
    with pytest.raises(errors.UnknownMemberId) as caught:
        world.heartbeat("m", epoch, instance_id="other")
    assert str(caught.value) == "Instance id other is unknown."


def test_a_member_that_left_for_a_while_must_join_again(world: World) -> None:
    member = world.join("m", "t", instance_id="i")
    epoch = member.epoch
    member.leave(-2)
    with pytest.raises(errors.FencedMemberEpoch):
        world.heartbeat("m", epoch, instance_id="i")


def test_a_dynamic_member_becomes_static_by_joining_again(world: World) -> None:
    member = world.join("m", "t")
    member.rejoin(instance_id="i")
    assert world.group().static_members == {"i": "m"}
    assert world.group().members["m"].instance_id == "i"


def test_range_keeps_the_order_of_instance_ids() -> None:
    world = World(group_consumer_assignors="range")
    world.make_topic("t", 4)
    first = world.join("z", "t", instance_id="1")
    second = world.join("a", "t", instance_id="2")
    settle(first, second)
    first.leave(-2)
    successor = world.join("q", "t", instance_id="1")
    assert successor.owned == {"t": {0, 1}}


def test_an_absent_member_has_given_up_what_it_had_to(world: World) -> None:
    world.make_topic("t", 2)
    absent = world.join("m1", "t", instance_id="i")
    other = world.join("m2", "t")
    absent.beat()
    assert len(absent.owned["t"]) == 1
    absent.leave(-2)
    other.confirm()
    assert len(other.owned["t"]) == 1


def test_a_full_group_has_a_place_for_a_successor() -> None:
    world = World(group_consumer_max_size=1)
    world.make_topic("t", 2)
    world.join("m1", "t", instance_id="i").leave(-2)
    successor = world.join("m2", "t", instance_id="i")
    assert successor.owned == {"t": {0, 1}}
    assert list(world.group().members) == ["m2"]
