"""StreamsGroupDescribe (api key 89), versions 0-1: state, topology and members of streams groups.

A group that does not exist or has another type is GROUP_ID_NOT_FOUND. The empty id is
INVALID_GROUP_ID. v1 assignor, and descriptions of topologies (KIP-1331).
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.topics import GROUP_OPERATIONS
from embedlog.common import few_of_each
from embedlog.coordinator.answers import answered, combined
from wire.error_codes import ErrorCode
from wire.schemas.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending

_NOT_STORED = 1


def handle(
    broker: Broker, context: RequestContext, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse | Pending[StreamsGroupDescribeResponse]:
    if not broker.serves_streams_groups:
        raise errors.UnsupportedVersion()
    named = [group_id for group_id in request.group_ids if group_id]
    # As in Kafka, the answers for empty ids come first.
    nameless = [DescribedGroup(error_code=ErrorCode.INVALID_GROUP_ID)]
    nameless *= len(request.group_ids) - len(named)
    answers = [_describe(broker, group_id) for group_id in few_of_each(named)]

    def response(found: list[DescribedGroup]) -> StreamsGroupDescribeResponse:
        for group in found:
            if group.error_code:
                continue
            if request.include_authorized_operations:
                group.authorized_operations = GROUP_OPERATIONS
            if request.include_topology_description:
                group.topology_description_status = _NOT_STORED
        return StreamsGroupDescribeResponse(groups=[*nameless, *found])

    return combined(answers, response)


def _describe(broker: Broker, group_id: str) -> DescribedGroup | Pending[DescribedGroup]:
    pending = broker.group_coordinator.read(
        group_id, lambda shard: shard.streams.describe(group_id)
    )

    def refused(error: KafkaError) -> DescribedGroup:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)

    return answered(pending, refused)


def refused(
    request: StreamsGroupDescribeRequest, version: int, error: KafkaError
) -> StreamsGroupDescribeResponse:
    """Return the error in every group."""
    return StreamsGroupDescribeResponse(
        groups=[
            DescribedGroup(group_id=group_id, error_code=error.code)
            for group_id in request.group_ids
        ]
    )
