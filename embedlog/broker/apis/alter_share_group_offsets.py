"""AlterShareGroupOffsets (api key 91), version 0: set start offsets of a share group.

The group may have no members. An unknown group is created, if one of the partitions exists. Any
number is taken as an offset; -1 lets share.auto.offset.reset decide. Kafka has no check either.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.runtime.pending import Pending
    from wire.schemas.alter_share_group_offsets import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsResponse,
    )


def handle(
    broker: Broker, context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse | Pending[AlterShareGroupOffsetsResponse]:
    if not broker.serves_share_groups:
        raise errors.UnsupportedVersion("The version of API is not supported.")
    if not request.group_id:
        raise errors.InvalidGroupId("The group id is invalid.")
    pending = broker.group_coordinator.write(
        request.group_id, lambda shard: shard.alter_share_offsets(request)
    )
    return settle(context, request, pending)
