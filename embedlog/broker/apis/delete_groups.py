"""DeleteGroups (api key 42), versions 0-3: delete groups without members, and their offsets.

v2 flexible. v3 error message. A group that is named twice is answered once, as in Kafka.
"""

from __future__ import annotations

from wire.schemas.delete_groups import DeletableGroupResult, DeleteGroupsResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.errors import KafkaError
    from embedlog.pending import Pending
    from wire.schemas.delete_groups import DeleteGroupsRequest


def handle(
    broker: Broker, context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse | Pending[DeleteGroupsResponse]:
    return broker.group_coordinator.delete_groups(context, request)


def refused(request: DeleteGroupsRequest, version: int, error: KafkaError) -> DeleteGroupsResponse:
    """The same error for every group."""
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=error.code)
            for group_id in dict.fromkeys(request.groups_names)
        ]
    )
