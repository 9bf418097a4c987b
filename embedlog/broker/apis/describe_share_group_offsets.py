"""DescribeShareGroupOffsets (api key 90), versions 0-1: start offsets of share groups.

v1 lag. Null topics are all initialised partitions of the group, which its coordinator knows; named
topics are answered by any broker. A group that does not exist has no offsets, and no error.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.end_offsets import end_offsets
from embedlog.broker.error_texts import message_for_admin
from embedlog.common import few_of_each
from embedlog.coordinator.answers import answered, combined, then
from embedlog.coordinator.group.share.described_offsets import describe_offsets
from embedlog.runtime.pending import completed
from wire.schemas.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.coordinator.group.share.described_offsets import Topics, Wanted
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending

    Group = DescribeShareGroupOffsetsResponseGroup


def handle(
    broker: Broker, context: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse | Pending[DescribeShareGroupOffsetsResponse]:
    if not broker.serves_share_groups:
        raise errors.UnsupportedVersion()
    groups = few_of_each(request.groups, lambda group: group.group_id)
    return combined(
        [_describe(broker, asked) for asked in groups],
        lambda found: DescribeShareGroupOffsetsResponse(groups=found),
    )


def _describe(
    broker: Broker, asked: DescribeShareGroupOffsetsRequestGroup
) -> Group | Pending[Group]:
    group_id = asked.group_id
    wanted: Pending[Wanted]
    if asked.topics is not None:
        wanted = completed([(topic.topic_name, topic.partitions) for topic in asked.topics])
    elif group_id:
        wanted = broker.group_coordinator.read(
            group_id, lambda shard: shard.share.initialized(group_id)
        )
    else:
        wanted = completed([])

    def topics(known: Wanted) -> Pending[Topics]:
        return describe_offsets(
            group_id,
            known,
            metadata=broker.image,
            state=broker.share_state,
            end_offsets=lambda places: end_offsets(broker, places),
        )

    def group(found: Topics) -> Group:
        return DescribeShareGroupOffsetsResponseGroup(group_id=group_id, topics=found)

    found: Pending[Topics] = then(wanted, topics)
    return answered(then(found, group), lambda error: _refused(group_id, error))


def _refused(group_id: str, error: KafkaError) -> DescribeShareGroupOffsetsResponseGroup:
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id, error_code=error.code, error_message=message_for_admin(error)
    )


def refused(
    request: DescribeShareGroupOffsetsRequest, version: int, error: KafkaError
) -> DescribeShareGroupOffsetsResponse:
    """Return the error in every group."""
    return DescribeShareGroupOffsetsResponse(
        groups=[
            DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, error_code=error.code)
            for group in request.groups
        ]
    )
