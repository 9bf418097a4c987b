"""AlterShareGroupOffsets (api key 91), version 0: set start offsets of a share group.

The group may have no members. An unknown group is created, if one of the partitions exists. Any
number is taken as an offset; -1 lets share.auto.offset.reset decide. Kafka has no check either.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle
from embedlog.broker.error_texts import message_for_admin
from wire.schemas.alter_share_group_offsets import AlterShareGroupOffsetsResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.alter_share_group_offsets import AlterShareGroupOffsetsRequest


def handle(
    broker: Broker, context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse | Pending[AlterShareGroupOffsetsResponse]:
    if not broker.serves_share_groups:
        raise errors.UnsupportedVersion()
    if not request.group_id:
        raise errors.InvalidGroupId()
    pending = broker.group_coordinator.write(
        request.group_id, lambda shard: shard.alter_share_offsets(request)
    )
    return settle(context, request, pending)


def refused(
    request: AlterShareGroupOffsetsRequest, version: int, error: KafkaError
) -> AlterShareGroupOffsetsResponse:
    """Return the error at the top, always with a message."""
    return AlterShareGroupOffsetsResponse(
        error_code=error.code, error_message=message_for_admin(error)
    )
