"""Commits, joins and rebalances that take long: the group may have moved on meanwhile."""

from __future__ import annotations

from tests.coordinator.classic.shard import SESSION_MS, Shard


def test_a_late_assignment_does_not_make_the_next_generation_stable() -> None:
    shard = Shard()
    leader, follower = shard.form("a", "b")
    generation = shard.group().generation_id
    third = shard.member_id()
    shard.join(third)
    shard.join(leader)
    shard.join(follower)
    assert shard.group().generation_id == generation + 1
    shard.holds_commits = True
    late = shard.sync(shard.group().members.leader_id or "", generation + 1, {leader: b"all"})
    assert not late.done()

    shard.join(shard.member_id())
    for member_id in (leader, follower, third):
        shard.join(member_id)
    assert shard.group().generation_id == generation + 2
    shard.commit()
    assert shard.group().state == "CompletingRebalance"


def test_a_first_join_may_wait_longer_than_a_session() -> None:
    shard = Shard()
    members = shard.form("a", "b")
    generation = shard.group().generation_id
    joined = shard.join(shard.member_id(session_ms=SESSION_MS), session_ms=SESSION_MS)
    for _ in range(4):
        shard.advance(SESSION_MS // 2)
        for member_id in members:
            shard.heartbeat(member_id, generation)
    assert not joined.done()
    for member_id in members:
        shard.join(member_id)
    assert joined.result().error_code == 0
    assert len(shard.group().members.by_id) == 3


def test_a_commit_during_a_rebalance_is_a_sign_of_life() -> None:
    shard = Shard()
    committing, other = shard.form("a", "b")
    generation = shard.group().generation_id
    shard.join(shard.member_id())
    for _ in range(4):
        shard.advance(SESSION_MS - 1)
        shard.locked(lambda: shard.group().offset_commit_accepted(committing))
        shard.heartbeat(other, generation)
    assert committing in shard.group().members.by_id
    assert shard.group().state == "PreparingRebalance"
