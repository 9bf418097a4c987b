"""StreamsGroupTopologyDescriptionUpdate (API key 93), version 0, flexible: store the description of
a streams topology.
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.schema import Request, array, int8, int16, int32, message, string, struct, struct_


@struct
class TopologyDescriptionNode:
    name: str = string()
    node_type: int = int8()
    source_topics: list[str] = array(string)
    sink_topic: str | None = string(nullable="0+", default=None)
    stores: list[str] = array(string)
    successors: list[str] = array(string)


@struct
class TopologyDescriptionSubtopology:
    subtopology_id: str = string()
    nodes: list[TopologyDescriptionNode] = array(TopologyDescriptionNode)


@struct
class TopologyDescriptionGlobalStore:
    source: TopologyDescriptionNode = struct_(TopologyDescriptionNode)
    processor: TopologyDescriptionNode = struct_(TopologyDescriptionNode)


@struct
class TopologyDescription:
    subtopologies: list[TopologyDescriptionSubtopology] = array(TopologyDescriptionSubtopology)
    global_stores: list[TopologyDescriptionGlobalStore] = array(TopologyDescriptionGlobalStore)


@message(
    api=ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
    kind="request",
    versions="0",
    flexible="0+",
)
class StreamsGroupTopologyDescriptionUpdateRequest(
    Request["StreamsGroupTopologyDescriptionUpdateResponse"]
):
    group_id: str = string()
    member_id: str = string()
    topology_epoch: int = int32()
    topology_description: TopologyDescription = struct_(TopologyDescription)


@message(
    api=ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
    kind="response",
    versions="0",
    flexible="0+",
)
class StreamsGroupTopologyDescriptionUpdateResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
