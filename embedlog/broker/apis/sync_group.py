"""SyncGroup (api key 14), versions 0-5: receive the assignment of a classic group's generation.

v3 static members. v4 flexible. v5 protocol type and name, in request and answer. The leader's
request has the assignment; the requests of the other members are parked until it is stored.

First the request itself is checked, then the group's state, in `coordinator.group.classic.sync`:
    v5 without protocol type or name    INCONSISTENT_GROUP_PROTOCOL
    empty group id                      INVALID_GROUP_ID
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending
    from wire.schemas.sync_group import SyncGroupRequest, SyncGroupResponse

_FIRST_WITH_PROTOCOL = 5


def handle(
    broker: Broker, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Pending[SyncGroupResponse]:
    says_both = request.protocol_type is not None and request.protocol_name is not None
    if context.api_version >= _FIRST_WITH_PROTOCOL and not says_both:
        raise errors.InconsistentGroupProtocol()
    if not request.group_id:
        raise errors.InvalidGroupId()
    pending = broker.group_coordinator.write(request.group_id, lambda shard: shard.sync(request))
    return settle(context, request, pending)
