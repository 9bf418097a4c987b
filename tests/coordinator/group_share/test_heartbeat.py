"""ShareGroupHeartbeat: epochs, assignments, sessions, and the records behind them."""

from __future__ import annotations

import pytest

from embedlog import errors
from embedlog.errors import ConfigError, KafkaError
from tests.coordinator.group_share.world import GROUP, SESSION_MS, Sharer, ShareWorld
from wire.error_codes import ErrorCode
from wire.schemas import share_group_metadata as schema


@pytest.fixture
def world() -> ShareWorld:
    made = ShareWorld()
    made.make_topic("t", 2)
    return made


def types(records: object) -> list[str]:
    assert isinstance(records, list)
    return [type(each.key).__name__ for each in records]


def refused(code: int, world: ShareWorld, member_id: str, epoch: int, *topics: str) -> None:
    with pytest.raises(KafkaError) as caught:
        world.beat(member_id, epoch, *topics)
    assert caught.value.code == code


def test_the_first_answer_is_empty_and_the_next_has_the_partitions(world: ShareWorld) -> None:
    answer = world.beat("m", 0, "t")
    assert (answer.member_epoch, answer.heartbeat_interval_ms) == (2, 5000)
    assert answer.assignment is not None
    assert not answer.assignment.topic_partitions
    answer = world.beat("m", 2)
    assert answer.member_epoch == 3
    assert world.held_by("m") == {"t": {0, 1}}
    assert world.beat("m", 3).assignment is None


def test_a_member_without_partitions_may_be_asked_to_come_back_soon() -> None:
    world = ShareWorld(
        embedlog_share_first_heartbeat_ms=50, group_share_assignment_interval_ms=1000
    )
    assert world.beat("m", 0, "t").heartbeat_interval_ms == 5000, "there is no such topic yet"
    world.make_topic("t", 1)
    answer = world.beat("m", 2)
    assert (answer.heartbeat_interval_ms, answer.assignment) == (50, None)
    answer = world.beat("m", answer.member_epoch)
    assert (answer.heartbeat_interval_ms, world.held_by("m")) == (5000, {"t": {0}})


def test_the_records_of_a_first_heartbeat_have_kafkas_order(world: ShareWorld) -> None:
    world.beat("m", 0, "t")
    world.beat("m", 2)
    assert [types(batch) for batch in world.batches] == [
        [
            "ShareGroupMemberMetadataKey",
            "ShareGroupMetadataKey",
            "ShareGroupTargetAssignmentMemberKey",
            "ShareGroupTargetAssignmentMetadataKey",
            "ShareGroupCurrentMemberAssignmentKey",
            "ShareGroupStatePartitionMetadataKey",
        ],
        ["ShareGroupStatePartitionMetadataKey"],
        [
            "ShareGroupMetadataKey",
            "ShareGroupTargetAssignmentMemberKey",
            "ShareGroupTargetAssignmentMetadataKey",
            "ShareGroupCurrentMemberAssignmentKey",
        ],
    ]


def test_a_heartbeat_that_changes_nothing_writes_nothing(world: ShareWorld) -> None:
    member = Sharer(world, "m", "t")
    member.beat()
    count = len(world.batches)
    for _ in range(3):
        assert member.beat() is None
    assert len(world.batches) == count
    assert world.states.calls == ["initialize"]


def test_a_member_of_the_same_data_joins_again_without_a_new_epoch(world: ShareWorld) -> None:
    member = Sharer(world, "m", "t")
    member.beat()
    answer = world.beat("m", 0, "t")
    assert answer.member_epoch == member.epoch == 3
    assert world.named(answer) == {"t": {0, 1}}  # type: ignore[arg-type]
    assert world.share_group().group_epoch == 3


def test_only_topics_and_members_raise_the_epoch(world: ShareWorld) -> None:
    member = Sharer(world, "m", "t")
    member.beat()
    world.beat("m", 3, rack_id="r")
    assert world.share_group().members["m"].rack_id == "r"
    world.beat("m", 3, names=["t", "t"])
    assert world.share_group().group_epoch == 3
    world.beat("m", 3, names=["t", "unknown"])
    assert world.share_group().group_epoch == 4
    world.beat("m", 4, names=[])
    assert world.held_by("m") == {}
    assert world.share_group().group_epoch == 5


def test_the_previous_epoch_is_accepted_and_others_are_fenced(world: ShareWorld) -> None:
    Sharer(world, "m", "t").beat()
    assert world.beat("m", 2).member_epoch == 3
    for epoch in (1, 4, 99):
        refused(ErrorCode.FENCED_MEMBER_EPOCH, world, "m", epoch)


def test_unknown_groups_and_members(world: ShareWorld) -> None:
    refused(ErrorCode.GROUP_ID_NOT_FOUND, world, "m", 1)
    refused(ErrorCode.GROUP_ID_NOT_FOUND, world, "m", -1)
    assert GROUP not in world.shard.groups
    world.beat("m", 0, "t")
    refused(ErrorCode.UNKNOWN_MEMBER_ID, world, "n", 2)
    refused(ErrorCode.UNKNOWN_MEMBER_ID, world, "n", -1)


def test_two_members_share_the_partitions(world: ShareWorld) -> None:
    one = Sharer(world, "m", "t")
    one.beat()
    two = Sharer(world, "n", "t")
    assert one.beat() == {"t": {0}}
    assert two.held == {"t": {1}}
    three = Sharer(world, "o", "t")
    assert three.held in ({"t": {0}}, {"t": {1}})


def test_leaving_gives_the_partitions_to_the_others(world: ShareWorld) -> None:
    one, two = Sharer(world, "m", "t"), Sharer(world, "n", "t")
    for each in (one, two):
        each.beat()
    one.leave()
    assert two.beat() == {"t": {0, 1}}
    group = world.share_group()
    epoch = group.group_epoch
    two.leave()
    assert group.state_name() == "Empty"
    assert group.group_epoch == group.target_epoch == epoch + 1
    assert not group.names
    assert not group.target


def test_a_full_group_takes_no_more_members(world: ShareWorld) -> None:
    small = ShareWorld(like=world, group_share_max_size=1)
    small.beat("m", 0, "t")
    refused(ErrorCode.GROUP_MAX_SIZE_REACHED, small, "n", 0, "t")
    refused(ErrorCode.GROUP_MAX_SIZE_REACHED, small, "n", 1)
    small.beat("m", 0, "t")


def test_a_silent_member_is_removed_after_its_session(world: ShareWorld) -> None:
    one, two = Sharer(world, "m", "t"), Sharer(world, "n", "t")
    world.elapse(SESSION_MS - 1)
    two.beat()
    assert set(world.share_group().members) == {"m", "n"}
    epoch = world.share_group().group_epoch
    world.elapse(1)
    assert set(world.share_group().members) == {"n"}
    assert world.share_group().group_epoch == epoch + 1
    refused(ErrorCode.UNKNOWN_MEMBER_ID, world, "m", one.epoch)
    assert two.beat() == {"t": {0, 1}}


def test_a_group_has_its_own_times(world: ShareWorld) -> None:
    world.configure(GROUP, share_session_timeout_ms="50000", share_heartbeat_interval_ms="7000")
    assert world.beat("m", 0, "t").heartbeat_interval_ms == 7000
    world.elapse(SESSION_MS)
    assert not world.share_group().is_empty()
    world.elapse(5000)
    assert world.share_group().is_empty()


def test_an_assignment_waits_for_its_interval() -> None:
    world = ShareWorld(group_share_assignment_interval_ms=1000)
    world.make_topic("t", 2)
    member = Sharer(world, "m", "t")
    assert member.beat() is None
    assert world.share_group().group_epoch == 3
    member.beat()
    assert world.share_group().group_epoch == 3
    world.elapse(1000)
    assert member.beat() == {"t": {0, 1}}


def test_topics_that_a_member_no_longer_reads_go_at_once() -> None:
    world = ShareWorld(group_share_assignment_interval_ms=1000)
    world.make_topic("t", 1)
    world.make_topic("u", 1)
    member = Sharer(world, "m", "t", "u")
    world.elapse(1000)
    assert member.beat() == {"t": {0}, "u": {0}}
    assert member.beat("u") == {"u": {0}}
    assert world.share_group().target_epoch < world.share_group().group_epoch


@pytest.mark.parametrize("compacted", [False, True])
def test_a_restarted_shard_knows_its_members(world: ShareWorld, compacted: bool) -> None:
    one, two = Sharer(world, "m", "t"), Sharer(world, "n", "t")
    for _ in range(2):
        one.beat()
        two.beat()
    again = world.restarted(compacted=compacted)
    assert again.share_group().members == world.share_group().members
    assert again.share_group().target == world.share_group().target
    assert again.share_group().state_topics == world.share_group().state_topics
    answer = again.beat("m", one.epoch)
    assert (answer.member_epoch, answer.assignment) == (one.epoch, None)
    again.elapse(SESSION_MS)
    assert again.share_group().is_empty()


def test_a_failed_append_changes_nothing_and_asks_nobody(world: ShareWorld) -> None:
    world.refusal = errors.CoordinatorNotAvailable()
    refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, world, "m", 0, "t")
    assert not world.shard.groups
    assert not world.states.calls
    world.refusal = None
    assert world.beat("m", 0, "t").member_epoch == 2


def test_members_of_this_process_end_with_it(world: ShareWorld) -> None:
    from embedlog.common import IN_PROCESS_HOST
    from embedlog.coordinator.group.group import ClientIdentity
    from wire.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest

    request = ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id="here", member_epoch=0, subscribed_topic_names=["t"]
    )
    here = ClientIdentity.of("test", IN_PROCESS_HOST)
    world.write(lambda shard: shard.share_heartbeat(here, request))
    world.beat("elsewhere", 0, "t")
    (result,) = world.restarted().shard.opened()
    gone = [each.key.member_id for each in result.records if hasattr(each.key, "member_id")]
    assert set(gone) == {"here"}


def test_an_empty_share_group_never_expires(world: ShareWorld) -> None:
    world.beat("m", 0, "t")
    world.beat("m", -1)
    world.elapse(8 * 24 * 3_600_000)
    assert GROUP in world.shard.groups


def test_a_group_of_another_type_is_not_touched(world: ShareWorld) -> None:
    world.heartbeat("c", 0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"],
                    topic_partitions=[])  # fmt: skip
    refused(ErrorCode.GROUP_ID_NOT_FOUND, world, "m", 0, "t")
    assert world.group().members.keys() == {"c"}


def test_a_test_may_keep_members_alive_or_end_them(world: ShareWorld) -> None:
    for name in ("m", "n"):
        world.beat(name, 0, "t")
    world.elapse(SESSION_MS - 1)
    assert world.shard.keep_alive(lambda _g, name, _ms: name == "m") == SESSION_MS
    world.elapse(1)
    assert set(world.share_group().members) == {"m"}
    counts: list[int] = []

    def end(shard: object) -> object:
        from embedlog.coordinator.result import Result

        counts.append(world.shard.expire_sessions(lambda _g, _m: True))
        return Result()

    world.write(end)  # type: ignore[arg-type]
    assert counts == [1]
    assert world.share_group().is_empty()


def test_an_assignor_that_does_not_exist_is_an_error(world: ShareWorld) -> None:
    wrong = ShareWorld(like=world, group_share_assignors="range")
    with pytest.raises(ConfigError):
        wrong.beat("m", 0, "t")


def test_records_of_a_tombstone_have_no_effect_on_unknown_groups(world: ShareWorld) -> None:
    world.shard.share.replay(schema.ShareGroupMetadataKey(group_id="x"), None)
    world.shard.share.replay(
        schema.ShareGroupCurrentMemberAssignmentKey(group_id="x", member_id="m"), None
    )
    assert "x" not in world.shard.groups
