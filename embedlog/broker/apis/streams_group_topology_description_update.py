"""StreamsGroupTopologyDescriptionUpdate (api key 93), version 0: store a topology's description.

A member sends it if the answer to its heartbeat asked for it (KIP-1331). Kafka's brokers give the
description to a plugin. Without a plugin no answer asks for it, and this API is unsupported.
"""

from __future__ import annotations

from embedlog import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from wire.schemas.streams_group_topology_description_update import (
        StreamsGroupTopologyDescriptionUpdateRequest,
        StreamsGroupTopologyDescriptionUpdateResponse,
    )


def handle(
    broker: Broker,
    _context: RequestContext,
    _request: StreamsGroupTopologyDescriptionUpdateRequest,
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    if not broker.serves_streams_groups:
        raise errors.UnsupportedVersion()
    raise errors.UnsupportedVersion(
        "The broker has no streams group topology description plugin configured."
    )
