"""DescribeCluster (api key 60), versions 0-2: the cluster's id, controller and nodes.

v1 endpoint type: 1 is brokers, 2 controllers, which do not listen here. v2 fenced brokers; there
are none. A controller is always named: librdkafka's admin client waits for one for ever.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker import topics
from embedlog.errors import KafkaError
from wire.schemas.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext

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
    node = topics.this_node(broker, context)
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=node.node_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack
            )
        ],
        cluster_authorized_operations=(
            topics.CLUSTER_OPERATIONS
            if request.include_cluster_authorized_operations
            else topics.OPERATIONS_NOT_ASKED_FOR
        ),
    )


def refused(
    _request: DescribeClusterRequest, _version: int, error: KafkaError
) -> DescribeClusterResponse:
    """The error, and no cluster."""
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)
