"""SyncGroup over every transport: assignments, parked requests, errors by version."""

from __future__ import annotations

import pytest

from tests.apis.conftest import Client
from tests.apis.groups import form_alone, form_pair, heartbeat, join, simulated, sync

VERSIONS = range(6)


@pytest.mark.parametrize("version", VERSIONS)
def test_followers_wait_for_the_leaders_assignment(client: Client, version: int) -> None:
    other = client.another()
    leader, follower = form_pair(client, other)
    waiting = other.send(sync(follower, 2, version=version), version)
    answer = client.call(sync(leader, 2, {leader: b"A", follower: b"B"}, version=version), version)
    assert (answer.error_code, answer.assignment) == (0, b"A")
    answer = waiting.result()
    assert (answer.error_code, answer.assignment) == (0, b"B")
    if version >= 5:
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    other.close()


@pytest.mark.parametrize(
    ("member_id", "generation_id", "fields", "code"),
    [
        ("m", 1, {"group_id": ""}, 24),
        ("m", 1, {"group_id": "unknown"}, 25),
        ("m", 2, {}, 25),
        (None, 2, {}, 22),
        (None, -1, {}, 22),
    ],
)
def test_errors(
    client: Client, member_id: str | None, generation_id: int, fields: dict[str, str], code: int
) -> None:
    asked = form_alone(client) if member_id is None else member_id
    for version in VERSIONS:
        answer = client.call(sync(asked, generation_id, version=version, **fields), version)
        assert (answer.error_code, answer.assignment) == (code, b"")
        assert (answer.protocol_type, answer.protocol_name) == (None, None)


@pytest.mark.parametrize(
    "fields",
    [
        {"protocol_type": None},
        {"protocol_name": None},
        {"protocol_type": None, "protocol_name": None},
        {"protocol_type": None, "group_id": ""},
        {"protocol_type": "connect"},
        {"protocol_name": "roundrobin"},
    ],
)
def test_version_5_names_the_protocol(client: Client, fields: dict[str, object]) -> None:
    member_id = form_alone(client)
    assert client.call(sync(member_id, 1, **fields), 5).error_code == 23


@pytest.mark.parametrize("version", [3, 4, 5])
def test_static_members_say_both_ids(client: Client, version: int) -> None:
    joined = client.call(join(instance_id="i"))
    said = {"group_instance_id": "i"}
    wrong = client.call(sync("m", 1, version=version, **said), version)
    assert wrong.error_code == 82
    answer = client.call(
        sync(joined.member_id, 1, {joined.member_id: b"A"}, version=version, **said), version
    )
    assert answer.assignment == b"A"
    unknown = sync(joined.member_id, 1, version=version, group_instance_id="j")
    assert client.call(unknown, version).error_code == 25


def test_whoever_waits_hears_of_a_rebalance(client: Client) -> None:
    other = client.another()
    leader, follower = form_pair(client, other)
    waiting = other.send(sync(follower, 2))
    third = client.another()
    third.send(join(version=3), 3)
    assert waiting.result().error_code == 27
    assert client.call(heartbeat(leader, 2)).error_code == 27
    other.close()
    third.close()


def test_members_that_never_sync_are_removed() -> None:
    with simulated() as client:
        leader, follower = form_pair(client, client.another())
        client.call(sync(leader, 2, {leader: b"A", follower: b"B"}))
        for _ in range(12):
            client.advance(5_000)
            client.call(heartbeat(leader, 2))
            client.call(heartbeat(follower, 2))
        assert client.call(heartbeat(leader, 2)).error_code == 27
        assert client.call(heartbeat(follower, 2)).error_code == 25
