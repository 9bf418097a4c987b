"""ElectLeaders (api key 43), versions 0-2: elect the preferred leaders (0) or any live replica (1).

v1 the election type 1, which is unclean, and a top-level error. v2 flexible. Null topics mean all
topics; the answer then leaves out partitions that needed no election. With a timeout of zero or
less there is no election, and the answer is REQUEST_TIMED_OUT.
"""

from __future__ import annotations

from collections.abc import Mapping

from embedlog import errors
from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from embedlog.broker.error_texts import message_of
from embedlog.common import TopicPartition
from embedlog.errors import KafkaError
from wire.schemas.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_FIRST_WITH_ERROR = 1


def handle(
    broker: Broker, _context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse:
    if request.topic_partitions is not None and not request.topic_partitions:
        return ElectLeadersResponse()  # whatever the type and the timeout, as in Kafka
    if request.timeout_ms <= 0:
        raise errors.RequestTimedOut()
    controller = broker.controller
    if request.topic_partitions is None:
        names = list(controller.image.topics_by_name)
        found = controller.partitions.elect_leaders(request.election_type, None)
        numbers: dict[str, list[int]] = {name: [] for name in names}
        for topic, number in found:
            numbers.setdefault(topic, []).append(number)
        return _answer(list(numbers.items()), found)
    asked = [(each.topic, each.partitions) for each in request.topic_partitions]
    wanted = [TopicPartition(topic, number) for topic, numbers in asked for number in numbers]
    return _answer(asked, controller.partitions.elect_leaders(request.election_type, wanted))


def refused(request: ElectLeadersRequest, version: int, error: KafkaError) -> ElectLeadersResponse:
    """Return the error at the top, from v1 on, and in every partition."""
    return ElectLeadersResponse(
        error_code=error.code if version >= _FIRST_WITH_ERROR else 0,
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(
                        partition_id=number, error_code=error.code, error_message=error.message
                    )
                    for number in topic.partitions
                ],
            )
            for topic in request.topic_partitions or []
        ],
    )


def _answer(
    asked: list[tuple[str, list[int]]], found: Mapping[TopicPartition, KafkaError | None]
) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic,
                partition_result=[
                    _result(number, found[TopicPartition(topic, number)]) for number in numbers
                ],
            )
            for topic, numbers in asked
        ]
    )


def _result(number: int, error: KafkaError | None) -> PartitionResult:
    if error is None:
        return PartitionResult(partition_id=number, error_message=None)
    return PartitionResult(
        partition_id=number, error_code=error.code, error_message=message_of(error)
    )
