"""Heartbeat (api key 12), versions 0-4: keep a member of a classic group alive.

v3 static members. v4 flexible. An empty group id is INVALID_GROUP_ID. For the errors that depend on
the group's state see `coordinator.group.classic.heartbeat`.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending
    from wire.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(
    broker: Broker, context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse | Pending[HeartbeatResponse]:
    if not request.group_id:
        raise errors.InvalidGroupId()
    pending = broker.group_coordinator.write(
        request.group_id, lambda shard: shard.heartbeat(request)
    )
    return settle(context, request, pending)
