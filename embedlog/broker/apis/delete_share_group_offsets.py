"""DeleteShareGroupOffsets (api key 92), version 0: forget start offsets of a share group's topics.

The group may have no members. All partitions of a topic go together.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle
from embedlog.broker.error_texts import message_for_admin
from wire.schemas.delete_share_group_offsets import DeleteShareGroupOffsetsResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas.delete_share_group_offsets import DeleteShareGroupOffsetsRequest


def handle(
    broker: Broker, context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse | Pending[DeleteShareGroupOffsetsResponse]:
    if not broker.serves_share_groups:
        raise errors.UnsupportedVersion()
    if not request.group_id:
        raise errors.InvalidGroupId()
    pending = broker.group_coordinator.write(
        request.group_id, lambda shard: shard.share.offsets.delete(request)
    )
    return settle(context, request, pending)


def refused(
    request: DeleteShareGroupOffsetsRequest, version: int, error: KafkaError
) -> DeleteShareGroupOffsetsResponse:
    """Return the error at the top, always with a message."""
    return DeleteShareGroupOffsetsResponse(
        error_code=error.code, error_message=message_for_admin(error)
    )
