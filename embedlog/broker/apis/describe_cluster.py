"""DescribeCluster (api key 60), versions 0-2: the cluster's id, controller and nodes.

v1 endpoint type: 1 for brokers, 2 for controllers, which do not listen in embedlog. v2 fenced
brokers. The answer names the first live broker as the controller: without a controller in the
answer, librdkafka's admin client would wait for ever.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker import topics
from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from wire.schemas.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS = 1
_CONTROLLERS = 2


def handle(
    broker: Broker, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        raise errors.MismatchedEndpointType(
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of"
            " type CONTROLLER",
        )
    if request.endpoint_type != _BROKERS:
        raise errors.UnsupportedEndpointType(f"Unsupported endpoint type {request.endpoint_type}")
    nodes = topics.live_nodes(broker, context)
    brokers = [
        DescribeClusterBroker(
            broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack
        )
        for node in nodes
    ]
    if request.include_fenced_brokers:
        brokers += _fenced(broker, context)
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=nodes[0].node_id if nodes else -1,
        brokers=brokers,
        cluster_authorized_operations=(
            topics.CLUSTER_OPERATIONS
            if request.include_cluster_authorized_operations
            else topics.OPERATIONS_NOT_ASKED_FOR
        ),
    )


def _fenced(broker: Broker, context: RequestContext) -> list[DescribeClusterBroker]:
    found = []
    for _, each in sorted(broker.image.brokers.items()):
        if each.is_fenced:
            known = broker.peers and broker.peers.address(each.node_id, context)
            host, port = known or ("", -1)
            found.append(
                DescribeClusterBroker(
                    broker_id=each.node_id, host=host, port=port, rack=each.rack, is_fenced=True
                )
            )
    return found
