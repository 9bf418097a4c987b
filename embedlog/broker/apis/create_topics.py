"""CreateTopics (api key 19), versions 0-7: create topics, each with its own success or error.

v1 validate only, error messages. v4 counts of -1 mean the broker's defaults; Kafka and embedlog
accept them in v2 and v3 as well. v5 flexible; the answer has counts and settings. v7 topic ids.

With a timeout of zero or less nothing is created, and the answer is REQUEST_TIMED_OUT.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker.error_texts import message_of
from embedlog.config.describe import describe_topic
from embedlog.controller import topic_names
from embedlog.controller.controller import NewTopic
from embedlog.errors import KafkaError
from wire.schemas.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.controller.metadata import TopicImage

    Described = dict[tuple[tuple[str, str], ...], list[CreatableTopicConfigs]]


def handle(
    broker: Broker, _context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    if request.timeout_ms <= 0:
        return refused(request, 0, errors.RequestTimedOut())
    refusals = _refused_by_name(request)
    wanted = [topic for topic in request.topics if topic.name not in refusals]
    try:
        made = broker.controller.create_topics(
            [_new_topic(topic) for topic in wanted], validate_only=request.validate_only
        )
    except KafkaError as error:
        made = {topic.name: error for topic in wanted}
    described: Described = {}
    results = [
        _failure(topic.name, result)
        if isinstance(result := made[topic.name], KafkaError)
        else _success(described, broker, topic, result)
        for topic in wanted
    ]
    results.extend(_failure(name, error) for name, error in refusals.items())
    return CreateTopicsResponse(topics=results)


def refused(request: CreateTopicsRequest, _version: int, error: KafkaError) -> CreateTopicsResponse:
    """Return the error in every topic."""
    return CreateTopicsResponse(topics=[_failure(topic.name, error) for topic in request.topics])


def _refused_by_name(request: CreateTopicsRequest) -> dict[str, KafkaError]:
    """Return an error for each repeated name and for the name of the metadata log.

    These topics are not sent to the controller.
    """
    refusals: dict[str, KafkaError] = {}
    seen: set[str] = set()
    for topic in request.topics:
        if topic.name in seen:
            refusals[topic.name] = errors.InvalidRequest("Duplicate topic name.")
            continue
        seen.add(topic.name)
        try:
            topic_names.refuse_metadata_topic(topic.name)
        except KafkaError as error:
            refusals[topic.name] = error
    return refusals


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        partition_count=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(at.partition_index, at.broker_ids) for at in topic.assignments],
        configs={config.name: config.value for config in topic.configs},
    )


def _failure(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=message_of(error))


def _success(
    described: Described, broker: Broker, asked: CreatableTopic, topic: TopicImage
) -> CreatableTopicResult:
    texts = {config.name: config.value for config in asked.configs if config.value is not None}
    # Topics with the same settings share one description: a request may make thousands.
    key = tuple(texts.items())
    configs = described.get(key)
    if configs is None:
        configs = described[key] = _configs(broker, texts)
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
        configs=configs,
    )


def _configs(broker: Broker, texts: dict[str, str]) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            # The answer repeats settings as the client wrote them: " 5 ", "TRUE".
            value=texts.get(entry.name, entry.value),
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in describe_topic(texts, broker.config)
    ]
