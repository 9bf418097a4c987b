"""The APIs of share groups over every transport; the groups have no share partitions yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from embedlog.controller.features import SAFE_DOWNGRADE, SHARE
from tests.apis.conftest import Client
from wire.error_codes import ErrorCode
from wire.schemas.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from wire.schemas.delete_groups import DeleteGroupsRequest
from wire.schemas.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from wire.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from wire.schemas.list_groups import ListGroupsRequest
from wire.schemas.share_group_describe import ShareGroupDescribeRequest
from wire.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest

GROUP = "sharers"
Call = Callable[..., Any]


def beat(epoch: int, *topics: str, member: str = "m") -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=GROUP,
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=list(topics) or None,
    )


def test_a_member_joins_stays_and_leaves(call: Call) -> None:
    answer = call(beat(0, "unknown"))
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, "m", 2)
    assert answer.assignment.topic_partitions == []
    assert call(beat(2)).assignment is None
    (group,) = call(ShareGroupDescribeRequest(group_ids=[GROUP])).groups
    assert (group.group_state, group.group_epoch, group.assignor_name) == ("Stable", 2, "simple")
    (member,) = group.members
    assert (member.member_id, member.subscribed_topic_names) == ("m", ["unknown"])
    assert call(DeleteGroupsRequest(groups_names=[GROUP])).results[0].error_code == 68
    assert call(beat(-1)).member_epoch == -1
    (listed,) = call(ListGroupsRequest(types_filter=["Share"])).groups
    assert (listed.group_id, listed.group_state, listed.group_type) == (GROUP, "Empty", "share")
    assert call(DeleteGroupsRequest(groups_names=[GROUP])).results[0].error_code == 0
    assert call(beat(2)).error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("member", ["", "x" * 37])
def test_a_member_id_is_needed_and_short(call: Call, member: str) -> None:
    answer = call(beat(0, "t", member=member))
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, None)


def test_nothing_is_served_while_the_feature_is_off(client: Client) -> None:
    client.broker.controller.update_features([(SHARE, 0, SAFE_DOWNGRADE)])
    rows = [DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)]
    refused = [
        client.call(beat(0, "t")),
        client.call(ShareGroupDescribeRequest(group_ids=[GROUP])).groups[0],
        client.call(DescribeShareGroupOffsetsRequest(groups=rows)).groups[0],
        client.call(AlterShareGroupOffsetsRequest(group_id=GROUP)),
        client.call(DeleteShareGroupOffsetsRequest(group_id=GROUP)),
    ]
    assert {each.error_code for each in refused} == {ErrorCode.UNSUPPORTED_VERSION}
