"""StreamsGroupDescribe (api key 89), versions 0-1: state, topology and members of streams groups.

A group that does not exist or has another type is GROUP_ID_NOT_FOUND. The empty id is
INVALID_GROUP_ID. v1 assignor, and descriptions of topologies (KIP-1331).
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.topics import GROUP_OPERATIONS
from embedlog.common import few_of_each
from embedlog.coordinator.answers import answered, combined, then
from embedlog.coordinator.group.streams.descriptions import NodeType, PassingFailure
from wire.error_codes import ErrorCode
from wire.schemas.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    TopologyDescription,
    TopologyDescriptionGlobalStore,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.errors import KafkaError
    from embedlog.runtime.pending import Pending
    from wire.schemas import streams_group_topology_description_update as update

_NOT_STORED, _ERROR, _AVAILABLE = 1, 2, 3
"""Values of the description's status."""


def handle(
    broker: Broker, context: RequestContext, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse | Pending[StreamsGroupDescribeResponse]:
    if not broker.serves_streams_groups:
        raise errors.UnsupportedVersion()
    named = [group_id for group_id in request.group_ids if group_id]
    # As in Kafka, the answers for empty ids come first.
    nameless = [DescribedGroup(error_code=ErrorCode.INVALID_GROUP_ID)]
    nameless *= len(request.group_ids) - len(named)
    wants_description = request.include_topology_description
    answers = [_describe(broker, group_id, wants_description) for group_id in few_of_each(named)]

    def response(found: list[DescribedGroup]) -> StreamsGroupDescribeResponse:
        for group in found:
            if group.error_code:
                continue
            if request.include_authorized_operations:
                group.authorized_operations = GROUP_OPERATIONS
        return StreamsGroupDescribeResponse(groups=[*nameless, *found])

    return combined(answers, response)


def _describe(
    broker: Broker, group_id: str, wants_description: bool
) -> DescribedGroup | Pending[DescribedGroup]:
    pending = broker.group_coordinator.read(
        group_id, lambda shard: shard.streams.describe(group_id)
    )

    def refused(error: KafkaError) -> DescribedGroup:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)

    def finish(found: tuple[DescribedGroup, int]) -> DescribedGroup:
        group, stored_epoch = found
        if wants_description:
            _add_description(broker, group, stored_epoch)
        return group

    return answered(then(pending, finish), refused)


def _add_description(broker: Broker, group: DescribedGroup, stored_epoch: int) -> None:
    """Add the description of the group's present topology, or why there is none."""
    descriptions, topology = broker.group_coordinator.descriptions, group.topology
    group.topology_description_status = _NOT_STORED
    if descriptions is None or topology is None or stored_epoch != topology.epoch:
        return
    try:
        found = descriptions.get(group.group_id, topology.epoch)
    except PassingFailure:
        group.topology_description_status = _ERROR
        return
    if found is not None:
        group.topology_description = _shown(found)
        group.topology_description_status = _AVAILABLE


def _shown(description: update.TopologyDescription) -> TopologyDescription:
    return TopologyDescription(
        subtopologies=[
            TopologyDescriptionSubtopology(
                subtopology_id=part.subtopology_id, nodes=[_node(node) for node in part.nodes]
            )
            for part in description.subtopologies
        ],
        global_stores=[
            TopologyDescriptionGlobalStore(
                source=_node(store.source), processor=_node(store.processor)
            )
            for store in description.global_stores
        ],
    )


def _node(node: update.TopologyDescriptionNode) -> TopologyDescriptionNode:
    """Return the fields that a node of that type has."""
    shown = TopologyDescriptionNode(
        name=node.name, node_type=node.node_type, successors=list(dict.fromkeys(node.successors))
    )
    if node.node_type == NodeType.SOURCE:
        shown.source_topics = list(dict.fromkeys(node.source_topics))
    elif node.node_type == NodeType.PROCESSOR:
        shown.stores = list(dict.fromkeys(node.stores))
    else:
        shown.sink_topic = node.sink_topic
    return shown


def refused(
    request: StreamsGroupDescribeRequest, version: int, error: KafkaError
) -> StreamsGroupDescribeResponse:
    """Return the error in every group."""
    return StreamsGroupDescribeResponse(
        groups=[
            DescribedGroup(group_id=group_id, error_code=error.code)
            for group_id in request.group_ids
        ]
    )
