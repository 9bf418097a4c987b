"""The first state of share partitions: asked for once, again after a loss, and for new ones."""

from __future__ import annotations

import pytest

from tests.coordinator.group_share.world import GROUP, Sharer, ShareWorld
from wire.error_codes import ErrorCode

RETRY_MS = 30_000


@pytest.fixture
def world() -> ShareWorld:
    made = ShareWorld()
    made.make_topic("t", 2)
    return made


def starts(world: ShareWorld) -> dict[int, int]:
    """Return the start offset of each partition that has state, whatever its topic."""
    return {place[1]: each.start_offset for (_, place), each in world.states.states.items()}


def test_the_state_begins_at_any_offset_in_the_epoch_of_the_group(world: ShareWorld) -> None:
    world.beat("m", 0, "t")
    assert starts(world) == {0: -1, 1: -1}
    assert set(world.states.epochs.values()) == {2}


def test_partitions_are_assigned_only_once_they_have_state(world: ShareWorld) -> None:
    world.states.holds = True
    member = Sharer(world, "m", "t")
    for _ in range(3):
        assert member.beat() is None
    assert world.states.calls == ["initialize"]
    assert not world.share_group().state_topics.initialized
    world.states.release()
    assert world.initialized() == {"t": {0, 1}}
    assert member.beat() == {"t": {0, 1}}


def test_after_an_error_each_heartbeat_asks_again(world: ShareWorld) -> None:
    world.states.code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    member = Sharer(world, "m", "t")
    assert not world.share_group().state_topics.initializing
    member.beat()
    assert world.states.calls == ["initialize"] * 2
    world.states.code = 0
    member.beat()
    assert member.beat() == {"t": {0, 1}}


def test_a_lost_answer_is_asked_for_again_after_a_while(world: ShareWorld) -> None:
    world.states.holds = True
    member = Sharer(world, "m", "t")
    world.states.held.clear()
    world.states.holds = False
    world.elapse(RETRY_MS - 1)
    member.beat()
    assert world.states.calls == ["initialize"]
    world.elapse(1)
    member.beat()
    assert world.states.calls == ["initialize"] * 2
    assert member.beat() == {"t": {0, 1}}


def test_the_wait_for_an_answer_does_not_depend_on_other_topics(world: ShareWorld) -> None:
    world.states.holds = True
    member = Sharer(world, "m", "t")
    world.states.held.clear()
    world.elapse(RETRY_MS - 1)
    world.make_topic("u", 1)
    member.beat("t", "u")
    world.states.holds = False
    world.elapse(1)
    member.beat()
    assert world.initialized() == {"t": {0, 1}}
    world.states.release()
    assert world.initialized() == {"t": {0, 1}, "u": {0}}


def test_the_wait_for_a_lost_answer_can_be_set(world: ShareWorld) -> None:
    short = ShareWorld(like=world, group_share_initialize_retry_interval_ms=1000)
    short.states.holds = True
    member = Sharer(short, "m", "t")
    short.elapse(1000)
    member.beat()
    assert short.states.calls == ["initialize"] * 2


def test_a_restarted_shard_asks_again(world: ShareWorld) -> None:
    world.states.holds = True
    member = Sharer(world, "m", "t")
    world.states.held.clear()
    world.states.holds = False
    again = world.restarted()
    assert again.share_group().state_topics.initializing
    again.beat("m", member.epoch)
    again.elapse(RETRY_MS)
    again.beat("m", member.epoch)
    assert again.initialized() == {"t": {0, 1}}


def test_later_partitions_of_a_topic_begin_at_0(world: ShareWorld) -> None:
    """Records that arrive before their first fetch would be lost with the reset rule "latest"."""
    member = Sharer(world, "m", "t")
    member.beat()
    world.make_topic("t", 4)
    member.beat()
    assert member.beat() == {"t": {0, 1, 2, 3}}
    assert starts(world) == {0: -1, 1: -1, 2: 0, 3: 0}


def test_a_topic_that_comes_later_is_assigned(world: ShareWorld) -> None:
    member = Sharer(world, "m", "t", "late")
    member.beat()
    world.make_topic("late", 1)
    member.beat()
    assert member.beat() == {"t": {0, 1}, "late": {0}}


def test_a_deleted_topic_goes_from_members_and_state(world: ShareWorld) -> None:
    world.make_topic("u", 1)
    member = Sharer(world, "m", "t", "u")
    member.beat()
    world.forget_topic("t")
    assert world.initialized() == {"u": {0}}
    assert member.beat() == {"u": {0}}
    world.make_topic("t", 1)
    member.beat()
    assert member.beat() == {"t": {0}, "u": {0}}


def test_an_answer_for_a_topic_deleted_meanwhile_is_ignored(world: ShareWorld) -> None:
    world.states.holds = True
    member = Sharer(world, "m", "t")
    world.forget_topic("t")
    world.states.release()
    assert not world.share_group().state_topics.initialized
    world.states.holds = False
    assert member.beat() is None


def test_an_answer_for_a_group_deleted_meanwhile_is_ignored(world: ShareWorld) -> None:
    world.states.holds = True
    member = Sharer(world, "m", "t")
    member.leave()
    world.states.holds = False
    assert world.delete_group().result().error_code == 0
    world.states.release()
    assert GROUP not in world.shard.groups


def test_an_answer_that_cannot_be_stored_is_asked_for_again(world: ShareWorld) -> None:
    from embedlog import errors

    world.states.holds = True
    member = Sharer(world, "m", "t")
    world.refusal = errors.CoordinatorNotAvailable()
    world.states.release()
    world.refusal = None
    world.states.holds = False
    world.elapse(RETRY_MS)
    member.beat()
    assert member.beat() == {"t": {0, 1}}


def test_initialized_partitions_stay_when_nobody_reads_them(world: ShareWorld) -> None:
    member = Sharer(world, "m", "t")
    member.beat()
    member.leave()
    assert world.initialized() == {"t": {0, 1}}
    back = Sharer(world, "n", "t")
    assert back.held == {"t": {0, 1}}
    assert world.states.calls == ["initialize"]
