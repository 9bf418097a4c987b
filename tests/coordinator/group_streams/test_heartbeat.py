"""StreamsGroupHeartbeat: assignments, time limits, and the records behind them."""

from __future__ import annotations

import pytest

from embedlog import errors
from embedlog.coordinator.group.streams import status
from tests.coordinator.consumer.world import GROUP
from tests.coordinator.group_streams.world import (
    REBALANCE_MS,
    SESSION_MS,
    Streamer,
    StreamsWorld,
    topology,
)

STATELESS = topology("t", stateful=False)


@pytest.fixture
def world() -> StreamsWorld:
    made = StreamsWorld()
    made.make_topic("t", 4)
    return made


def settle(*members: Streamer) -> None:
    for _ in range(3):
        for member in members:
            member.beat()


def test_the_first_member_gets_all_tasks_and_a_second_one_half(world: StreamsWorld) -> None:
    first = Streamer(world, "a", STATELESS)
    assert first.active == {("0", n) for n in range(4)}
    second = Streamer(world, "b", STATELESS)
    assert second.active == set()
    settle(first, second)
    assert first.active | second.active == {("0", n) for n in range(4)}
    assert (len(first.active), len(second.active)) == (2, 2)
    assert world.streams_group().state_name() == "Stable"


def test_tasks_move_only_after_their_member_has_given_them_up(world: StreamsWorld) -> None:
    first, second = Streamer(world, "a", STATELESS), Streamer(world, "b", STATELESS)
    first.beat()
    assert len(first.closing) == 2
    second.beat()
    assert second.active == set()
    first.beat()
    second.beat()
    assert len(second.active) == 2


def test_a_heartbeat_that_changes_nothing_writes_nothing(world: StreamsWorld) -> None:
    member = Streamer(world, "a", STATELESS)
    count = len(world.batches)
    for _ in range(3):
        assert member.beat().active_tasks is None
    world.make_topic("unrelated", 1)
    member.beat()
    assert len(world.batches) == count


def test_missing_internal_topics_are_named_until_they_exist(world: StreamsWorld) -> None:
    response = world.join("a", topology("t"))
    assert world.codes(response) == [status.MISSING_INTERNAL_TOPICS]
    assert [(topic.name, topic.partition_count) for topic in world.answer.missing] == [
        ("t-changelog", 4)
    ]
    assert world.streams_group().state_name() == "NotReady"
    world.make_topic("t-changelog", 4)
    response = world.beat("a", response.member_epoch)
    assert world.codes(response) == []
    assert response.active_tasks
    assert not world.answer.missing


def test_a_refused_append_leaves_the_group_as_it_was(world: StreamsWorld) -> None:
    world.refusal = errors.CoordinatorNotAvailable()
    with pytest.raises(errors.CoordinatorNotAvailable):
        world.join("a", STATELESS)
    assert not world.shard.groups
    world.refusal = None
    member = Streamer(world, "a", STATELESS)
    world.make_topic("t", 5)
    world.refusal = errors.CoordinatorNotAvailable()
    with pytest.raises(errors.CoordinatorNotAvailable):
        member.beat()
    world.refusal = None
    member.beat()
    assert ("0", 4) in member.active


def test_the_session_of_a_silent_member_ends(world: StreamsWorld) -> None:
    first, second = Streamer(world, "a", STATELESS), Streamer(world, "b", STATELESS)
    settle(first, second)
    world.elapse(SESSION_MS - 1)
    second.beat()
    world.elapse(2)
    assert list(world.streams_group().members) == ["b"]
    second.beat()
    assert len(second.active) == 4


def test_a_member_that_keeps_its_tasks_is_removed(world: StreamsWorld) -> None:
    first = Streamer(world, "a", STATELESS)
    second = Streamer(world, "b", STATELESS)
    report = first.report()
    first.beat()
    world.beat("a", first.epoch, **report)
    world.elapse(REBALANCE_MS + 1)
    assert list(world.streams_group().members) == ["b"]
    second.beat()
    assert len(second.active) == 4


def test_the_first_assignment_waits_for_more_members() -> None:
    world = StreamsWorld(group_streams_initial_rebalance_delay_ms=3000)
    world.make_topic("t", 4)
    first = Streamer(world, "a", STATELESS)
    assert (first.epoch, first.active) == (1, set())
    second = Streamer(world, "b", STATELESS)
    assert world.codes(second.beat()) == [status.ASSIGNMENT_DELAYED]
    world.elapse(3001)
    assert {name: len(t.active["0"]) for name, t in world.streams_group().target.items()} == {
        "a": 2,
        "b": 2,
    }
    first.beat()
    second.beat()
    assert (len(first.active), len(second.active)) == (2, 2)


def test_a_standby_copy_becomes_active_without_leaving_the_process(world: StreamsWorld) -> None:
    world.make_topic("t-changelog", 4)
    world.configure(GROUP, streams_num_standby_replicas="1")
    first, second = Streamer(world, "a", topology("t")), Streamer(world, "b", topology("t"))
    settle(first, second)
    assert first.active == second.standby
    assert second.active == first.standby
    copies = second.standby
    first.leave()
    second.beat()
    assert copies <= second.active
    assert not second.standby


def test_members_of_other_types_do_not_join(world: StreamsWorld) -> None:
    world.join("a", STATELESS)
    with pytest.raises(errors.GroupIdNotFound, match="not a consumer group"):
        world.heartbeat("c", 0, rebalance_timeout_ms=1, topic_partitions=[],
                        subscribed_topic_names=["t"])  # fmt: skip


@pytest.mark.parametrize("compacted", [False, True])
def test_a_restarted_shard_has_the_same_groups(world: StreamsWorld, compacted: bool) -> None:
    world.make_topic("t-changelog", 4)
    world.configure(GROUP, streams_num_standby_replicas="1")
    first = Streamer(world, "a", topology("t", epoch=3), instance_id="i", rack_id="r")
    second = Streamer(world, "b", topology("t", epoch=3))
    settle(first)
    before = world.streams_group()
    again = world.restarted(compacted=compacted)
    after = again.streams_group()
    for name in ("members", "target", "target_epoch", "topology", "static_members"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.facts() == before.facts()
    assert after.state_name() == before.state_name() == "Reconciling"
    first.world = second.world = again
    settle(first, second)
    assert after.state_name() == "Stable"
    assert first.active | second.active == {("0", n) for n in range(4)}
    again.elapse(SESSION_MS + 1)
    assert not after.members, "the sessions of loaded members run"


def test_a_deleted_group_leaves_no_records(world: StreamsWorld) -> None:
    member = Streamer(world, "a", STATELESS)
    member.leave()
    world.write(lambda shard: shard.delete_group(GROUP, None))  # type: ignore[arg-type]
    assert GROUP not in world.shard.groups
    last = dict(world.log)
    assert set(last.values()) == {None}
