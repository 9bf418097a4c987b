"""OffsetDelete (api key 47), version 0: delete committed offsets of a group.

An unknown group is a top-level error. Offsets of topics that a member subscribes to are not
deleted: GROUP_SUBSCRIBED_TO_TOPIC. The API has no flexible version.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending
    from wire.schemas.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse


def handle(
    broker: Broker, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Pending[OffsetDeleteResponse]:
    if not request.group_id:
        raise errors.InvalidGroupId()
    pending = broker.group_coordinator.write(
        request.group_id, lambda shard: shard.delete_offsets(request)
    )
    return settle(context, request, pending)
