"""The rules of `Group` for consumer groups: offsets, and the lists."""

from __future__ import annotations

import pytest

from embedlog import errors
from tests.coordinator.consumer.classic_client import ClassicClient
from tests.coordinator.consumer.world import World, settle


@pytest.fixture
def world() -> World:
    made = World()
    made.make_topic("t", 4)
    return made


def commit(
    world: World, member_id: str, epoch: int, *numbers: int, version: int = 9, in_txn: bool = False
) -> None:
    """Validate a commit; raises if it is refused."""
    topic_id = world.image.topics_by_name["t"].topic_id
    world.group().validate_offset_commit(
        member_id,
        None,
        epoch,
        is_transactional=in_txn,
        api_version=version,
        partitions=[(topic_id, number) for number in numbers],
    )


def test_commits_at_the_members_epoch(world: World) -> None:
    member = world.join("m", "t")
    commit(world, "m", member.epoch, 0)
    for epoch in (member.epoch + 1, -1):
        with pytest.raises(errors.StaleMemberEpoch):
            commit(world, "m", epoch, 0)
    for name in ("x", ""):
        with pytest.raises(errors.UnknownMemberId):
            commit(world, name, -1, 0)


def test_partitions_are_committed_at_any_epoch_since_they_came(world: World) -> None:
    first, second = world.join("m1", "t"), world.join("m2", "t")
    settle(first, second)
    assert (first.epoch, first.owned) == (3, {"t": {0, 1}})
    commit(world, "m1", 2, 0, 1)
    for numbers in ((2,), (0, 1, 2)):
        with pytest.raises(errors.StaleMemberEpoch):
            commit(world, "m1", 2, *numbers)
    with pytest.raises(errors.StaleMemberEpoch):
        commit(world, "m1", 1, 0)
    with pytest.raises(errors.StaleMemberEpoch):
        commit(world, "m2", 2, 2)
    commit(world, "m1", 3, 0, 1, 2, 3)


def test_an_old_version_cannot_commit_for_a_consumer_member(world: World) -> None:
    member = world.join("m", "t")
    with pytest.raises(errors.UnsupportedVersion):
        commit(world, "m", member.epoch, 0, version=8)
    commit(world, "m", member.epoch, 0, version=5, in_txn=True)


def test_classic_members_commit_with_their_generation(world: World) -> None:
    world.join("m", "t")
    classic = ClassicClient(world, "t")
    classic.join()
    commit(world, classic.member_id, classic.generation, 0, version=2)
    with pytest.raises(errors.IllegalGeneration):
        commit(world, classic.member_id, classic.generation - 1, 0)


def test_without_members_anyone_commits(world: World) -> None:
    world.join("m", "t").leave()
    commit(world, "", -1, 0)
    with pytest.raises(errors.UnknownMemberId):
        commit(world, "m", 2, 0)


def test_who_may_ask_for_offsets(world: World) -> None:
    member = world.join("m", "t")
    group = world.group()
    group.validate_offset_fetch(None, -1)
    group.validate_offset_fetch("m", member.epoch)
    with pytest.raises(errors.UnknownMemberId):
        group.validate_offset_fetch("", -1)
    with pytest.raises(errors.StaleMemberEpoch):
        group.validate_offset_fetch("m", member.epoch + 1)
    with pytest.raises(errors.UnknownMemberId):
        group.validate_offset_fetch("x", 1)


def test_only_an_empty_group_may_be_deleted(world: World) -> None:
    member = world.join("m", "t")
    with pytest.raises(errors.NonEmptyGroup):
        world.group().validate_delete()
    member.leave()
    world.group().validate_delete()


def test_offsets_of_what_is_read_stay(world: World) -> None:
    world.make_topic("u1", 1)
    world.join("m1", "t")
    world.join("m2", subscribed_topic_regex="u.*")
    group = world.group()
    group.validate_offset_delete()
    assert [group.is_subscribed_to(name) for name in ("t", "u1", "other")] == [True, True, False]
    base = group.offset_expiry_base()
    assert base is not None
    assert base(7) == 7


def test_names(world: World) -> None:
    member = world.join("m", "t")
    group = world.group()
    assert (group.GROUP_TYPE, group.protocol_type) == ("consumer", "consumer")
    assert (group.state_name(), group.is_empty()) == ("Stable", False)
    member.leave()
    assert (group.state_name(), group.is_empty()) == ("Empty", True)


def test_a_restart_loses_nothing(world: World) -> None:
    first, second = world.join("m1", "t"), world.join("m2", "t")
    first.beat()
    for again in (world.restarted(), world.restarted(compacted=True)):
        group, before = again.group(), world.group()
        assert group.members == before.members
        assert group.target == before.target
        assert (group.group_epoch, group.target_epoch) == (3, 3)
        assert group.metadata_hash == before.metadata_hash
    first.world = second.world = again
    settle(first, second)
    assert (first.owned, second.owned) == ({"t": {0, 1}}, {"t": {2, 3}})
    assert (first.epoch, second.epoch) == (3, 3)


def test_sessions_and_rebalance_time_outs_begin_anew_after_a_restart(world: World) -> None:
    first, second = world.join("m1", "t"), world.join("m2", "t")
    first.beat()
    again = world.restarted()
    first.world = second.world = again
    again.elapse(29_999)
    first.beat()
    second.beat()
    again.elapse(1)
    assert list(again.group().members) == ["m2"]
    again.elapse(45_000)
    assert again.group().is_empty()
