"""The group's table of states, its counts, its choice of a protocol, and the rules of `Group`."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedlog.coordinator.group.classic.classic_group import (
    VALID_PREVIOUS,
    ClassicGroup,
    GroupState,
)
from embedlog.coordinator.group.classic.classic_member import ClassicMember, ParkedJoin
from embedlog.errors import KafkaError
from tests.coordinator.classic.shard import Shard, subscription

STATES = list(VALID_PREVIOUS)


def member(name: str, *protocols: str, instance_id: str | None = None) -> ClassicMember:
    return ClassicMember(
        name,
        instance_id=instance_id,
        client_id="c",
        client_host="/::1",
        rebalance_timeout_ms=1,
        session_timeout_ms=1,
        protocols=tuple((protocol, b"") for protocol in protocols),
    )


def group_of(*members: ClassicMember, state: str = GroupState.STABLE) -> ClassicGroup:
    group = ClassicGroup("g", state=state, protocol_name="range")
    for one in members:
        group.add(one, "consumer")
    return group


# States


@pytest.mark.parametrize(("before", "after"), list(itertools.product(STATES, STATES)))
def test_only_transitions_of_the_table_are_made(before: str, after: str) -> None:
    group = ClassicGroup("g", state=before)
    if before in VALID_PREVIOUS[after]:
        group.transition_to(after, 7)
        assert (group.state, group.previous_state, group.state_timestamp_ms) == (after, before, 7)
    else:
        with pytest.raises(AssertionError):
            group.transition_to(after, 7)
        assert group.state == before


def test_the_table_is_kafkas() -> None:
    assert {state: sorted(VALID_PREVIOUS[state]) for state in STATES if state != "Dead"} == {
        "Empty": ["PreparingRebalance"],
        "PreparingRebalance": ["CompletingRebalance", "Empty", "Stable"],
        "CompletingRebalance": ["PreparingRebalance"],
        "Stable": ["CompletingRebalance"],
    }
    assert VALID_PREVIOUS["Dead"] == set(STATES)


# Counts


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["add", "go", "park", "say"]),
                          st.lists(st.sampled_from("xyz"), max_size=3)), max_size=30))  # fmt: skip
def test_counts_equal_a_look_at_every_member(
    steps: list[tuple[str, str, list[str]]],
) -> None:
    group = ClassicGroup("g", state=GroupState.STABLE)
    for name, step, protocols in steps:
        if step == "add" and name not in group.members.by_id:
            group.add(member(name, *protocols), "consumer")
        elif step != "add" and name in group.members.by_id:
            one = group.members.by_id[name]
            said = tuple((protocol, b"") for protocol in protocols)
            if step == "go":
                group.members.remove(one)
            elif step == "park":
                group.members.park_join(one, None if one.parked_join else ParkedJoin(9))
            else:
                group.members.update(one, said, rebalance_timeout_ms=2, session_timeout_ms=2)
        members = group.members.by_id.values()
        parked_count = sum(one.parked_join is not None for one in members)
        assert group.members.awaiting_join_count == parked_count
        for protocol in "xyz":
            known = all(protocol in dict(one.protocols) for one in members)
            assert group.supports("consumer", ((protocol, b""),)) == known or not members
        assert (group.members.leader_id is None) == (not members)


def test_the_votes_of_all_choose_among_what_all_know() -> None:
    group = group_of(member("1", "a", "b", "c"), member("2", "c", "b"), member("3", "b", "c"))
    assert group.members.select_protocol() == "b"  # b, c, b
    group.add(member("4", "c", "b"), "consumer")
    assert group.members.select_protocol() == "b"  # two each: the one voted for first
    group.add(member("5", "c", "x", "b"), "consumer")
    assert group.members.select_protocol() == "c"


def test_the_first_member_leads_and_the_next_one_follows_it() -> None:
    first, second, third = member("1", "a"), member("2", "a"), member("3", "a")
    group = group_of(first, second, third)
    group.members.remove(second)
    assert group.members.leader_id == "1"
    group.members.remove(first)
    assert group.members.leader_id == "3"
    group.members.remove(third)
    assert group.members.leader_id is None


def test_a_leader_that_is_not_there_gives_way_to_one_that_is() -> None:
    first, second = member("1", "a"), member("2", "a")
    group = group_of(first, second)
    assert not group.members.elect_joined_leader()
    group.members.park_join(second, ParkedJoin(9))
    assert group.members.elect_joined_leader()
    assert group.members.leader_id == "2"


# Offsets


def code_of_commit(group: ClassicGroup, *who: object, is_transactional: bool = False) -> int:
    member_id, instance_id, generation = who
    try:
        group.validate_offset_commit(
            member_id,
            instance_id,
            generation,
            is_transactional=is_transactional,
            api_version=9,
        )
    except KafkaError as error:
        return error.code
    return 0


def test_a_group_without_members_takes_commits_of_nobody() -> None:
    group = ClassicGroup("g")
    assert code_of_commit(group, "", None, -1) == 0
    assert code_of_commit(group, "m", "i", -1) == 0
    assert code_of_commit(group, "m", None, 0) == 25
    group.transition_to(GroupState.DEAD, 0)
    assert code_of_commit(group, "", None, -1) == 15


@pytest.mark.parametrize("state", [GroupState.STABLE, GroupState.PREPARING_REBALANCE])
def test_a_group_with_members_takes_their_commits(state: str) -> None:
    group = group_of(member("m", "range", instance_id="i"), state=state)
    assert code_of_commit(group, "m", "i", 0) == 0
    assert code_of_commit(group, "m", None, 0) == 0
    assert code_of_commit(group, "m", None, 1) == 22
    assert code_of_commit(group, "m", None, -1) == 22
    assert code_of_commit(group, "n", None, 0) == 25
    assert code_of_commit(group, "", None, 0) == 25
    assert code_of_commit(group, "n", "i", 0) == 82
    assert code_of_commit(group, "m", "j", 0) == 25
    assert code_of_commit(group, "", None, -1) == 25
    assert code_of_commit(group, "", None, -1, is_transactional=True) == 0


def test_between_join_and_sync_only_transactions_commit() -> None:
    group = group_of(member("m", "range"), state=GroupState.COMPLETING_REBALANCE)
    assert code_of_commit(group, "m", None, 0) == 27
    assert code_of_commit(group, "m", None, 1) == 22
    assert code_of_commit(group, "m", None, 0, is_transactional=True) == 0


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", ["consumer", "connect"])
def test_who_may_be_deleted(state: str, kind: str) -> None:
    group = ClassicGroup("g", state=state, protocol_type=kind)

    def code(check: str) -> int:
        try:
            getattr(group, check)()
        except KafkaError as error:
            return error.code
        return 0

    empty, dead = state == GroupState.EMPTY, state == GroupState.DEAD
    assert code("validate_delete") == (69 if dead else 0 if empty else 68)
    is_free = empty or kind == "consumer"
    assert code("validate_offset_delete") == (69 if dead else 0 if is_free else 68)


def test_a_dead_group_tells_no_offsets() -> None:
    group = ClassicGroup("g")
    group.validate_offset_fetch(None, -1)
    group.transition_to(GroupState.DEAD, 0)
    with pytest.raises(KafkaError) as raised:
        group.validate_offset_fetch("m", 3)
    assert raised.value.code == 69


# Subscriptions and expiry


def subscribed(shard: Shard, metadata: bytes, kind: str = "consumer") -> ClassicGroup:
    shard.form("a", protocols=(("range", metadata),), protocol_type=kind)
    return shard.group()


@pytest.mark.parametrize("version", [0, 1, 2, 3, 9])
def test_consumers_say_what_they_are_subscribed_to(version: int) -> None:
    shard = Shard()
    group = subscribed(shard, subscription("t", "u", version=version))
    assert group.is_subscribed_to("t") and group.is_subscribed_to("u")
    assert not group.is_subscribed_to("v")
    assert shard.restarted().group().is_subscribed_to("t")


@pytest.mark.parametrize("metadata", [b"", b"\x00", b"\xff\xff\x00\x00\x00\x00", b"\x00\x01\x7f"])
def test_consumers_that_cannot_be_read_may_be_subscribed_to_anything(metadata: bytes) -> None:
    group = subscribed(Shard(), metadata)
    assert group.is_subscribed_to("t")
    assert group.offset_expiry_base() is None


def test_other_members_are_subscribed_to_nothing() -> None:
    group = subscribed(Shard(), b"?", "connect")
    assert not group.is_subscribed_to("t")
    assert group.offset_expiry_base() is None


def test_subscriptions_end_with_the_last_member() -> None:
    shard = Shard()
    group = subscribed(shard, subscription("t"))
    (leader,) = group.members.by_id
    shard.leave((leader, None))
    assert not group.is_subscribed_to("t")


def test_when_offsets_begin_to_expire() -> None:
    committed_ms = 5
    simple = ClassicGroup("g")
    assert simple.offset_expiry_base()(committed_ms) == 5
    emptied = ClassicGroup("g", protocol_type="consumer", state_timestamp_ms=9)
    assert emptied.offset_expiry_base()(committed_ms) == 9
    older = ClassicGroup("g", protocol_type="consumer")
    assert older.offset_expiry_base()(committed_ms) == 5
    shard = Shard()
    stable = subscribed(shard, subscription("t"))
    assert stable.offset_expiry_base()(committed_ms) == 5
    shard.join(*stable.members.by_id)
    assert stable.state == GroupState.COMPLETING_REBALANCE
    assert stable.offset_expiry_base() is None


# Describing


def test_metadata_and_protocol_are_described_in_a_stable_group_only() -> None:
    shard = Shard()
    leader, follower = shard.form("a", "b")
    described = shard.group().described()
    assert (described.group_id, described.group_state) == ("g", "Stable")
    assert (described.protocol_type, described.protocol_data) == ("consumer", "range")
    (one, _) = described.members
    assert (one.member_id, one.client_id, one.client_host) == (leader, "client", "/127.0.0.1")
    assert (one.member_metadata, one.member_assignment) == (b"r", b"a")
    shard.join(leader)
    described = shard.group().described()
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [m.member_metadata for m in described.members] == [b"", b""]
    assert [m.member_assignment for m in described.members] == [b"a", b"b"]


def test_a_group_that_only_stores_offsets_is_made_on_demand() -> None:
    shard = Shard()
    group = shard.classic.get_or_make("simple")
    assert (group.state, group.protocol_type, group.GROUP_TYPE) == ("Empty", "", "classic")
    assert shard.classic.get_or_make("simple") is group
    assert shard.join(version=3, group_id="simple").result().generation_id == 1
