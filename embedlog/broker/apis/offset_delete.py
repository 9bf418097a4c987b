"""OffsetDelete (api key 47), version 0: take stored offsets of a group away.

An unknown group is an error for the whole answer. Topics that members read keep their offsets:
GROUP_SUBSCRIBED_TO_TOPIC. Never flexible.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.pending import Pending
    from wire.schemas.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse


def handle(
    broker: Broker, context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Pending[OffsetDeleteResponse]:
    return broker.group_coordinator.offset_delete(context, request)
