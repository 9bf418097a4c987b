"""DescribeQuorum (api key 55), versions 0-2: the quorum of the metadata log.

embedlog has one controller. But the `process.roles` of every broker contain "controller", so all
brokers appear as voters, as tools expect. v1 the times at which a voter last fetched and was last
caught up. v2 error messages, and the voters' listeners.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from embedlog.common import ZERO_UUID
from embedlog.topic_names import METADATA_TOPIC
from wire.schemas.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

_EPOCH = 1
"""The leader epoch of the metadata log: there was only one election."""
_NEVER = -1
_FIRST_WITH_NODES = 2


def handle(
    broker: Broker, context: RequestContext, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    version = context.api_version
    if not request.topics:
        return DescribeQuorumResponse(error_message="")
    if not _asks_for_the_metadata(request):
        message = "This server does not host this topic-partition."
        return _refused_partitions(request, errors.UnknownTopicOrPartition(message))
    image = broker.image
    voters = sorted(image.brokers)
    now_ms = broker.runtime.clock.wall_ms()
    partition = ResponsePartitionData(
        partition_index=0,
        error_message="",
        leader_id=voters[0],
        leader_epoch=_EPOCH,
        high_watermark=image.end_offset,
        current_voters=[_replica(broker, node_id, now_ms) for node_id in voters],
    )
    return DescribeQuorumResponse(
        error_message="",
        topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[_node(broker, node_id) for node_id in voters]
        if version >= _FIRST_WITH_NODES
        else [],
    )


def _asks_for_the_metadata(request: DescribeQuorumRequest) -> bool:
    return [
        (topic.topic_name, [each.partition_index for each in topic.partitions])
        for topic in request.topics
    ] == [(METADATA_TOPIC, [0])]


def _replica(broker: Broker, node_id: int, now_ms: int) -> ReplicaState:
    """Describe a broker as a voter: caught up if it is live, never seen if it is fenced."""
    seen_ms = _NEVER if broker.image.brokers[node_id].is_fenced else now_ms
    return ReplicaState(
        replica_id=node_id,
        replica_directory_id=ZERO_UUID,  # as for voters in controller.quorum.voters
        log_end_offset=broker.image.end_offset,
        last_fetch_timestamp=seen_ms,
        last_caught_up_timestamp=seen_ms,
    )


def _node(broker: Broker, node_id: int) -> Node:
    """Return the voter's controller listener from the settings; nobody connects to it."""
    names, voters = broker.config.controller_listener_names, broker.config.controller_quorum_voters
    host, _, port = voters[0].rpartition("@")[2].rpartition(":")
    return Node(node_id=node_id, listeners=[Listener(name=names[0], host=host, port=int(port))])


def _refused_partitions(
    request: DescribeQuorumRequest, error: errors.KafkaError
) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        topics=[
            ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    ResponsePartitionData(
                        partition_index=each.partition_index,
                        error_code=error.code,
                        error_message=error.message,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
