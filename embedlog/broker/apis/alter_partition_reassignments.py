"""AlterPartitionReassignments (api key 45), versions 0-1: move partitions to other brokers.

Null replicas cancel a move in progress. v1 can forbid a move that changes the number of replicas
(KIP-860). With a timeout of zero or less nothing moves, and the answer is REQUEST_TIMED_OUT, unless
the request is empty.
"""

from __future__ import annotations

from collections.abc import Callable

from embedlog import errors
from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from embedlog.errors import KafkaError
from wire.schemas.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(
    broker: Broker, _context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    if not request.topics:
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change
        )
    if request.timeout_ms <= 0:
        raise errors.RequestTimedOut()

    def move(topic: str, wanted: ReassignablePartition) -> KafkaError | None:
        try:
            broker.controller.partitions.reassign(
                topic,
                wanted.partition_index,
                wanted.replicas,
                allow_replication_factor_change=request.allow_replication_factor_change,
            )
        except KafkaError as error:
            return error
        return None

    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=_responses(request, move),
    )


def refused(
    request: AlterPartitionReassignmentsRequest, _version: int, error: KafkaError
) -> AlterPartitionReassignmentsResponse:
    """Return the error at the top and in every partition."""
    return AlterPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=error.message,
        responses=_responses(request, lambda _topic, _wanted: error),
    )


def _responses(
    request: AlterPartitionReassignmentsRequest,
    move: Callable[[str, ReassignablePartition], KafkaError | None],
) -> list[ReassignableTopicResponse]:
    return [
        ReassignableTopicResponse(
            name=topic.name,
            partitions=[
                _response(wanted.partition_index, move(topic.name, wanted))
                for wanted in topic.partitions
            ],
        )
        for topic in request.topics
    ]


def _response(number: int, error: KafkaError | None) -> ReassignablePartitionResponse:
    if error is None:
        return ReassignablePartitionResponse(partition_index=number, error_message=None)
    return ReassignablePartitionResponse(
        partition_index=number, error_code=error.code, error_message=error.message
    )
