"""LeaveGroup: one or several members, by instance id, in each state; the effect on the others."""

from __future__ import annotations

import pytest

from tests.coordinator.classic.shard import GROUP, Shard


@pytest.fixture
def shard() -> Shard:
    return Shard()


def codes(shard: Shard, *members: tuple[str, str | None]) -> list[int]:
    answer = shard.leave(*members)
    assert answer.error_code == 0
    assert [(m.member_id, m.group_instance_id) for m in answer.members] == list(members)
    return [member.error_code for member in answer.members]


def test_the_last_member_leaves_an_empty_group(shard: Shard) -> None:
    (leader,) = shard.form("a")
    assert codes(shard, (leader, None)) == [0]
    group = shard.group()
    assert (group.state, group.generation_id, group.members.leader_id) == ("Empty", 2, None)
    assert (group.protocol_type, group.protocol_name) == ("consumer", None)
    assert shard.stored()[-1].value.members == []
    assert shard.nothing_waits()


def test_when_a_follower_leaves_the_others_rebalance(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    assert codes(shard, (follower, None)) == [0]
    assert shard.heartbeat(leader, 2) == 27
    assert shard.join(leader).result().generation_id == 3


def test_when_the_leader_leaves_the_next_one_leads(shard: Shard) -> None:
    leader, follower, third = shard.form("a", "b", "c")
    codes(shard, (leader, None))
    assert shard.group().members.leader_id == follower
    late, early = shard.join(third), shard.join(follower)
    assert early.result().leader == late.result().leader == follower
    assert len(early.result().members) == 2


def test_several_leave_at_once_each_with_its_own_error(shard: Shard) -> None:
    leader, follower, third = shard.form("a", "b", "c")
    left = codes(shard, (third, None), ("nobody", None), (third, None), (follower, "i"), ("", None))
    assert left == [0, 25, 25, 25, 25]
    assert list(shard.group().members.by_id) == [leader, follower]
    assert shard.group().state == "PreparingRebalance"


def test_when_nobody_left_nothing_happens(shard: Shard) -> None:
    shard.form("a")
    assert codes(shard, ("nobody", None)) == [25]
    assert codes(shard) == []
    assert shard.group().state == "Stable"


def test_an_unknown_group_has_no_members_to_leave(shard: Shard) -> None:
    assert codes(shard, ("m", None), ("", "i")) == [25, 25]
    assert GROUP not in shard.groups


@pytest.mark.parametrize("version", [0, 1, 2])
def test_older_versions_name_one_member(shard: Shard, version: int) -> None:
    assert shard.leave(("m", None), version=version).error_code == 25
    (leader,) = shard.form("a")
    assert shard.leave(("m", None), version=version).error_code == 25
    answer = shard.leave((leader, None), version=version)
    assert (answer.error_code, answer.members) == (0, [])
    assert shard.group().state == "Empty"


def test_an_id_that_was_given_out_may_leave(shard: Shard) -> None:
    member_id = shard.member_id()
    assert codes(shard, (member_id, None), (member_id, None)) == [0, 25]
    assert shard.group().members.pending == {}
    assert shard.nothing_waits()


def test_an_id_that_leaves_lets_the_others_go_on(shard: Shard) -> None:
    (leader,) = shard.form("a")
    pending = shard.member_id()
    again = shard.join(leader)
    assert not again.done()
    codes(shard, (pending, None))
    assert again.result().generation_id == 2


def test_an_id_that_leaves_a_stable_group_makes_it_rebalance_as_in_kafka(shard: Shard) -> None:
    (leader,) = shard.form("a")
    codes(shard, (shard.member_id(), None))
    assert shard.heartbeat(leader, 1) == 27


def test_a_member_that_leaves_while_it_waits_to_join_is_told(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    waiting = shard.join(follower, protocols=(("range", b"new"),))
    codes(shard, (follower, None))
    assert (waiting.result().error_code, waiting.result().member_id) == (25, "")
    assert shard.join(leader).result().generation_id == 3


def test_a_member_that_leaves_while_it_waits_for_its_assignment_is_told(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    shard.join(leader)
    shard.join(follower)
    waiting = shard.sync(follower, 3)
    codes(shard, (follower, None))
    assert waiting.result().error_code == 25
    assert shard.sync(leader, 3, {}).result().error_code == 27


def test_all_leave_while_they_join(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    waiting = shard.join(leader)
    codes(shard, (leader, None), (follower, None))
    assert waiting.result().error_code == 25
    assert shard.group().state == "Empty"
    assert shard.nothing_waits()
