"""OffsetFetch (api key 9), versions 0-10: how far groups have read, as they have stored it.

v0 read from ZooKeeper, and answers UNKNOWN_TOPIC_OR_PARTITION for what is not there; later nothing
is an error that is merely not there. v2 null asks for all topics; an error for the whole answer.
v5 leader epochs. v6 flexible. v7 can insist on offsets that no open transaction is about to change.
v8 several groups. v9 member id and epoch. v10 topic ids.
"""

from __future__ import annotations

from embedlog.coordinator.group.offsets import older_versions
from wire.schemas.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.errors import KafkaError
    from embedlog.pending import Pending
    from wire.schemas.offset_fetch import OffsetFetchRequest


def handle(
    broker: Broker, context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Pending[OffsetFetchResponse]:
    return broker.group_coordinator.offset_fetch(context, request)


def refused(request: OffsetFetchRequest, version: int, error: KafkaError) -> OffsetFetchResponse:
    """The error wherever that version has room for it."""
    if version >= older_versions.FIRST_WITH_GROUPS:
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)
                for group in request.groups
            ]
        )
    return older_versions.refused(request, version, error.code)
