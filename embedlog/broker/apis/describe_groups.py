"""DescribeGroups (api key 15), versions 0-6: state and members of classic groups.

v3 authorized operations. v4 static members. v5 flexible. v6 a group that is not there, or is not a
classic one, is GROUP_ID_NOT_FOUND; before that it is merely Dead.
"""

from __future__ import annotations

from embedlog.broker.topics import GROUP_OPERATIONS
from embedlog.coordinator.answers import combined
from wire.schemas.describe_groups import DescribedGroup, DescribeGroupsResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.errors import KafkaError
    from embedlog.pending import Pending
    from wire.schemas.describe_groups import DescribeGroupsRequest


def handle(
    broker: Broker, context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse | Pending[DescribeGroupsResponse]:
    answer = broker.group_coordinator.describe_groups(context, request)
    if not request.include_authorized_operations:
        return answer

    def allowed(found: list[DescribeGroupsResponse]) -> DescribeGroupsResponse:
        for group in found[0].groups:
            if not group.error_code:
                group.authorized_operations = GROUP_OPERATIONS
        return found[0]

    return combined([answer], allowed)


def refused(
    request: DescribeGroupsRequest, version: int, error: KafkaError
) -> DescribeGroupsResponse:
    """The same error for every group."""
    return DescribeGroupsResponse(
        groups=[
            DescribedGroup(group_id=group_id, error_code=error.code) for group_id in request.groups
        ]
    )
