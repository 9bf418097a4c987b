"""Members of the classic protocol inside a consumer group."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog import errors
from embedlog.coordinator.group.consumer import member as states
from tests.coordinator.consumer.classic_client import CLASSIC_SESSION_MS, ClassicClient
from tests.coordinator.consumer.world import REBALANCE_MS, World, settle
from wire.error_codes import ErrorCode
from wire.schemas.join_group import JoinGroupRequest
from wire.schemas.leave_group import MemberIdentity


@pytest.fixture
def world() -> World:
    made = World()
    made.make_topic("t", 4)
    return made


def test_a_classic_member_joins_and_gets_what_is_free(world: World) -> None:
    member = world.join("m", "t")
    classic = ClassicClient(world, "t")
    response = classic.join()
    assert (response.generation_id, response.protocol_name) == (3, "range")
    assert (response.protocol_type, response.leader, response.members) == ("consumer", "", [])
    assert len(classic.member_id) == 22
    assert classic.sync() == 0
    assert classic.owned == {}
    assert classic.heartbeat() == 0
    settle(member)
    assert member.owned == {"t": {0, 1}}
    assert classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    classic.follow()
    assert classic.owned == {"t": {2, 3}}
    assert world.group().state_name() == "Stable"


def test_the_assignment_has_the_version_of_the_subscription(world: World) -> None:
    world.join("m", "t")
    classic = ClassicClient(world, "t")
    classic.subscription_version = 0
    classic.join()
    assert classic.sync() == 0


@pytest.mark.parametrize("is_eager", [True, False])
def test_a_classic_member_gives_up_by_joining_again(world: World, is_eager: bool) -> None:
    first = world.join("m1", "t")
    classic = ClassicClient(world, "t")
    classic.join()
    classic.sync()
    settle(first)
    classic.follow()
    assert classic.owned == {"t": {2, 3}}
    second = world.join("m2", "t", "t")
    if is_eager:
        classic.owned = {}
    settle(first, second, rounds=1)
    classic.follow()
    settle(first, second)
    assert classic.owned == {"t": {2}}
    assert second.owned == {"t": {3}}
    classic.follow()
    assert world.group().state_name() == "Stable"


def test_a_member_that_owns_too_much_stays_at_its_generation(world: World) -> None:
    classic = ClassicClient(world, "t")
    first = world.join("m1", "t")
    classic.join()
    classic.sync()
    settle(first)
    classic.follow()
    world.join("m2", "t")
    generation = classic.generation
    assert classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    classic.join()
    assert classic.generation == generation
    assert world.group().members[classic.member_id].state == states.UNREVOKED_PARTITIONS
    assert classic.sync() == 0
    assert classic.owned == {"t": {2}}
    assert classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    classic.join()
    assert classic.generation > generation


def test_until_there_is_a_new_assignment_nobody_joins_again() -> None:
    world = World(group_consumer_assignment_interval_ms=1000)
    world.make_topic("t", 4)
    member = world.join("m", "t")
    classic = ClassicClient(world, "t")
    classic.join()
    assert (classic.sync(), classic.heartbeat()) == (0, 0)
    world.elapse(1000)
    member.beat()
    assert classic.sync() == ErrorCode.REBALANCE_IN_PROGRESS
    assert classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_versions_before_4_are_not_given_an_id_first(world: World) -> None:
    world.join("m", "t")
    classic = ClassicClient(world, "t", version=3)
    response = classic.ask_join().result()
    assert response.error_code == 0
    assert response.member_id in world.group().members


def test_any_member_id_may_join(world: World) -> None:
    world.join("m", "t")
    classic = ClassicClient(world, "t")
    classic.member_id = "made-up"
    assert classic.join().error_code == 0
    assert "made-up" in world.group().members


@pytest.mark.parametrize(
    ("protocol_type", "protocols"), [("connect", ("range",)), ("consumer", ("other",))]
)
def test_protocols_that_not_all_know(
    world: World, protocol_type: str, protocols: tuple[str, ...]
) -> None:
    world.join("m", "t")
    ClassicClient(world, "t").join()
    other = ClassicClient(world, "t")
    other.protocol_type, other.protocols = protocol_type, protocols
    response = other.join()
    assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert (response.generation_id, response.protocol_name, response.member_id) == (-1, None, "")


class _Malformed(ClassicClient):
    """A client whose subscription is one byte."""

    def send_join(self, request: JoinGroupRequest) -> Any:
        for protocol in request.protocols:
            protocol.metadata = b"\x00"
        return super().send_join(request)


def test_a_subscription_that_cannot_be_read(world: World) -> None:
    world.join("m", "t")
    response = _Malformed(world, "t").join()
    assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert list(world.group().members) == ["m"]


def test_who_is_told_what_is_wrong(world: World) -> None:
    member = world.join("m", "t")
    classic = ClassicClient(world, "t")
    classic.join()
    assert classic.sync(protocol="roundrobin") == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    classic.generation += 1
    assert classic.sync() == ErrorCode.ILLEGAL_GENERATION
    assert classic.heartbeat() == ErrorCode.ILLEGAL_GENERATION
    classic.generation -= 1
    classic.instance_id = "i"
    assert classic.sync() == ErrorCode.UNKNOWN_MEMBER_ID
    for name in ("stranger", member.member_id):
        other = ClassicClient(world, "t")
        other.member_id, other.generation = name, member.epoch
        assert other.sync() == ErrorCode.UNKNOWN_MEMBER_ID
        assert other.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group() -> None:
    world = World(group_consumer_max_size=1)
    world.join("m", "t")
    classic = ClassicClient(world, "t")
    assert classic.join().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_leaving(world: World) -> None:
    member = world.join("m", "t")
    classic = ClassicClient(world, "t")
    classic.join()
    stranger = MemberIdentity(member_id="stranger")
    response = classic.leave(stranger)
    assert [answer.error_code for answer in response.members] == [0, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(world.group().members) == ["m"]
    settle(member)
    assert member.owned == {"t": {0, 1, 2, 3}}


def test_an_administrator_removes_members_of_either_protocol(world: World) -> None:
    world.join("m", "t", instance_id="i")
    world.join("n", "t")
    classic = ClassicClient(world, "t", instance_id="j")
    classic.join()
    by_hand = ClassicClient(world, "t")
    named = [
        MemberIdentity(member_id="", group_instance_id="i"),
        MemberIdentity(member_id="", group_instance_id="none"),
        MemberIdentity(member_id="x", group_instance_id="j"),
    ]
    by_hand.member_id = "n"
    response = by_hand.leave(*named)
    codes = [answer.error_code for answer in response.members]
    assert codes == [0, 0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID]


def test_a_session_of_its_own_length(world: World) -> None:
    member = world.join("m", "t")
    classic = ClassicClient(world, "t")
    classic.join()
    classic.sync()
    world.elapse(CLASSIC_SESSION_MS - 1)
    assert classic.heartbeat() == 0
    world.elapse(CLASSIC_SESSION_MS - 1)
    member.beat()
    assert len(world.group().members) == 2
    world.elapse(1)
    assert list(world.group().members) == ["m"]


def test_who_does_not_sync_is_removed(world: World) -> None:
    world.join("m", "t")
    classic = ClassicClient(world, "t")
    classic.join()
    for _ in range(3):
        world.elapse(REBALANCE_MS // 3 - 1)
        assert classic.heartbeat() == 0
    world.elapse(3)
    assert list(world.group().members) == ["m"]


def test_who_does_not_join_again_is_removed(world: World) -> None:
    member = world.join("m", "t")
    classic = ClassicClient(world, "t")
    classic.join()
    classic.sync()
    settle(member)
    for _ in range(3):
        assert classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        world.elapse(REBALANCE_MS // 3 - 1)
        member.beat()
    assert classic.member_id in world.group().members
    world.elapse(3)
    assert classic.member_id not in world.group().members


def test_static_members_keep_their_partitions_across_protocols(world: World) -> None:
    other = world.join("other", "t")
    consumer = world.join("m", "t", instance_id="i")
    settle(other, consumer)
    mine = consumer.owned
    classic = ClassicClient(world, "t", instance_id="i")
    assert classic.join().error_code == 0
    assert classic.sync() == 0
    assert classic.owned == mine
    with pytest.raises(errors.FencedInstanceId):
        consumer.beat()
    successor = world.join("n", "t", instance_id="i")
    assert successor.owned == mine
    assert classic.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
    assert classic.join().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert world.group().classic_protocols.member_count == 0


def test_classic_members_survive_a_restart(world: World) -> None:
    member = world.join("m", "t")
    classic = ClassicClient(world, "t")
    classic.join()
    classic.sync()
    settle(member)
    classic.follow()
    again = world.restarted()
    member.world = classic.world = again
    assert classic.heartbeat() == 0
    assert classic.sync() == 0
    assert classic.owned == {"t": {2, 3}}
    assert again.group().classic_protocols.common() == {"range"}
    again.elapse(CLASSIC_SESSION_MS)
    assert list(again.group().members) == ["m"]
