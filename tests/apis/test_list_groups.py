"""ListGroups: the existing groups, filtered by state and type."""

from __future__ import annotations

from typing import Any

import pytest

import wire
from tests.support.offsets import commit
from wire.schemas.list_groups import ListGroupsRequest, ListGroupsResponse


def listed(response: ListGroupsResponse) -> set[tuple[str, str, str, str]]:
    assert response.error_code == 0
    return {(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in response.groups}


@pytest.mark.parametrize("version", range(6))
def test_groups_of_every_partition_are_listed(client: Any, version: int) -> None:
    topic, _ = client.make_topic()
    names = [f"group {number}" for number in range(20)]
    for name in names:
        client.call(commit(name, {(topic, 0): 5}), 9)
    state = "Empty" if version >= 4 else ""
    kind = "classic" if version >= 5 else ""
    response = client.call(ListGroupsRequest(), version)
    # In process, objects may have values for fields that the version lacks.
    response = wire.decode(ListGroupsResponse, version, wire.encode(response, version))
    assert listed(response) == {(name, "", state, kind) for name in names}


def test_a_broker_without_groups_lists_none(client: Any) -> None:
    assert client.call(ListGroupsRequest()) == ListGroupsResponse()
    assert "__consumer_offsets" not in client.broker.controller.image.topics_by_name


@pytest.mark.parametrize(
    ("states", "types", "is_found"),
    [
        ([], [], True),
        (["Empty"], [], True),
        (["empty"], ["CLASSIC"], True),
        (["Stable", "EMPTY"], [], True),
        (["Stable"], [], False),
        (["no such state"], [], False),
        ([""], [], False),
        ([], ["consumer"], False),
        ([], ["consumer", "classic"], True),
        ([], ["share"], False),
        ([], ["no such type"], False),
        (["Empty"], ["consumer"], False),
    ],
)
def test_filters_ignore_case_and_find_nothing_for_what_is_unknown(
    client: Any, states: list[str], types: list[str], is_found: bool
) -> None:
    topic, _ = client.make_topic()
    client.call(commit("g", {(topic, 0): 5}), 9)
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    found = {("g", "", "Empty", "classic")} if is_found else set()
    assert listed(client.call(request, 5)) == found
