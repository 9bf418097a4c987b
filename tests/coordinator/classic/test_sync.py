"""SyncGroup: assignments are answered once they are stored."""

from __future__ import annotations

import pytest

from embedlog.errors import error_for
from tests.coordinator.classic.shard import REBALANCE_MS, SESSION_MS, Shard


@pytest.fixture
def shard() -> Shard:
    return Shard()


def completing(shard: Shard) -> tuple[str, str]:
    """Make a group between join and sync; return leader and follower, generation 3."""
    leader, follower = shard.form("a", "b")
    shard.join(leader)
    shard.join(follower)
    assert shard.group().state == "CompletingRebalance"
    return leader, follower


def test_everyone_waits_for_the_leader_and_gets_its_part(shard: Shard) -> None:
    leader, follower = completing(shard)
    waiting = shard.sync(follower, 3)
    assert not waiting.done()
    mine = shard.sync(leader, 3, {leader: b"A", follower: b"B"}).result()
    assert (mine.error_code, mine.assignment) == (0, b"A")
    assert (mine.protocol_type, mine.protocol_name) == ("consumer", "range")
    assert waiting.result().assignment == b"B"
    assert shard.group().state == "Stable"


def test_a_member_that_comes_late_gets_what_was_stored(shard: Shard) -> None:
    leader, follower = completing(shard)
    shard.sync(leader, 3, {leader: b"A", follower: b"B"})
    assert shard.sync(follower, 3).result().assignment == b"B"
    assert shard.sync(follower, 3).result().assignment == b"B"


def test_whom_the_leader_forgets_is_assigned_nothing_and_strangers_are_ignored(
    shard: Shard,
) -> None:
    leader, follower = completing(shard)
    waiting = shard.sync(follower, 3)
    shard.sync(leader, 3, {leader: b"A", "stranger": b"?"})
    assert (waiting.result().error_code, waiting.result().assignment) == (0, b"")


def test_what_a_follower_assigns_does_not_count(shard: Shard) -> None:
    leader, follower = completing(shard)
    waiting = shard.sync(follower, 3, {follower: b"mine"})
    shard.sync(leader, 3, {leader: b"A"})
    assert waiting.result().assignment == b""


def test_the_generation_is_stored_with_its_members(shard: Shard) -> None:
    leader, follower = completing(shard)
    shard.sync(leader, 3, {leader: b"A", follower: b"B"})
    value = shard.stored()[-1].value
    assert (value.protocol_type, value.generation, value.protocol) == ("consumer", 3, "range")
    assert value.leader == leader
    stored = [(m.member_id, m.client_id, m.client_host, m.subscription, m.assignment,
               m.rebalance_timeout, m.session_timeout, m.group_instance_id)
              for m in value.members]  # fmt: skip
    assert stored == [
        (leader, "client", "/127.0.0.1", b"r", b"A", REBALANCE_MS, SESSION_MS, None),
        (follower, "client", "/127.0.0.1", b"r", b"B", REBALANCE_MS, SESSION_MS, None),
    ]


def test_nobody_is_told_before_the_assignment_is_committed(shard: Shard) -> None:
    leader, follower = completing(shard)
    waiting = shard.sync(follower, 3)
    shard.holds_commits = True
    mine = shard.sync(leader, 3, {leader: b"A", follower: b"B"})
    assert not (mine.done() or waiting.done())
    assert shard.group().state == "CompletingRebalance"
    shard.commit()
    assert (mine.result().assignment, waiting.result().assignment) == (b"A", b"B")


def test_when_the_append_fails_everyone_hears_it_and_joins_again(shard: Shard) -> None:
    leader, follower = completing(shard)
    waiting = shard.sync(follower, 3)
    shard.refusal = error_for(15)
    mine = shard.sync(leader, 3, {leader: b"A", follower: b"B"})
    assert waiting.result().error_code == 15
    error = mine.error()
    assert error is not None and error.code == 15
    assert shard.group().state == "PreparingRebalance"
    assert [m.assignment for m in shard.group().members.by_id.values()] == [b"", b""]
    shard.refusal = None
    shard.join(follower)
    shard.join(leader)
    shard.assign({})


def test_a_commit_that_comes_after_the_next_rebalance_began_changes_nothing(shard: Shard) -> None:
    leader, follower = completing(shard)
    shard.holds_commits = True
    mine = shard.sync(leader, 3, {leader: b"A"})
    shard.join(follower, protocols=(("range", b"new"),))
    shard.commit()
    assert mine.result().error_code == 27
    assert shard.group().state == "PreparingRebalance"


def test_of_two_syncs_of_one_member_the_last_one_waits(shard: Shard) -> None:
    leader, follower = completing(shard)
    first = shard.sync(follower, 3)
    second = shard.sync(follower, 3)
    assert first.result().error_code == 27
    shard.sync(leader, 3, {follower: b"B"})
    assert second.result().assignment == b"B"


# Errors


def test_unknown_and_empty_groups_have_no_members(shard: Shard) -> None:
    assert shard.sync("m", 1).result().error_code == 25
    (leader,) = shard.form("a")
    shard.leave((leader, None))
    assert shard.sync(leader, 1).result().error_code == 25


def test_errors_of_the_member_come_before_those_of_the_generation(shard: Shard) -> None:
    leader, _ = completing(shard)
    assert shard.sync("nobody", 7).result().error_code == 25
    assert shard.sync(leader, 7, instance_id="i").result().error_code == 25
    assert shard.sync(leader, 7).result().error_code == 22
    assert shard.sync(leader, 7, protocol_name="x").result().error_code == 22
    assert shard.sync(leader, 3, protocol_name="x").result().error_code == 23
    assert shard.sync(leader, 3, protocol_type="x").result().error_code == 23


def test_before_version_5_nobody_names_the_protocol(shard: Shard) -> None:
    leader, _ = completing(shard)
    answer = shard.sync(leader, 3, {leader: b"A"}, protocol_type=None, protocol_name=None)
    assert answer.result().assignment == b"A"


def test_while_others_join_there_is_nothing_to_sync(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    shard.join(leader)
    assert shard.sync(follower, 2).result().error_code == 27
    assert shard.sync(follower, 1).result().error_code == 22


# Members that never sync


def test_members_that_never_sync_are_gone_after_the_rebalance_timeout(shard: Shard) -> None:
    leader, follower = shard.form("a", "b", session_ms=5 * REBALANCE_MS)
    for member_id in (leader, follower):
        shard.join(member_id, session_ms=5 * REBALANCE_MS)
    shard.sync(leader, 3, {leader: b"A", follower: b"B"})
    shard.advance(REBALANCE_MS - 1)
    assert shard.group().state == "Stable"
    shard.advance(1)
    assert list(shard.group().members.by_id) == [leader]
    assert shard.heartbeat(leader, 3) == 27


def test_followers_that_wait_for_a_silent_leader_hear_of_the_rebalance(shard: Shard) -> None:
    leader, follower = shard.form("a", "b", session_ms=5 * REBALANCE_MS)
    for member_id in (leader, follower):
        shard.join(member_id, session_ms=5 * REBALANCE_MS)
    waiting = shard.sync(follower, 3)
    shard.advance(REBALANCE_MS)
    assert waiting.result().error_code == 27
    assert list(shard.group().members.by_id) == [follower]
    assert shard.join(follower).result().leader == follower
    assert leader not in shard.group().members.by_id


def test_a_member_that_waits_for_the_leader_needs_no_heartbeats(shard: Shard) -> None:
    leader, follower = completing(shard)
    waiting = shard.sync(follower, 3)
    for _ in range(4):
        shard.advance(SESSION_MS - 1)
        assert shard.heartbeat(leader, 3) == 0
    assert not waiting.done()
    shard.sync(leader, 3, {follower: b"B"})
    assert waiting.result().assignment == b"B"
    shard.advance(SESSION_MS - 1)
    assert follower in shard.group().members.by_id  # it counts from the answer
    shard.advance(1)
    assert follower not in shard.group().members.by_id


def test_the_sync_timeout_ends_with_the_last_sync(shard: Shard) -> None:
    leader, follower = completing(shard)
    shard.sync(leader, 3, {})
    assert shard.joins.watched == 1
    shard.sync(follower, 3)
    assert shard.joins.watched == shard.joins.delayed == 0
