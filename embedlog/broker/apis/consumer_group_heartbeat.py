"""ConsumerGroupHeartbeat (api key 68), versions 0-1: join, stay in and leave a consumer group.

In these groups the coordinator assigns the partitions (KIP-848). v1 subscription by pattern; the
client makes the member id. The answer has an assignment when the member joins, when it sends its
full state, and when the assignment has changed. The request itself is checked first, in the order
of `coordinator.group.consumer.request_checks`, and then against the state of the group.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle
from embedlog.coordinator.group.group import ClientIdentity
from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending
    from wire.schemas.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def handle(
    broker: Broker, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Pending[ConsumerGroupHeartbeatResponse]:
    if not broker.serves_consumer_protocol:
        raise errors.UnsupportedVersion()
    client = ClientIdentity.of(context.client_id, context.client_host)
    pending = broker.group_coordinator.write(
        request.group_id,
        lambda shard: shard.consumer_heartbeat(client, request, context.api_version),
    )
    return settle(context, request, pending)
