"""Static members (KIP-345) return under a new id and keep their place."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.errors import error_for
from tests.coordinator.classic.shard import RANGE, REBALANCE_MS, SESSION_MS, Shard

BOTH = (("range", b"r"), ("rr", b"r"))


@pytest.fixture
def shard() -> Shard:
    return Shard()


def form(shard: Shard, *instances: str, **options: Any) -> list[str]:
    """Make a stable group of static members; the first one leads."""
    first = shard.join(instance_id=instances[0], **options).result().member_id
    parked = [shard.join(instance_id=name, **options) for name in instances[1:]]
    if parked:
        shard.join(first, instance_id=instances[0], **options)
    ids = [first, *(answer.result().member_id for answer in parked)]
    shard.assign(dict(zip(ids, [name.encode() for name in instances], strict=True)))
    return ids


def test_a_static_member_is_one_at_once_and_named_after_its_instance(shard: Shard) -> None:
    joined = shard.join(instance_id="i").result()
    assert (joined.error_code, joined.generation_id) == (0, 1)
    assert joined.member_id.startswith("i-")
    assert [m.group_instance_id for m in joined.members] == ["i"]


def test_a_follower_that_restarts_keeps_its_place_without_a_rebalance(shard: Shard) -> None:
    leader, former = form(shard, "l", "f")
    joined = shard.join(instance_id="f").result()
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 2, leader)
    assert (joined.skip_assignment, joined.members) == (False, [])
    assert joined.member_id not in (leader, former)
    assert shard.group().state == "Stable"
    answer = shard.sync(joined.member_id, 2, instance_id="f").result()
    assert (answer.error_code, answer.assignment) == (0, b"f")


def test_a_leader_that_restarts_is_told_to_skip_the_assignment(shard: Shard) -> None:
    former, follower = form(shard, "l", "f")
    joined = shard.join(instance_id="l").result()
    assert joined.skip_assignment
    assert joined.leader == joined.member_id != former
    assert {m.member_id for m in joined.members} == {joined.member_id, follower}
    assert shard.heartbeat(follower, 2, instance_id="f") == 0


@pytest.mark.parametrize("version", [5, 8])
def test_an_older_leader_that_restarts_is_told_that_another_one_leads(
    shard: Shard, version: int
) -> None:
    former, _ = form(shard, "l", "f", version=version)
    joined = shard.join(instance_id="l", version=version).result()
    assert (joined.leader, joined.skip_assignment, joined.members) == (former, False, [])
    assert joined.member_id != former
    assert shard.group().members.leader_id == joined.member_id


def test_the_new_id_is_stored_with_the_assignment(shard: Shard) -> None:
    form(shard, "l", "f")
    member_id = shard.join(instance_id="f").result().member_id
    stored = {m.member_id: m for m in shard.stored()[-1].value.members}
    assert stored[member_id].assignment == b"f"
    assert stored[member_id].group_instance_id == "f"


def test_the_former_id_is_fenced(shard: Shard) -> None:
    leader, former = form(shard, "l", "f")
    shard.join(instance_id="f")
    assert shard.heartbeat(former, 2, instance_id="f") == 82
    assert shard.heartbeat(former, 2) == 25
    assert shard.sync(former, 2, instance_id="f").result().error_code == 82
    answer = shard.join(former, instance_id="f").result()
    assert (answer.error_code, answer.member_id) == (82, former)
    assert shard.leave((former, "f")).members[0].error_code == 82


def test_an_unknown_instance_id_with_a_member_id_is_nobody(shard: Shard) -> None:
    leader, _ = form(shard, "l", "f")
    assert shard.join(leader, instance_id="x").result().error_code == 25
    assert shard.heartbeat(leader, 2, instance_id="x") == 25


def test_nobody_hears_of_the_new_id_before_it_is_committed(shard: Shard) -> None:
    form(shard, "l", "f")
    shard.holds_commits = True
    answer = shard.join(instance_id="f")
    assert not answer.done()
    shard.commit()
    assert answer.result().error_code == 0


def test_when_it_cannot_be_stored_the_former_id_is_back(shard: Shard) -> None:
    _, former = form(shard, "l", "f", protocols=BOTH)
    shard.refusal = error_for(15)
    answer = shard.join(instance_id="f", protocols=RANGE, session_ms=2 * SESSION_MS)
    error = answer.error()
    assert error is not None and error.code == 15
    shard.refusal = None
    member = shard.group().members.by_id[former]
    assert (member.protocols, member.session_timeout_ms) == (BOTH, SESSION_MS)
    assert shard.group().members.static_ids["f"] == former
    assert shard.heartbeat(former, 2, instance_id="f") == 0
    shard.advance(SESSION_MS)
    assert shard.group().members.by_id == {}  # the clocks run as before


def test_one_that_restarts_again_before_the_commit_wins(shard: Shard) -> None:
    form(shard, "l", "f")
    shard.holds_commits = True
    first = shard.join(instance_id="f")
    second = shard.join(instance_id="f")
    shard.commit()
    assert first.result().error_code == 82
    assert second.result().error_code == 0
    assert shard.group().members.static_ids["f"] == second.result().member_id


def test_other_protocols_of_the_same_choice_change_nothing(shard: Shard) -> None:
    form(shard, "l", "f")
    joined = shard.join(instance_id="f", protocols=(("range", b"new"), ("rr", b""))).result()
    assert joined.generation_id == 2
    assert shard.group().state == "Stable"


def test_a_restart_that_changes_the_choice_begins_a_rebalance(shard: Shard) -> None:
    leader, _ = form(shard, "l", "f", protocols=BOTH)
    answer = shard.join(instance_id="f", protocols=(("rr", b"r"),))
    assert not answer.done()
    assert shard.heartbeat(leader, 2, instance_id="l") == 27
    shard.join(leader, instance_id="l", protocols=BOTH)
    assert (answer.result().generation_id, answer.result().protocol_name) == (3, "rr")


def test_a_restart_between_join_and_sync_begins_a_rebalance(shard: Shard) -> None:
    leader, follower = form(shard, "l", "f")
    shard.join(leader, instance_id="l")
    shard.join(follower, instance_id="f")
    waiting = shard.sync(follower, 3, instance_id="f")
    again = shard.join(instance_id="f")
    assert waiting.result().error_code == 82
    assert not again.done()
    assert shard.group().state == "PreparingRebalance"
    shard.join(leader, instance_id="l")
    assert again.result().generation_id == 4


def test_a_restart_while_it_waits_to_join_fences_the_first_one(shard: Shard) -> None:
    leader, follower = form(shard, "l", "f")
    shard.join(leader, instance_id="l")
    third = shard.join(instance_id="t")
    again = shard.join(instance_id="t")
    assert (third.result().error_code, third.result().member_id[:2]) == (82, "t-")
    shard.join(follower, instance_id="f")
    assert again.result().generation_id == 3


def test_static_members_that_do_not_come_back_stay_until_their_session_ends(shard: Shard) -> None:
    leader, follower = form(shard, "l", "f", session_ms=3 * REBALANCE_MS)
    again = shard.join(leader, instance_id="l", session_ms=3 * REBALANCE_MS)
    shard.advance(REBALANCE_MS)
    assert {m.member_id for m in again.result().members} == {leader, follower}
    assert follower in shard.group().members.by_id


def test_when_only_static_members_are_missing_the_rebalance_waits_on(shard: Shard) -> None:
    leader, follower = form(shard, "l", "f", session_ms=150_000)
    third = shard.member_id(session_ms=150_000)
    waiting = shard.join(third, session_ms=150_000)
    shard.leave((third, None))
    assert waiting.result().error_code == 25
    shard.advance(REBALANCE_MS)  # no member has joined
    assert shard.group().state == "PreparingRebalance"
    shard.advance(REBALANCE_MS)
    assert shard.group().state == "PreparingRebalance"
    again = shard.join(follower, instance_id="f", session_ms=150_000)
    shard.advance(REBALANCE_MS)
    assert again.result().leader == follower
    shard.advance(150_000)
    assert leader not in shard.group().members.by_id


@pytest.mark.slow
def test_waiting_on_with_no_time_to_wait_ends_with_the_sessions(shard: Shard) -> None:
    member_id = shard.join(instance_id="l", rebalance_ms=1000).result().member_id
    shard.assign({})
    shard.locked(lambda: setattr(shard.group().members.by_id[member_id], "rebalance_timeout_ms", 0))
    third = shard.member_id(rebalance_ms=0)
    shard.leave((third, None))  # begins a rebalance without a joined member
    assert shard.group().state == "PreparingRebalance"
    shard.advance(SESSION_MS)
    assert shard.group().state == "Empty"
    assert shard.nothing_waits()


def test_an_administrator_removes_by_instance_id(shard: Shard) -> None:
    leader, follower = form(shard, "l", "f")
    answer = shard.leave(("", "f"), ("", "x"), ("", None))
    assert [m.error_code for m in answer.members] == [0, 25, 25]
    assert list(shard.group().members.by_id) == [leader]
    assert shard.group().members.static_ids == {"l": leader}
    assert shard.heartbeat(leader, 2, instance_id="l") == 27


def test_a_static_member_leaves_with_both_its_ids(shard: Shard) -> None:
    leader, follower = form(shard, "l", "f")
    assert shard.leave((follower, "f"), (leader, None)).members[0].error_code == 0
    assert shard.group().state == "Empty"
    assert shard.group().members.static_ids == {}


def test_the_new_id_has_a_session_of_its_own(shard: Shard) -> None:
    _, former = form(shard, "l", "f")
    shard.advance(SESSION_MS - 1)
    member_id = shard.join(instance_id="f").result().member_id
    shard.advance(SESSION_MS - 1)
    assert list(shard.group().members.by_id) == [member_id]
    assert shard.heartbeats.watched == 1
    shard.advance(1)
    assert shard.group().members.by_id == {}


def test_the_new_id_owes_the_sync_that_the_former_one_owed(shard: Shard) -> None:
    leader, follower = form(shard, "l", "f", session_ms=5 * REBALANCE_MS)
    options = {"session_ms": 5 * REBALANCE_MS}
    shard.join(leader, instance_id="l", **options)
    shard.join(follower, instance_id="f", **options)
    shard.sync(leader, 3, {}, instance_id="l")
    member_id = shard.join(instance_id="f", **options).result().member_id
    assert shard.sync(member_id, 3, instance_id="f").result().error_code == 0
    shard.advance(REBALANCE_MS)
    assert shard.group().state == "Stable"
