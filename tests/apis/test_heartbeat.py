"""Heartbeat over every transport: sessions, and errors by version."""

from __future__ import annotations

import pytest

from tests.apis.conftest import Client
from tests.apis.groups import (
    GROUP,
    SESSION_MS,
    form_alone,
    heartbeat,
    join,
    simulated,
    sync,
)

VERSIONS = range(5)


@pytest.mark.parametrize(
    ("member_id", "generation_id", "group_id", "code"),
    [
        (None, 1, GROUP, 0),
        ("m", 1, "", 24),
        ("m", 1, "unknown", 25),
        ("m", 7, GROUP, 25),
        ("", 1, GROUP, 25),
        (None, 7, GROUP, 22),
        (None, -1, GROUP, 22),
    ],
)
def test_what_a_member_hears(
    client: Client, member_id: str | None, generation_id: int, group_id: str, code: int
) -> None:
    known = form_alone(client)
    asked = known if member_id is None else member_id
    for version in VERSIONS:
        request = heartbeat(asked, generation_id, group_id=group_id)
        assert client.call(request, version).error_code == code


@pytest.mark.parametrize("version", [3, 4])
def test_static_members_say_both_ids(client: Client, version: int) -> None:
    member_id = client.call(join(instance_id="i")).member_id
    for said, instance_id, code in ((member_id, "i", 0), ("m", "i", 82), (member_id, "j", 25)):
        asked = heartbeat(said, 1, group_instance_id=instance_id)
        assert client.call(asked, version).error_code == code


def test_a_session_lasts_as_long_as_heartbeats_come() -> None:
    with simulated() as client:
        member_id = form_alone(client)
        for _ in range(3):
            client.advance(SESSION_MS - 1)
            assert client.call(heartbeat(member_id, 1)).error_code == 0
        client.advance(SESSION_MS)
        assert client.call(heartbeat(member_id, 1)).error_code == 25
        assert client.call(sync(member_id, 1)).error_code == 25
