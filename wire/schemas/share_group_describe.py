"""ShareGroupDescribe (API key 77), versions 0-1, flexible: state and members of share groups.

v0 was early access. v1 is the first stable version.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import (
    Request,
    array,
    boolean,
    int16,
    int32,
    message,
    string,
    struct,
    struct_,
    uuid,
)


@message(api=ApiKey.SHARE_GROUP_DESCRIBE, kind="request", versions="0-1", flexible="0+")
class ShareGroupDescribeRequest(Request["ShareGroupDescribeResponse"]):
    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


@struct
class TopicPartitions:
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@struct
class Member:
    member_id: str = string()
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    assignment: Assignment = struct_(Assignment)


@struct
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-(2**31))


@message(api=ApiKey.SHARE_GROUP_DESCRIBE, kind="response", versions="0-1", flexible="0+")
class ShareGroupDescribeResponse:
    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
