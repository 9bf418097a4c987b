"""Shards that are loaded from their records, and the answers to requests parked at a restart."""

from __future__ import annotations

import pytest

import wire
from embedlog.coordinator.group.classic.records import group_from
from embedlog.coordinator.result import Result
from embedlog.errors import error_for
from tests.coordinator.classic.shard import GROUP, SESSION_MS, Shard
from wire.schemas.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata


@pytest.fixture
def shard() -> Shard:
    return Shard()


def test_a_stable_group_comes_back_with_its_members(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    later = shard.restarted()
    group = later.group()
    assert (group.state, group.generation_id, group.members.leader_id) == ("Stable", 2, leader)
    assert (group.protocol_type, group.protocol_name) == ("consumer", "range")
    assert group.state_timestamp_ms == shard.group().state_timestamp_ms
    assert later.heartbeat(follower, 2) == 0
    assert later.sync(follower, 2).result().assignment == b"b"
    assert later.join(follower).result().generation_id == 2  # the same protocol: no rebalance


def test_members_that_do_not_come_back_after_a_restart_are_forgotten(shard: Shard) -> None:
    _, follower = shard.form("a", "b")
    later = shard.restarted()
    later.advance(SESSION_MS - 1)
    assert later.heartbeat(follower, 2) == 0
    later.advance(1)
    assert list(later.group().members.by_id) == [follower]
    later.advance(SESSION_MS)
    assert later.group().state == "Empty"
    later.advance(60_000)
    assert later.nothing_waits()


def test_static_members_come_back_as_such(shard: Shard) -> None:
    former = shard.join(instance_id="i").result().member_id
    shard.assign({former: b"A"})
    later = shard.restarted()
    joined = later.join(instance_id="i").result()
    assert (joined.generation_id, joined.skip_assignment) == (1, True)
    assert later.heartbeat(former, 1, instance_id="i") == 82
    assert later.sync(joined.member_id, 1, instance_id="i").result().assignment == b"A"


def test_a_restart_between_join_and_sync_makes_the_members_join_again(shard: Shard) -> None:
    leader, follower = shard.form("a", "b")
    shard.join(leader)
    shard.join(follower)
    later = shard.restarted()
    assert (later.group().state, later.group().generation_id) == ("Stable", 2)
    assert later.sync(leader, 3, {leader: b"A"}).result().error_code == 22
    assert later.heartbeat(follower, 3) == 22
    first = later.join(leader)
    later.join(follower)
    assert first.result().generation_id == 3
    later.assign({leader: b"A", follower: b"B"})
    assert later.restarted().sync(follower, 3).result().assignment == b"B"


def test_a_restart_before_the_first_sync_leaves_an_empty_group(shard: Shard) -> None:
    member_id = shard.join(version=3).result().member_id
    later = shard.restarted()
    assert (later.group().state, later.group().generation_id) == ("Empty", 0)
    assert later.sync(member_id, 1).result().error_code == 25
    assert later.join(member_id).result().error_code == 25
    assert later.join(version=3).result().generation_id == 1


def test_an_empty_group_keeps_its_generation_and_type(shard: Shard) -> None:
    (leader,) = shard.form("a")
    shard.leave((leader, None))
    later = shard.restarted()
    group = later.group()
    assert (group.state, group.generation_id, group.protocol_type) == ("Empty", 2, "consumer")
    assert later.join(version=3).result().generation_id == 3


def test_a_tombstone_ends_the_group_and_what_waits_in_it(shard: Shard) -> None:
    shard.member_id()
    (record,) = shard.group().tombstones()
    assert record.value is None

    def replay(_shard: object) -> Result[None]:
        shard.classic.replay_metadata(record.key, record.value)
        return Result()

    shard.write(replay)
    assert shard.groups == {}
    assert shard.nothing_waits()
    shard.log.append(shard.format.encode(record))
    assert shard.restarted().groups == {}


@pytest.mark.parametrize("code", [15, 16])
def test_whoever_is_parked_when_the_shard_goes_is_told(shard: Shard, code: int) -> None:
    leader, follower = shard.form("a", "b")
    shard.member_id()
    joining = shard.join(leader)
    other = shard.join(version=3, group_id="other").result().member_id
    second = shard.join(version=3, group_id="other")
    shard.join(other, group_id="other")
    syncing = shard.sync(second.result().member_id, 2, group_id="other")
    shard.locked(lambda: shard.classic.unloaded(error_for(code)))
    assert (joining.result().error_code, joining.result().member_id) == (code, leader)
    assert syncing.result().error_code == code
    assert shard.nothing_waits()


def test_records_of_older_versions_are_read() -> None:
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=7,
        protocol="range",
        leader="m",
        members=[
            MemberMetadata(
                member_id="m",
                client_id="c",
                client_host="/::1",
                session_timeout=9000,
                subscription=b"s",
                assignment=b"a",
            )
        ],
    )
    for version in range(5):
        stored = wire.decode(GroupMetadataValue, version, wire.encode(value, version))
        group = group_from(GROUP, stored)
        member = group.members.by_id["m"]
        assert (group.state, group.state_timestamp_ms) == ("Stable", -1)
        assert (member.rebalance_timeout_ms, member.session_timeout_ms) == (9000, 9000)
        assert (member.metadata("range"), member.assignment) == (b"s", b"a")


def test_the_last_record_of_a_group_counts(shard: Shard) -> None:
    shard.form("a")
    older = shard.stored()[-1].value
    (leader,) = shard.group().members.by_id
    shard.leave((leader, None))
    shard.log.append(
        shard.format.encode(type(shard.stored()[-1])(GroupMetadataKey(group=GROUP), older, 3))
    )
    assert shard.restarted().group().state == "Stable"


# Appends that fail


def test_a_group_that_cannot_be_stored_was_never_there(shard: Shard) -> None:
    shard.refusal = error_for(15)
    for version in (3, 9):
        answer = shard.join(version=version)
        error = answer.error()
        assert error is not None and error.code == 15
        assert shard.groups == {}
        assert shard.nothing_waits()
    shard.refusal = None
    assert shard.join(version=3).result().generation_id == 1


def test_a_group_that_empties_is_empty_though_it_cannot_be_stored(shard: Shard) -> None:
    (leader,) = shard.form("a")
    shard.refusal = error_for(15)
    shard.advance(SESSION_MS)
    assert shard.group().state == "Empty"
    shard.refusal = None
    # The record still has the member; after a restart its session ends again.
    later = shard.restarted()
    later.advance(SESSION_MS)
    assert later.group().state == "Empty"
