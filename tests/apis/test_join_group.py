"""JoinGroup over every transport: new member ids, parked requests, errors by version."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apis.conftest import Client, InProcess
from tests.apis.groups import (
    GROUP,
    form_alone,
    form_pair,
    join,
    simulated,
    sync,
    wait_for_rebalance,
)
from wire.error_codes import ErrorCode

VERSIONS = range(10)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_member_joins_at_every_version(client: Client, version: int) -> None:
    answer = client.call(join(version=version), version)
    if version >= 4:
        assert answer.error_code == 79
        answer = client.call(join(answer.member_id, version=version), version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.member_id.startswith("test-")
    assert answer.leader == answer.member_id
    assert answer.protocol_type == ("consumer" if version >= 7 or _keeps_all(client) else None)
    assert [(m.member_id, m.metadata) for m in answer.members] == [(answer.member_id, b"r")]


def _keeps_all(client: Client) -> bool:
    """In process the response object keeps the fields that its version lacks."""
    return type(client).__name__ == "InProcess"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_join_waits_until_everyone_has_joined(client: Client, version: int) -> None:
    leader = form_alone(client)
    other = client.another()
    member_id = other.call(join(version=version), version).member_id if version >= 4 else ""
    waiting = other.send(join(member_id, version=version), version)
    wait_for_rebalance(client, leader, 1)
    first = client.call(join(leader))
    second = waiting.result()
    assert first.generation_id == second.generation_id == 2
    assert {m.member_id for m in first.members} == {leader, second.member_id}
    assert (second.leader, second.members) == (leader, [])
    other.close()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, 24),
        ({"group_id": "", "session_timeout_ms": 1}, 24),
        ({"session_timeout_ms": 5999}, 26),
        ({"session_timeout_ms": 1_800_001}, 26),
        ({"session_timeout_ms": 1, "protocols": []}, 26),
        ({}, 25),
        ({"protocols": []}, 25),
    ],
)
def test_errors_carry_the_member_id_and_no_generation(
    client: Client, fields: dict[str, Any], code: int
) -> None:
    for version in VERSIONS:
        answer = client.call(join("m", version=version, **fields), version)
        assert (answer.error_code, answer.member_id, answer.generation_id) == (code, "m", -1)
        assert answer.protocol_name == (None if version >= 7 else "")
        assert (answer.leader, answer.members) == ("", [])


def test_members_share_a_protocol(client: Client) -> None:
    form_alone(client)
    for version in VERSIONS:
        answer = client.call(join(version=version, protocol_type="connect"), version)
        assert (answer.error_code, answer.member_id) == (23, "")
        answer = client.call(join(version=version, protocols=[]), version)
        assert (answer.error_code, answer.member_id) == (23, "")


@pytest.mark.parametrize("version", range(5, 10))
def test_a_static_member_that_restarts_goes_on(client: Client, version: int) -> None:
    former = client.call(join(instance_id="i", version=version), version)
    client.call(sync(former.member_id, 1, {former.member_id: b"A"}, group_instance_id="i"))
    answer = client.call(join(instance_id="i", version=version), version)
    assert (answer.error_code, answer.generation_id) == (0, 1)
    assert answer.member_id != former.member_id
    assert answer.leader == (answer.member_id if version >= 9 else former.member_id)
    assert answer.skip_assignment is (version >= 9)
    fenced = client.call(join(former.member_id, instance_id="i", version=version), version)
    assert fenced.error_code == 82
    again = client.call(sync(answer.member_id, 1, group_instance_id="i"))
    assert (again.error_code, again.assignment) == (0, b"A")


def test_a_client_that_hangs_up_while_it_waits_keeps_its_place_for_a_while(
    client: Client,
) -> None:
    leader, _ = form_pair(client, client.another())
    gone = client.another()
    gone.send(join(version=3), 3)
    wait_for_rebalance(client, leader, 2)
    gone.close()
    assert client.broker.group_coordinator.world.heartbeat_purgatory.delayed == 3


def test_clients_that_vanish_leave_no_trace() -> None:
    with simulated() as client:
        leader, _ = form_pair(client, client.another())
        client.another().send(join(version=3), 3)
        client.another().call(join())
        client.advance(600_000)
        world = client.broker.group_coordinator.world
        for purgatory in (world.heartbeat_purgatory, world.join_purgatory):
            assert purgatory.watched == purgatory.delayed == 0
        assert client.call(join(leader)).error_code == 25


def test_waiting_clients_get_an_answer_when_the_cluster_closes() -> None:
    with simulated() as client:
        form_alone(client)
        waiting = client.another().send(join(version=3), 3)
        assert not waiting.done()
        client.cluster.close()
        assert waiting.result().error_code == 15


def test_the_group_is_where_its_id_says(client: Client) -> None:
    form_alone(client)
    coordinator = client.broker.group_coordinator
    partition = coordinator.partition_for(GROUP)
    states = coordinator.runtime.read(
        partition, lambda shard: {name: group.state_name() for name, group in shard.groups.items()}
    )
    assert states.result() == {GROUP: "Stable"}


def test_a_group_gives_out_a_thousand_ids_at_most(client: Client) -> None:
    if not isinstance(client, InProcess):
        pytest.skip("as quick as that in process only")
    codes = [client.call(join(), 9).error_code for _ in range(1_003)]
    assert codes[:1_000] == [ErrorCode.MEMBER_ID_REQUIRED] * 1_000
    assert codes[1_000:] == [ErrorCode.GROUP_MAX_SIZE_REACHED] * 3
