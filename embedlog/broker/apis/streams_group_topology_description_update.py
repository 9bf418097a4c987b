"""StreamsGroupTopologyDescriptionUpdate (api key 93), version 0: store a topology's description.

A member sends it if the answer to its heartbeat asked for it (KIP-1331). The plugin that the
settings name keeps the description. Without a plugin no answer asks, and this API is unsupported.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.dispatch import settle
from embedlog.coordinator.answers import then
from embedlog.coordinator.group.streams.descriptions import PassingFailure
from wire.schemas.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.coordinator.group.group_shard import GroupShard
    from embedlog.coordinator.group.streams.descriptions import Descriptions
    from embedlog.coordinator.result import Result
    from embedlog.runtime.pending import Pending
    from wire.schemas.streams_group_topology_description_update import (
        StreamsGroupTopologyDescriptionUpdateRequest,
    )


def handle(
    broker: Broker,
    context: RequestContext,
    request: StreamsGroupTopologyDescriptionUpdateRequest,
) -> (
    StreamsGroupTopologyDescriptionUpdateResponse
    | Pending[StreamsGroupTopologyDescriptionUpdateResponse]
):
    if not broker.serves_streams_groups:
        raise errors.UnsupportedVersion()
    descriptions = broker.group_coordinator.descriptions
    if descriptions is None:
        raise errors.UnsupportedVersion(
            "The broker has no streams group topology description plugin configured."
        )
    for field, text in (("MemberId", request.member_id), ("GroupId", request.group_id)):
        if not text.strip():
            raise errors.InvalidRequest(f"{field} can't be empty.")
    begun = broker.group_coordinator.write(
        request.group_id, lambda shard: shard.streams.descriptions.begin(request)
    )
    return settle(context, request, then(begun, lambda _: _store(broker, descriptions, request)))


def _store(
    broker: Broker,
    descriptions: Descriptions,
    request: StreamsGroupTopologyDescriptionUpdateRequest,
) -> Pending[StreamsGroupTopologyDescriptionUpdateResponse]:
    """Give the plugin the description, and note the outcome in the group."""
    group_id, epoch = request.group_id, request.topology_epoch
    refusal = None
    try:
        descriptions.set(group_id, epoch, request.topology_description)
    except PassingFailure as error:
        raise errors.StreamsTopologyDescriptionUpdateFailed(str(error)) from error
    except errors.StreamsTopologyDescriptionUpdateFailed as error:
        refusal = error

    def note(shard: GroupShard) -> Result[None]:
        if refusal is None:
            return shard.streams.descriptions.stored(group_id, epoch)
        return shard.streams.descriptions.failed(group_id, epoch)

    def response(_: None) -> StreamsGroupTopologyDescriptionUpdateResponse:
        descriptions.stored(group_id)
        if refusal is not None:
            raise refusal
        return StreamsGroupTopologyDescriptionUpdateResponse()

    return then(broker.group_coordinator.write(group_id, note), response)
