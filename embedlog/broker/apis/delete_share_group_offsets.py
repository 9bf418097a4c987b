"""DeleteShareGroupOffsets (api key 92), version 0: forget start offsets of a share group's topics.

The group may have no members. All partitions of a topic go together.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending
    from wire.schemas.delete_share_group_offsets import (
        DeleteShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsResponse,
    )


def handle(
    broker: Broker, context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse | Pending[DeleteShareGroupOffsetsResponse]:
    if not broker.serves_share_groups:
        raise errors.UnsupportedVersion("The version of API is not supported.")
    if not request.group_id:
        raise errors.InvalidGroupId("The group id is invalid.")
    pending = broker.group_coordinator.write(
        request.group_id, lambda shard: shard.share.offsets.delete(request)
    )
    return settle(context, request, pending)
