"""JoinGroup: dynamic members in every state, and every error in Kafka's order."""

from __future__ import annotations

import re

import pytest

from tests.coordinator.classic.shard import GROUP, RANGE, REBALANCE_MS, SESSION_MS, Shard

AB = (("a", b"1"), ("b", b"2"))
BA = (("b", b"2"), ("a", b"1"))


@pytest.fixture
def shard() -> Shard:
    return Shard()


# Ids for the first join (KIP-394)


@pytest.mark.parametrize("version", [4, 5, 9])
def test_a_first_join_is_answered_with_an_id_to_come_back_with(shard: Shard, version: int) -> None:
    answer = shard.join(version=version).result()
    assert answer.error_code == 79
    assert re.fullmatch(r"client-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", answer.member_id)
    assert (answer.generation_id, answer.leader, answer.members) == (-1, "", [])
    assert shard.group().state == "Empty"
    joined = shard.join(answer.member_id, version=version).result()
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, answer.member_id)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_older_clients_are_members_at_once(shard: Shard, version: int) -> None:
    joined = shard.join(version=version).result()
    assert (joined.error_code, joined.generation_id) == (0, 1)
    assert joined.leader == joined.member_id


def test_a_client_without_id_gets_a_member_id_all_the_same(shard: Shard) -> None:
    assert shard.join(client_id=None).result().member_id.startswith("-")


def test_an_id_that_was_given_out_expires_with_its_session(shard: Shard) -> None:
    member_id = shard.member_id()
    shard.advance(SESSION_MS - 1)
    assert member_id in shard.group().members.pending
    shard.advance(1)
    assert shard.group().members.pending == {}
    assert shard.nothing_waits()
    assert shard.join(member_id).result().error_code == 25


def test_an_id_that_was_given_out_holds_a_rebalance_up_until_it_expires(shard: Shard) -> None:
    (leader,) = shard.form("a")
    shard.member_id()
    again = shard.join(leader, protocols=(("range", b"new"),))
    shard.advance(SESSION_MS - 1)
    assert not again.done()
    shard.advance(1)
    assert again.result().generation_id == 2


def test_an_id_that_was_given_out_is_no_member_yet(shard: Shard) -> None:
    shard.form("a")
    member_id = shard.member_id()
    assert shard.heartbeat(member_id, 1) == 25
    assert shard.sync(member_id, 1).result().error_code == 25


def test_an_id_that_was_given_out_is_not_for_a_static_member(shard: Shard) -> None:
    member_id = shard.member_id()
    answer = shard.join(member_id, instance_id="i").result()
    assert (answer.error_code, answer.member_id) == (-1, "")


# Errors, in order


@pytest.mark.parametrize(("version", "name"), [(5, ""), (6, ""), (7, None), (9, None)])
def test_an_unknown_group_has_no_members(shard: Shard, version: int, name: str | None) -> None:
    answer = shard.join("m", version=version).result()
    assert (answer.error_code, answer.member_id, answer.protocol_name) == (25, "m", name)
    assert GROUP not in shard.groups


@pytest.mark.parametrize(("kind", "protocols"), [("", RANGE), ("consumer", ())])
def test_the_first_member_needs_a_type_and_a_protocol(
    shard: Shard, kind: str, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    answer = shard.join(protocol_type=kind, protocols=protocols).result()
    assert (answer.error_code, answer.member_id) == (23, "")
    assert shard.group().state == "Empty"  # the group exists afterwards, as in Kafka


def test_type_and_a_protocol_are_shared_by_all(shard: Shard) -> None:
    (leader,) = shard.form("a", protocols=AB)
    assert shard.join(protocol_type="connect", protocols=AB).result().error_code == 23
    assert shard.join(protocols=(("c", b""),)).result().error_code == 23
    answer = shard.join(leader, protocols=(("c", b""),)).result()
    assert (answer.error_code, answer.member_id) == (23, leader)
    assert shard.join("nobody", protocols=(("c", b""),)).result().error_code == 23
    assert shard.group().state == "Stable"


def test_members_are_known_by_their_ids(shard: Shard) -> None:
    (leader,) = shard.form("a")
    assert shard.join("nobody").result().error_code == 25
    assert shard.join(leader, instance_id="i").result().error_code == 25
    assert shard.group().state == "Stable"


def test_an_empty_group_has_forgotten_its_members(shard: Shard) -> None:
    (leader,) = shard.form("a")
    shard.leave((leader, None))
    assert shard.group().state == "Empty"
    assert shard.join(leader).result().error_code == 25


# Members that join again


def test_while_others_join_a_member_waits_for_them(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    first = shard.join(leader)
    assert shard.group().state == "PreparingRebalance"
    assert not first.done()
    second = shard.join(follower)
    assert first.result().generation_id == second.result().generation_id == 3
    assert {member.member_id for member in first.result().members} == {leader, follower}
    assert second.result().members == []


def test_in_the_sync_phase_the_same_protocols_get_the_same_answer(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    shard.join(leader)
    shard.join(follower)
    again = shard.join(follower).result()
    assert (again.error_code, again.generation_id, again.members) == (0, 3, [])
    assert len(shard.join(leader).result().members) == 2
    assert shard.group().state == "CompletingRebalance"


@pytest.mark.parametrize("changed", [(("range", b"new"),), (*RANGE, ("rr", b""))])
def test_in_the_sync_phase_other_protocols_begin_a_rebalance(
    shard: Shard, changed: tuple[tuple[str, bytes], ...]
) -> None:
    leader, follower = shard.form("a", "b")
    shard.join(leader)
    shard.join(follower)
    waiting = shard.sync(follower, 3)
    again = shard.join(leader, protocols=changed)
    assert not again.done()
    assert waiting.result().error_code == 27
    assert shard.group().state == "PreparingRebalance"


def test_in_a_stable_group_a_follower_gets_the_generation(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    again = shard.join(follower).result()
    assert (again.generation_id, again.leader, again.members) == (2, leader, [])
    assert shard.group().state == "Stable"


@pytest.mark.parametrize("protocols", [BA, (("a", b"1"), ("b", b"new")), AB[:1]])
def test_in_a_stable_group_a_follower_that_changed_begins_a_rebalance(
    shard: Shard, protocols: tuple[tuple[str, bytes], ...]
) -> None:
    _, follower = shard.form("a", "b", protocols=AB)
    assert not shard.join(follower, protocols=protocols).done()
    assert shard.group().state == "PreparingRebalance"


def test_in_a_stable_group_its_leader_begins_a_rebalance(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    assert not shard.join(leader).done()
    assert shard.heartbeat(follower, 2) == 27


def test_of_two_joins_of_one_member_the_last_one_waits(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    first = shard.join(leader)
    second = shard.join(leader)
    assert first.result().error_code == 27
    shard.join(follower)
    assert second.result().generation_id == 3


# The next generation


def test_the_leader_learns_everybodys_metadata(shard: Shard) -> None:
    leader = shard.member_id()
    shard.join(leader, protocols=(("range", b"1"), ("rr", b"x")))
    follower = shard.member_id()
    shard.join(follower, protocols=(("range", b"2"),))
    answer = shard.join(leader, protocols=(("range", b"1"), ("rr", b"x"))).result()
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert [(m.member_id, m.metadata) for m in answer.members] == [(leader, b"1"), (follower, b"2")]


def test_members_that_do_not_come_back_in_time_are_gone(shard: Shard) -> None:
    leader, follower = shard.form("a", "b", session_ms=REBALANCE_MS * 2)
    again = shard.join(leader, session_ms=REBALANCE_MS * 2)
    shard.advance(REBALANCE_MS - 1)
    assert not again.done()
    shard.advance(1)
    assert [m.member_id for m in again.result().members] == [leader]
    assert shard.heartbeat(follower, 3) == 25
    shard.advance(REBALANCE_MS)  # nor does the leader send a SyncGroup
    assert shard.group().state == "Empty"
    assert shard.nothing_waits()


def test_a_leader_that_does_not_come_back_is_replaced(shard: Shard) -> None:
    leader, follower = shard.form("a", "b", session_ms=REBALANCE_MS * 2)
    again = shard.join(follower, protocols=(("range", b"new"),), session_ms=REBALANCE_MS * 2)
    shard.advance(REBALANCE_MS)
    assert again.result().leader == follower
    assert leader not in shard.group().members.by_id


def test_the_longest_rebalance_timeout_counts(shard: Shard) -> None:
    leader = shard.join(version=3, rebalance_ms=1000).result().member_id
    shard.join(version=3, rebalance_ms=5000)
    again = shard.join(leader, rebalance_ms=1000)
    shard.join(version=3, rebalance_ms=3000)  # in the next rebalance
    assert again.result().generation_id == 2
    shard.advance(4999)
    assert shard.group().state == "PreparingRebalance"
    shard.advance(1)
    assert shard.group().state == "CompletingRebalance"


def test_version_0_waits_as_long_as_a_session(shard: Shard) -> None:
    shard.join(version=0, session_ms=7000)
    assert shard.group().members.rebalance_timeout_ms == 7000


def test_a_new_group_is_stored_before_it_has_a_generation(shard: Shard) -> None:
    shard.join(version=3)
    (record,) = shard.stored()
    assert record.value_version == 3
    assert (record.value.protocol_type, record.value.generation) == ("", 0)
    assert (record.value.protocol, record.value.leader, record.value.members) == (None, None, [])


def test_a_failed_join_stores_its_new_group_once(shard: Shard) -> None:
    shard.join(protocols=())
    shard.join(protocols=())
    assert len(shard.stored()) == 1
