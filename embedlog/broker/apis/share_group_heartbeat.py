"""ShareGroupHeartbeat (api key 76), version 1: join, stay in and leave a share group.

The members of these groups share the records of a partition (KIP-932). The answer has an assignment
when the member joins, when it names its topics, and when the assignment has changed. The first
answer is often empty: only partitions whose state is initialised are assigned. As in Kafka, the
error for a member id that is missing or too long has no message.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle
from embedlog.coordinator.group.group import ClientIdentity
from embedlog.coordinator.group.share import request_checks
from wire.schemas.share_group_heartbeat import ShareGroupHeartbeatResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending
    from wire.schemas.share_group_heartbeat import ShareGroupHeartbeatRequest

_MEMBER_ID_LENGTH_MAX = 36


def handle(
    broker: Broker, context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse | Pending[ShareGroupHeartbeatResponse]:
    if not broker.serves_share_groups:
        raise errors.UnsupportedVersion()
    if not 0 < len(request.member_id) <= _MEMBER_ID_LENGTH_MAX:
        return ShareGroupHeartbeatResponse(error_code=errors.InvalidRequest.code)
    request_checks.check(request)
    client = ClientIdentity.of(context.client_id, context.client_host)
    pending = broker.group_coordinator.write(
        request.group_id, lambda shard: shard.share_heartbeat(client, request)
    )
    return settle(context, request, pending)
