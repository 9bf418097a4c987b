"""CreatePartitions (api key 37), versions 0-3: add partitions to existing topics.

`count` is the new total. v2 flexible. With a timeout of zero or less nothing is added, and the
answer is REQUEST_TIMED_OUT.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.errors import KafkaError
from wire.schemas.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext


def handle(
    broker: Broker, _context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    by_name: dict[str, CreatePartitionsTopic] = {}
    duplicates: dict[str, None] = {}
    for topic in request.topics:
        if topic.name in by_name:
            duplicates[topic.name] = None
        by_name[topic.name] = topic
    results = [
        _failure(name, errors.InvalidRequest("Duplicate topic name.")) for name in duplicates
    ]
    for name, topic in by_name.items():
        if name in duplicates:
            continue
        if request.timeout_ms <= 0:
            results.append(_failure(name, errors.RequestTimedOut()))
        else:
            results.append(_add(broker, topic, validate_only=request.validate_only))
    return CreatePartitionsResponse(results=results)


def refused(
    request: CreatePartitionsRequest, _version: int, error: KafkaError
) -> CreatePartitionsResponse:
    """Return the error in every topic."""
    return CreatePartitionsResponse(
        results=[_failure(topic.name, error) for topic in request.topics]
    )


def _add(
    broker: Broker, topic: CreatePartitionsTopic, *, validate_only: bool
) -> CreatePartitionsTopicResult:
    laid_down = None
    if topic.assignments is not None:
        laid_down = [assignment.broker_ids for assignment in topic.assignments]
    try:
        broker.controller.create_partitions(
            topic.name, topic.count, assignments=laid_down, validate_only=validate_only
        )
    except KafkaError as error:
        return _failure(topic.name, error)
    return CreatePartitionsTopicResult(name=topic.name)


def _failure(name: str, error: KafkaError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=error.code, error_message=error.message
    )
