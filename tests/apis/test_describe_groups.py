"""DescribeGroups: groups that only store offsets, and groups that do not exist.

Groups with members are described in the tests of their protocols.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.offsets import commit
from wire.error_codes import ErrorCode
from wire.schemas.describe_groups import DescribedGroup, DescribeGroupsRequest

ALL_OPERATIONS = 3400
NOT_TOLD = -(2**31)


@pytest.mark.parametrize("version", range(7))
def test_a_group_that_only_stores_offsets_is_empty(client: Any, version: int) -> None:
    topic, _ = client.make_topic()
    client.call(commit("g", {(topic, 0): 5}), 9)
    (group,) = client.call(DescribeGroupsRequest(groups=["g"]), version).groups
    assert group == DescribedGroup(group_id="g", group_state="Empty")


@pytest.mark.parametrize("version", range(7))
def test_an_unknown_group_is_dead_and_later_an_error(client: Any, version: int) -> None:
    (group,) = client.call(DescribeGroupsRequest(groups=["no"]), version).groups
    expected = DescribedGroup(group_id="no", group_state="Dead")
    if version >= 6:
        expected.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        expected.error_message = "Group no not found."
    assert group == expected


def test_each_name_is_answered(client: Any) -> None:
    topic, _ = client.make_topic()
    client.call(commit("g", {(topic, 0): 5}), 9)
    groups = client.call(DescribeGroupsRequest(groups=["g", "no", "", "g"]), 5).groups
    assert [(group.group_id, group.group_state) for group in groups] == [
        ("g", "Empty"),
        ("no", "Dead"),
        ("", "Dead"),
        ("g", "Empty"),
    ]


def test_one_group_is_described_ten_times_at_most(client: Any) -> None:
    groups = client.call(DescribeGroupsRequest(groups=["no"] * 500), 5).groups
    assert len(groups) == 10


def test_operations_are_in_the_answer_on_request(client: Any) -> None:
    request = DescribeGroupsRequest(groups=["no"], include_authorized_operations=True)
    assert client.call(request, 5).groups[0].authorized_operations == ALL_OPERATIONS
    assert client.call(request, 6).groups[0].authorized_operations == NOT_TOLD
    request = DescribeGroupsRequest(groups=["no"])
    assert client.call(request, 5).groups[0].authorized_operations == NOT_TOLD
