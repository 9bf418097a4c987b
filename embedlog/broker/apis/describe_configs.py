"""DescribeConfigs (api key 32), versions 0-4: settings of topics, brokers, loggers and groups.

It also describes client metrics subscriptions. v0 marks defaults, v1 names sources and synonyms. v3
types and documentation. v4 flexible. An empty or null list of keys means all settings. Groups and
subscriptions are described even if they do not exist.
"""

from __future__ import annotations

from collections.abc import Hashable

from embedlog import errors
from embedlog.broker.broker import Broker
from embedlog.broker.context import RequestContext
from embedlog.broker.error_texts import message_of
from embedlog.common import few_of_each
from embedlog.config import describe, types
from embedlog.config.broker_config import SOURCE_DEFAULT
from embedlog.config.definitions import BROKER, CLIENT_METRICS, GROUP, TOPIC
from embedlog.config.describe import ConfigEntry
from embedlog.controller import topic_names
from embedlog.controller.metadata import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from embedlog.errors import KafkaError
from wire.schemas.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

SOURCE_LOGGER = 6

_FIRST_WITH_SOURCE = 1
_DEFINITIONS = {
    RESOURCE_TOPIC: TOPIC,
    RESOURCE_BROKER: BROKER,
    RESOURCE_CLIENT_METRICS: CLIENT_METRICS,
    RESOURCE_GROUP: GROUP,
}


def handle(
    broker: Broker, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    if any(resource.resource_type not in _DESCRIBE for resource in request.resources):
        # As in Kafka, one unknown type fails the whole request.
        raise errors.InvalidRequest()
    results = []
    for resource in few_of_each(request.resources, _question):
        try:
            entries = _DESCRIBE[resource.resource_type](broker, resource)
        except KafkaError as error:
            results.append(_failure(resource, error.code, error.message or ""))
            continue
        results.append(
            DescribeConfigsResult(
                error_message="",
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[
                    _line(entry, request, resource.resource_type, context.api_version)
                    for entry in entries
                ],
            )
        )
    return DescribeConfigsResponse(results=results)


def _question(resource: DescribeConfigsResource) -> Hashable:
    return resource.resource_type, resource.resource_name, tuple(resource.configuration_keys or ())


def refused(
    request: DescribeConfigsRequest, _version: int, error: KafkaError
) -> DescribeConfigsResponse:
    """Return the error in every resource."""
    return DescribeConfigsResponse(
        results=[
            _failure(resource, error.code, message_of(error)) for resource in request.resources
        ]
    )


def _failure(
    resource: DescribeConfigsResource, code: int, message: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _line(
    entry: ConfigEntry, request: DescribeConfigsRequest, resource_type: int, version: int
) -> DescribeConfigsResourceResult:
    documentation = None
    if request.include_documentation:
        definitions = _DEFINITIONS.get(resource_type)
        documentation = definitions.documentation(entry.name) if definitions else ""
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=version < _FIRST_WITH_SOURCE and entry.source == SOURCE_DEFAULT,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in entry.synonyms
        ]
        if request.include_synonyms
        else [],
        config_type=entry.type,
        documentation=documentation,
    )


def _topic(broker: Broker, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    name = resource.resource_name
    topic_names.validate_name(name)
    image = broker.image
    if name not in image.topics_by_name:
        raise errors.UnknownTopicOrPartition()
    texts = image.topic_configs.get(name, {})
    return describe.describe_topic(texts, broker.config, resource.configuration_keys or None)


def _broker(broker: Broker, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    names = resource.configuration_keys or None
    if resource.resource_name == "":
        texts = broker.image.broker_configs.get("", {})
        return describe.describe_cluster_defaults(broker.config, texts, names)
    node_id = _node_id(resource.resource_name)
    if node_id != broker.node_id:
        raise errors.InvalidRequest(
            f"Unexpected broker id, expected {broker.node_id} or empty string, but received"
            f" {resource.resource_name}",
        )
    return describe.describe_broker(broker.config, names)


def _broker_logger(broker: Broker, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    if resource.resource_name == "":
        raise errors.InvalidRequest("Broker id must not be empty")
    if _node_id(resource.resource_name) != broker.node_id:
        raise errors.InvalidRequest(
            f"Unexpected broker id, expected {broker.node_id} but received"
            f" {resource.resource_name}",
        )
    wanted = set(resource.configuration_keys or ())
    return [
        describe.ConfigEntry(name, level, type_=0, source=SOURCE_LOGGER)
        for name, level in broker.config.logger_levels.items()
        if not wanted or name in wanted
    ]


def _node_id(text: str) -> int:
    try:
        return int(str(types.parse("", types.INT, text)))
    except ValueError:
        raise errors.InvalidRequest(f"Broker id must be an integer, but it is: {text}") from None


def _group(broker: Broker, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    if resource.resource_name == "":
        raise errors.InvalidRequest("Group name must not be empty")
    texts = broker.image.group_configs.get(resource.resource_name, {})
    return describe.describe_group(texts, broker.config, resource.configuration_keys or None)


def _client_metrics(broker: Broker, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    if resource.resource_name == "":
        raise errors.InvalidRequest("Client metrics subscription name must not be empty")
    texts = broker.image.client_metrics_configs.get(resource.resource_name, {})
    return describe.describe_client_metrics(texts, resource.configuration_keys or None)


_DESCRIBE = {
    RESOURCE_TOPIC: _topic,
    RESOURCE_BROKER: _broker,
    RESOURCE_BROKER_LOGGER: _broker_logger,
    RESOURCE_CLIENT_METRICS: _client_metrics,
    RESOURCE_GROUP: _group,
}
