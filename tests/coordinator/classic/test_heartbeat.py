"""Heartbeat: the answer in each state, and sessions that expire."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.coordinator.classic.shard import GROUP, RANGE, REBALANCE_MS, SESSION_MS, Shard


@pytest.fixture
def shard() -> Shard:
    return Shard()


def test_a_stable_group_and_one_that_syncs_say_all_is_well(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    assert shard.heartbeat(follower, 2) == 0
    shard.join(leader)
    shard.join(follower)
    assert shard.group().state == "CompletingRebalance"
    assert shard.heartbeat(follower, 3) == 0


def test_a_member_learns_of_a_rebalance_by_its_heartbeat(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    shard.join(leader)
    assert shard.heartbeat(follower, 2) == 27
    assert shard.heartbeat(leader, 2) == 27


def test_errors_in_order(shard: Shard) -> None:
    assert shard.heartbeat("m", 1) == 25
    (leader,) = shard.form("a")
    assert shard.heartbeat("nobody", 7) == 25
    assert shard.heartbeat(leader, 7, instance_id="i") == 25
    assert shard.heartbeat(leader, 7) == 22
    shard.leave((leader, None))
    assert shard.heartbeat(leader, 1) == 25


# Sessions


def test_a_session_lasts_from_heartbeat_to_heartbeat(shard: Shard) -> None:
    (leader,) = shard.form("a")
    for _ in range(5):
        shard.advance(SESSION_MS - 1)
        assert shard.heartbeat(leader, 1) == 0
    shard.advance(SESSION_MS)
    assert shard.heartbeat(leader, 1) == 25
    assert shard.group().state == "Empty"
    assert shard.nothing_waits()


def test_when_the_last_member_is_gone_the_group_is_stored_empty(shard: Shard) -> None:
    shard.form("a")
    shard.advance(SESSION_MS)
    value = shard.stored()[-1].value
    assert (value.generation, value.protocol_type, value.protocol) == (2, "consumer", None)
    assert (value.leader, value.members) == (None, [])
    assert value.current_state_timestamp == shard.context.wall_ms()


def test_the_others_rebalance_when_a_session_ends(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    shard.advance(SESSION_MS - 1)
    shard.heartbeat(follower, 2)
    shard.advance(1)
    assert list(shard.group().members.by_id) == [follower]
    assert shard.group().members.leader_id == follower
    assert shard.heartbeat(follower, 2) == 27


def test_a_session_that_ends_while_others_join_lets_them_go_on(shard: Shard) -> None:
    leader, _ = shard.form("a", "b")
    again = shard.join(leader)
    shard.advance(SESSION_MS - 1)
    assert not again.done()
    shard.advance(1)
    assert [m.member_id for m in again.result().members] == [leader]


def test_a_member_that_waits_to_join_needs_no_heartbeats(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    again = shard.join(leader)
    for _ in range(5):
        shard.advance(SESSION_MS - 1)
        shard.heartbeat(follower, 2)
    shard.join(follower)
    assert again.result().generation_id == 3
    shard.advance(SESSION_MS - 1)
    assert leader in shard.group().members.by_id
    shard.advance(1)
    assert leader not in shard.group().members.by_id


def test_a_heartbeat_while_others_join_keeps_the_session(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    shard.join(leader)
    shard.advance(SESSION_MS - 1)
    assert shard.heartbeat(follower, 2) == 27
    shard.advance(SESSION_MS - 1)
    assert follower in shard.group().members.by_id


def test_syncs_and_joins_keep_the_session(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    for _ in range(3):
        shard.advance(SESSION_MS - 1)
        assert shard.sync(leader, 2).result().error_code == 0
        assert shard.join(follower).result().error_code == 0
    assert len(shard.group().members.by_id) == 2


def test_a_commit_keeps_the_session(shard: Shard) -> None:
    (leader,) = shard.form("a")
    for _ in range(3):
        shard.advance(SESSION_MS - 1)
        shard.locked(lambda: shard.group().offset_commit_accepted(leader))
    shard.locked(lambda: shard.group().offset_commit_accepted("nobody"))
    assert leader in shard.group().members.by_id


def test_a_shorter_session_counts_from_the_join_that_says_so(shard: Shard) -> None:
    (leader,) = shard.form("a", session_ms=4 * SESSION_MS)
    shard.join(leader, session_ms=SESSION_MS)
    shard.assign({})
    shard.advance(SESSION_MS - 1)
    assert leader in shard.group().members.by_id
    shard.advance(1)
    assert leader not in shard.group().members.by_id


def test_a_member_has_five_minutes_for_its_first_join(shard: Shard) -> None:
    leader, follower = shard.form("a", "b", rebalance_ms=900_000)
    newcomer = shard.join(version=3)
    for _ in range(30):
        shard.advance(SESSION_MS - 1)
        shard.heartbeat(leader, 2)
        shard.heartbeat(follower, 2)
    shard.advance(300_000 - 30 * (SESSION_MS - 1))
    assert (newcomer.result().error_code, newcomer.result().member_id) == (25, "")
    assert list(shard.group().members.by_id) == [leader, follower]


# The cost of a client that vanishes


@pytest.mark.parametrize("steps", ["join", "join again", "sync", "stable"])
def test_a_client_that_vanishes_is_forgotten_after_a_session_timeout(
    shard: Shard, steps: str
) -> None:
    member_id = shard.member_id()
    if steps != "join":
        shard.join(member_id)
    if steps in ("sync", "stable"):
        shard.sync(member_id, 1, {member_id: b"A"})
    if steps == "stable":
        shard.heartbeat(member_id, 1)
    shard.advance(SESSION_MS)
    group, members = shard.group(), shard.group().members
    assert group.state == "Empty"
    assert not (members.by_id or members.pending or members.static_ids or members.leader_id)
    assert not (members.pending_sync or members.awaiting_join_count)
    assert members.support_one_of(RANGE), "a protocol of a member that is gone still counts"
    assert (group.delayed_join, group.delayed_sync) == (None, None)
    assert shard.nothing_waits()


@pytest.mark.slow
def test_many_clients_that_vanish_leave_nothing(shard: Shard) -> None:
    for index in range(300):
        shard.join(version=3, group_id=f"{GROUP}-{index % 7}")
        shard.join(group_id=f"{GROUP}-{index % 7}")
    shard.advance(SESSION_MS + REBALANCE_MS + 300_000)
    assert {group.state_name() for group in shard.groups.values()} == {"Empty"}
    assert shard.nothing_waits()


def test_a_heartbeat_touches_no_purgatory(shard: Shard) -> None:
    (leader,) = shard.form("a")
    session = shard.group().members.by_id[leader].session
    for _ in range(2000):
        shard.heartbeat(leader, 1)
    assert shard.group().members.by_id[leader].session is session
    assert (shard.heartbeats.watched, shard.heartbeats.delayed) == (1, 1)
    deferred: list[Callable[[], None]] = []
    shard.context.move_deferred(deferred)
    assert deferred == []
