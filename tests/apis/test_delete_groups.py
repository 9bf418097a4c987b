"""DeleteGroups: groups without members are deleted with their offsets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.offsets import commit, fetch, fetched
from wire.error_codes import ErrorCode
from wire.schemas.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from wire.schemas.list_groups import ListGroupsRequest


def codes(response: DeleteGroupsResponse) -> list[tuple[str, int]]:
    return [(result.group_id, result.error_code) for result in response.results]


@pytest.mark.parametrize("version", range(4))
def test_a_group_goes_with_its_offsets(client: Any, version: int) -> None:
    topic, _ = client.make_topic(2)
    client.call(commit("g", {(topic, 0): 5, (topic, 1): 6}), 9)
    client.call(commit("other", {(topic, 0): 7}), 9)
    assert codes(client.call(DeleteGroupsRequest(groups_names=["g"]), version)) == [("g", 0)]
    assert fetched(client.call(fetch("g"), 9)) == {}
    assert fetched(client.call(fetch("other"), 9)) == {(topic, 0): 7}
    assert [group.group_id for group in client.call(ListGroupsRequest()).groups] == ["other"]


def test_a_deleted_group_may_come_back(client: Any) -> None:
    topic, _ = client.make_topic()
    for offset in (5, 6):
        client.call(commit("g", {(topic, 0): offset}), 9)
        assert fetched(client.call(fetch("g"), 9)) == {(topic, 0): offset}
        client.call(DeleteGroupsRequest(groups_names=["g"]))


def test_each_name_is_answered_once(client: Any) -> None:
    topic, _ = client.make_topic()
    client.call(commit("", {(topic, 0): 5}), 9)
    unknown = ErrorCode.GROUP_ID_NOT_FOUND
    response = client.call(DeleteGroupsRequest(groups_names=["no", "", "no", "neither"]), 3)
    assert codes(response) == [("no", unknown), ("", 0), ("neither", unknown)]
    assert client.call(DeleteGroupsRequest()).results == []


def test_the_records_are_gone_after_a_restart(durable_client: Any) -> None:
    topic, _ = durable_client.make_topic()
    durable_client.call(commit("g", {(topic, 0): 5}), 9)
    durable_client.call(DeleteGroupsRequest(groups_names=["g"]))
    shards = durable_client.broker.group_coordinator.runtime
    shards.unload_all()
    assert durable_client.call(ListGroupsRequest()).groups == []
    assert fetched(durable_client.call(fetch("g"), 9)) == {}
