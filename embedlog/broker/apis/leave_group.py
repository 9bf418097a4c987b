"""LeaveGroup (api key 13), versions 0-5: leave a classic group, or remove other members.

v3 several members, each with its own error. v4 flexible. v5 reason, not used. An empty group id is
INVALID_GROUP_ID. For the errors of single members see `coordinator.group.classic.leave`.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending
    from wire.schemas.leave_group import LeaveGroupRequest, LeaveGroupResponse


def handle(
    broker: Broker, context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | Pending[LeaveGroupResponse]:
    if not request.group_id:
        raise errors.InvalidGroupId()
    pending = broker.group_coordinator.write(
        request.group_id, lambda shard: shard.leave(request, context.api_version)
    )
    return settle(context, request, pending)
