"""Reads the offsets of the records that a share group is done with, from its coordinator.

A group's stored start offset is one write behind, so some records after it are done.
"""

from __future__ import annotations

from embedlog.client.admin.coordinators import SHARE_KEY, CoordinatorCalls
from embedlog.client.admin.part import AdminPart, in_turn
from embedlog.common import TopicPartition, uuid_to_text
from embedlog.errors import KafkaError
from wire.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from wire.schemas.read_share_group_state import (
    PartitionData,
    ReadShareGroupStateRequest,
    ReadStateData,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.admin.coordinators import Answer
    from wire.schemas.describe_share_group_offsets import (
        DescribeShareGroupOffsetsResponse,
        DescribeShareGroupOffsetsResponseGroup,
    )
    from wire.schemas.read_share_group_state import ReadShareGroupStateResponse, StateBatch

    Ranges = list[tuple[int, int]]
    Asked = dict[str, tuple[TopicPartition, ReadStateData]]

_FIRST_DONE = 2
"""Delivery states from here on (acknowledged, archiving, archived) are final."""


@in_turn
def done_ranges(
    admin: AdminPart, group_id: str, *, timeout_ms: int | None = None
) -> dict[TopicPartition, Ranges]:
    """Return (first, last) offsets of the records that the group is done with, in order.

    Partitions that the group has not begun are missing, and so are those whose coordinator refuses
    to tell: on a secured cluster only brokers may ask.
    """
    try:
        group = CoordinatorCalls(admin._calls, timeout_ms).ask_one(
            group_id,
            DescribeShareGroupOffsetsRequest,
            lambda _version: DescribeShareGroupOffsetsRequest(
                groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)]
            ),
            _described,
        )
    except KafkaError:  # no member has come to the group yet
        return {}
    asked = _questions(group)
    outcomes = CoordinatorCalls(admin._calls, timeout_ms, SHARE_KEY).ask(
        asked,
        ReadShareGroupStateRequest,
        lambda keys, _version: ReadShareGroupStateRequest(
            group_id=group_id, topics=[asked[each][1] for each in keys]
        ),
        lambda response, _keys: _answers(group_id, response),
    )
    return {
        asked[key][0]: [
            (each.first_offset, each.last_offset)
            for each in found
            if each.delivery_state >= _FIRST_DONE
        ]
        for key, found in outcomes.items()
        if not isinstance(found, KafkaError)
    }


def _described(
    response: DescribeShareGroupOffsetsResponse,
) -> Answer[DescribeShareGroupOffsetsResponseGroup]:
    group = response.groups[0]
    return group.error_code, group.error_message, group


def _questions(group: DescribeShareGroupOffsetsResponseGroup) -> Asked:
    """Return a question about each partition; keys are the coordinators' names of them."""
    return {
        _key(group.group_id, topic.topic_id, each.partition_index): (
            TopicPartition(topic.topic_name, each.partition_index),
            ReadStateData(
                topic_id=topic.topic_id,
                partitions=[
                    # A higher epoch than the leader's would end its writes.
                    PartitionData(
                        partition=each.partition_index, leader_epoch=max(0, each.leader_epoch)
                    )
                ],
            ),
        )
        for topic in group.topics
        for each in topic.partitions
        if not each.error_code and each.start_offset >= 0
    }


def _answers(
    group_id: str, response: ReadShareGroupStateResponse
) -> dict[str, Answer[list[StateBatch]]]:
    return {
        _key(group_id, topic.topic_id, each.partition): (
            each.error_code,
            each.error_message,
            each.state_batches,
        )
        for topic in response.results
        for each in topic.partitions
    }


def _key(group_id: str, topic_id: bytes, partition: int) -> str:
    return f"{group_id}:{uuid_to_text(topic_id)}:{partition}"
