"""LeaveGroup over every transport: one member, several, by instance id."""

from __future__ import annotations

import pytest

from tests.apis.conftest import Client
from tests.apis.groups import GROUP, form_alone, form_pair, heartbeat, join, sync
from wire.schemas.leave_group import LeaveGroupRequest, MemberIdentity


def leave(
    version: int, *member_ids: str, group_id: str = GROUP, instance_id: str | None = None
) -> LeaveGroupRequest:
    if version < 3:
        (member_id,) = member_ids
        return LeaveGroupRequest(group_id=group_id, member_id=member_id)
    members = [
        MemberIdentity(member_id=member_id, group_instance_id=instance_id)
        for member_id in member_ids
    ]
    if version >= 5:
        for member in members:
            member.reason = "enough"
    return LeaveGroupRequest(group_id=group_id, members=members)


@pytest.mark.parametrize("version", range(6))
def test_a_member_leaves_at_every_version(client: Client, version: int) -> None:
    member_id = form_alone(client)
    answer = client.call(leave(version, member_id), version)
    assert answer.error_code == 0
    assert [(m.member_id, m.error_code) for m in answer.members] == (
        [(member_id, 0)] if version >= 3 else []
    )
    assert client.call(heartbeat(member_id, 1)).error_code == 25


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("group_id", [GROUP, "unknown"])
def test_nobody_leaves(client: Client, version: int, group_id: str) -> None:
    form_alone(client)
    answer = client.call(leave(version, "m", group_id=group_id), version)
    codes = [m.error_code for m in answer.members] if version >= 3 else [answer.error_code]
    assert codes == [25]


@pytest.mark.parametrize("version", range(6))
def test_a_group_has_a_name(client: Client, version: int) -> None:
    answer = client.call(leave(version, "m", group_id=""), version)
    assert (answer.error_code, answer.members) == (24, [])


@pytest.mark.parametrize("version", [3, 4, 5])
def test_several_leave_each_with_its_own_error(client: Client, version: int) -> None:
    other = client.another()
    leader, follower = form_pair(client, other)
    answer = client.call(leave(version, leader, "m", follower, leader), version)
    assert [m.error_code for m in answer.members] == [0, 25, 0, 25]
    assert client.call(sync(leader, 2)).error_code == 25
    other.close()


@pytest.mark.parametrize("version", [3, 4, 5])
def test_an_administrator_removes_by_instance_id(client: Client, version: int) -> None:
    member_id = client.call(join(instance_id="i")).member_id
    answer = client.call(leave(version, "", instance_id="i"), version)
    (removed,) = answer.members
    assert (removed.member_id, removed.group_instance_id, removed.error_code) == ("", "i", 0)
    assert client.call(heartbeat(member_id, 1)).error_code == 25


def test_whoever_waits_to_join_is_told(client: Client) -> None:
    form_alone(client)
    other = client.another()
    member_id = other.call(join()).member_id
    waiting = other.send(join(member_id))
    while client.call(leave(5, member_id)).members[0].error_code:
        assert not client.simulates_time
    answer = waiting.result()
    # Over TCP the member may have left before its second join.
    assert answer.error_code == 25
    other.close()
