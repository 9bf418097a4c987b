"""Groups that change their type, with their members, in both directions."""

from __future__ import annotations

import pytest

from embedlog import errors
from embedlog.coordinator.group.classic.classic_group import ClassicGroup
from tests.coordinator.consumer.classic_client import ClassicClient
from tests.coordinator.consumer.world import GROUP, Owned, World, settle
from wire.error_codes import ErrorCode
from wire.schemas.leave_group import MemberIdentity


@pytest.fixture
def world() -> World:
    made = World()
    made.make_topic("t", 4)
    return made


def classic_pair(world: World) -> tuple[ClassicClient, ClassicClient]:
    """Make a stable classic group of two members with two partitions each."""
    first, second = ClassicClient(world, "t"), ClassicClient(world, "t")
    first.join()
    second.member_id = second.ask_join().result().member_id
    parked = second.ask_join()
    first.join()
    response = parked.result()
    second.generation, second.protocol = response.generation_id, response.protocol_name
    halves: dict[str, Owned] = {first.member_id: {"t": {0, 1}}, second.member_id: {"t": {2, 3}}}
    assert first.sync(halves) == 0
    assert second.sync() == 0
    return first, second


def group_type(world: World) -> str:
    return world.shard.groups[GROUP].GROUP_TYPE


# Upgrade


def test_a_consumer_member_turns_the_group(world: World) -> None:
    first, second = classic_pair(world)
    generation = first.generation
    consumer = world.join("m", "t")
    assert group_type(world) == "consumer"
    assert consumer.epoch == generation + 1
    assert consumer.owned == {}
    group = world.group()
    assert {m.epoch for m in group.members.values()} == {generation, generation + 1}
    for classic in (first, second):
        assert classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    for _ in range(2):
        first.follow()
        second.follow()
        settle(consumer, rounds=2)
    assert sum(len(c.owned["t"]) for c in (first, second)) == 3
    assert sum(len(numbers) for numbers in consumer.owned.values()) == 1
    assert world.group().state_name() == "Stable"


def test_an_upgrade_survives_a_restart(world: World) -> None:
    first, _ = classic_pair(world)
    consumer = world.join("m", "t")
    for again in (world.restarted(), world.restarted(compacted=True)):
        assert group_type(again) == "consumer"
        assert again.group().members == world.group().members
        assert again.group().target == world.group().target
        consumer.world = first.world = again
        assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        consumer.confirm()


def test_who_waits_for_a_rebalance_joins_the_new_group(world: World) -> None:
    first, second = classic_pair(world)
    parked = first.ask_join()
    assert not parked.done()
    world.join("m", "t")
    assert parked.result().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert first.join().error_code == 0
    assert second.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_an_upgrade_that_cannot_be_stored_leaves_the_classic_group(world: World) -> None:
    first, _ = classic_pair(world)
    world.refusal = errors.CoordinatorNotAvailable()
    with pytest.raises(errors.CoordinatorNotAvailable):
        world.join("m", "t")
    world.refusal = None
    assert group_type(world) == "classic"
    assert first.heartbeat() == 0


def test_an_empty_classic_group_gives_way(world: World) -> None:
    first, second = classic_pair(world)
    first.leave(MemberIdentity(member_id=second.member_id))
    consumer = world.join("m", "t")
    assert group_type(world) == "consumer"
    assert consumer.epoch == 2
    assert world.restarted().group().members == world.group().members


def test_an_empty_consumer_group_gives_way(world: World) -> None:
    world.join("m", "t").leave()
    classic_pair(world)
    assert group_type(world) == "classic"
    assert group_type(world.restarted()) == "classic"
    assert group_type(world.restarted(compacted=True)) == "classic"


def test_groups_of_other_programs_are_left_alone(world: World) -> None:
    other = ClassicClient(world, "t")
    other.protocol_type = "connect"
    other.join()
    other.sync()
    with pytest.raises(errors.GroupIdNotFound) as caught:
        world.join("m", "t")
    assert str(caught.value) == (
        "Cannot upgrade classic group g to consumer group because the group does not use the"
        " consumer embedded protocol."
    )
    assert group_type(world) == "classic"


@pytest.mark.parametrize("policy", ["disabled", "downgrade", "DISABLED"])
def test_the_policy_may_forbid_upgrades(policy: str) -> None:
    world = World(group_consumer_migration_policy=policy)
    world.make_topic("t", 4)
    classic_pair(world)
    with pytest.raises(errors.GroupIdNotFound):
        world.join("m", "t")


def test_a_group_too_large_for_a_consumer_group_is_not_upgraded() -> None:
    world = World(group_consumer_max_size=1)
    world.make_topic("t", 4)
    classic_pair(world)
    with pytest.raises(errors.GroupIdNotFound):
        world.join("m", "t")


def test_a_static_classic_member_is_replaced_by_a_consumer(world: World) -> None:
    classic = ClassicClient(world, "t", instance_id="i")
    classic.join()
    classic.sync({classic.member_id: {"t": {0, 1, 2, 3}}})
    consumer = world.join("m", "t", instance_id="i")
    assert consumer.epoch == classic.generation
    assert consumer.owned == {"t": {0, 1, 2, 3}}
    assert classic.heartbeat() == ErrorCode.FENCED_INSTANCE_ID


def test_whoever_replaces_a_static_member_gets_what_a_departed_one_had(world: World) -> None:
    """The member itself is unchanged, but the group was in a rebalance."""
    static, other = ClassicClient(world, "t", instance_id="i"), ClassicClient(world, "t")
    static.join()
    other.member_id = other.ask_join().result().member_id
    parked = other.ask_join()
    static.join()
    other.generation = parked.result().generation_id
    static.sync({static.member_id: {"t": {0, 1}}, other.member_id: {"t": {2, 3}}})
    other.leave(MemberIdentity(member_id=other.member_id))
    consumer = world.join("m", "t", instance_id="i")
    settle(consumer, rounds=2)
    assert consumer.owned == {"t": {0, 1, 2, 3}}


# Downgrade


def mixed(world: World) -> tuple[ClassicClient, ClassicClient]:
    """Make a consumer group of the pair and the consumer member `m`."""
    first, second = classic_pair(world)
    consumer = world.join("m", "t")
    for _ in range(3):
        first.follow()
        second.follow()
        settle(consumer, rounds=2)
    return first, second


def test_the_last_consumer_member_turns_the_group_back(world: World) -> None:
    first, second = mixed(world)
    epoch = world.group().group_epoch
    world.heartbeat("m", -1)
    group = world.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert (group.state_name(), group.generation_id) == ("PreparingRebalance", epoch)
    assert sorted(group.members.by_id) == sorted([first.member_id, second.member_id])
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    parked = first.ask_join()
    assert second.join().error_code == 0
    assert second.generation == epoch + 1
    assert parked.result().generation_id == epoch + 1


@pytest.mark.parametrize("compacted", [False, True])
def test_a_downgrade_survives_a_restart(world: World, compacted: bool) -> None:
    first, second = mixed(world)
    world.heartbeat("m", -1)
    again = world.restarted(compacted=compacted)
    group = again.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    for member in (first, second):
        member.world = again
        member.generation = group.generation_id
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, "what m had is nobody's yet"
    parked = first.ask_join()
    assert second.join().error_code == 0
    assert parked.result().error_code == 0
    assert group.members.leader_id in group.members.by_id


def test_a_consumer_member_that_falls_silent_turns_it_too(world: World) -> None:
    first, second = mixed(world)
    for _ in range(5):
        world.elapse(10_000)
        first.heartbeat()
        second.heartbeat()
    assert group_type(world) == "classic"


def test_an_administrator_may_turn_it(world: World) -> None:
    first, second = mixed(world)
    response = first.leave(MemberIdentity(member_id="m"))
    assert [answer.error_code for answer in response.members] == [0, 0]
    assert group_type(world) == "classic"
    group = world.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert list(group.members.by_id) == [second.member_id]


def test_a_downgrade_that_cannot_be_stored_leaves_the_consumer_group(world: World) -> None:
    first, _ = mixed(world)
    group = world.group()
    world.refusal = errors.CoordinatorNotAvailable()
    with pytest.raises(errors.CoordinatorNotAvailable):
        world.heartbeat("m", -1)
    world.refusal = None
    assert world.group() is group
    assert first.heartbeat() == 0
    world.heartbeat("m", -1)
    assert group_type(world) == "classic"


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_the_policy_may_forbid_downgrades(world: World, policy: str) -> None:
    mixed(world)
    again = world.restarted(group_consumer_migration_policy=policy)
    again.heartbeat("m", -1)
    assert again.group().classic_protocols.member_count == 2


def test_while_another_consumer_member_stays_the_group_does_too(world: World) -> None:
    mixed(world)
    world.join("n", "t")
    world.heartbeat("m", -1)
    assert group_type(world) == "consumer"


def test_the_last_consumer_member_is_replaced_by_a_classic_one(world: World) -> None:
    consumer = world.join("m", "t", instance_id="i")
    classic = ClassicClient(world, "t", instance_id="i")
    response = classic.join()
    assert (response.error_code, response.generation_id) == (0, consumer.epoch)
    group = world.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    assert group.state_name() == "Stable"
    assert classic.sync() == 0
    assert classic.owned == {"t": {0, 1, 2, 3}}
    with pytest.raises(errors.GroupIdNotFound):
        consumer.beat()
    again = world.restarted(compacted=True)
    classic.world = again
    assert (classic.heartbeat(), classic.sync()) == (0, 0)
    assert classic.owned == {"t": {0, 1, 2, 3}}


def test_a_group_too_large_for_a_classic_group_is_not_downgraded(world: World) -> None:
    mixed(world)
    again = world.restarted(group_max_size=1)
    again.heartbeat("m", -1)
    assert again.group().classic_protocols.member_count == 2
