"""DescribeGroups (api key 15), versions 0-6: state and members of classic groups.

v3 authorized operations. v4 static members. v5 flexible. v6 GROUP_ID_NOT_FOUND for a group that
does not exist or is not a classic group; before v6 such a group has the state Dead and no error.
"""

from __future__ import annotations

from embedlog.broker.topics import GROUP_OPERATIONS
from embedlog.common import few_of_each
from embedlog.coordinator.answers import answered, combined
from embedlog.coordinator.group.administration import described
from wire.schemas.describe_groups import DescribedGroup, DescribeGroupsResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.describe_groups import DescribeGroupsRequest


def handle(
    broker: Broker, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse | Pending[DescribeGroupsResponse]:
    groups = [
        _describe(broker, group_id, context.api_version) for group_id in few_of_each(request.groups)
    ]

    def response(found: list[DescribedGroup]) -> DescribeGroupsResponse:
        for group in found:
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
        return DescribeGroupsResponse(groups=found)

    return combined(groups, response)


def _describe(
    broker: Broker, group_id: str, version: int
) -> DescribedGroup | Pending[DescribedGroup]:
    pending = broker.group_coordinator.read(
        group_id, lambda shard: described(shard.groups, group_id, version)
    )

    def refused(error: KafkaError) -> DescribedGroup:
        return DescribedGroup(group_id=group_id, error_code=error.code)

    return answered(pending, refused)


def refused(
    request: DescribeGroupsRequest, version: int, error: KafkaError
) -> DescribeGroupsResponse:
    """Return the error in every group."""
    return DescribeGroupsResponse(
        groups=[
            DescribedGroup(group_id=group_id, error_code=error.code) for group_id in request.groups
        ]
    )
