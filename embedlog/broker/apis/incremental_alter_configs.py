"""IncrementalAlterConfigs (api key 44), versions 0-1: set, delete, append and subtract settings.

v1 flexible. Each resource has its own success or error; a repeated resource is refused.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker import loggers, topics
from embedlog.common import repeated
from embedlog.controller import config_changes
from embedlog.controller.metadata import CONFIG_ATTRIBUTES, RESOURCE_BROKER_LOGGER
from embedlog.errors import KafkaError
from wire.schemas.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext


def handle(
    broker: Broker, _context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    keys = [(resource.resource_type, resource.resource_name) for resource in request.resources]
    named_twice = repeated(keys)
    responses = []
    for key, resource in zip(keys, request.resources, strict=True):
        try:
            if key in named_twice:
                raise errors.InvalidRequest("Each resource must appear at most once.")
            _alter(broker, resource, validate_only=request.validate_only)
        except KafkaError as error:
            responses.append(_response(resource, error))
        else:
            responses.append(_response(resource, None))
    return IncrementalAlterConfigsResponse(responses=responses)


def refused(
    request: IncrementalAlterConfigsRequest, _version: int, error: KafkaError
) -> IncrementalAlterConfigsResponse:
    """Return the error in every resource."""
    return IncrementalAlterConfigsResponse(
        responses=[_response(resource, error) for resource in request.resources]
    )


def _alter(broker: Broker, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    changes = [(c.config_operation, c.name, c.value) for c in resource.configs]
    if resource.resource_type == RESOURCE_BROKER_LOGGER:
        loggers.alter(broker.config, resource.resource_name, changes, validate_only=validate_only)
    elif resource.resource_type in CONFIG_ATTRIBUTES:
        config_changes.refuse_duplicates(name for _, name, _ in changes)
        config_changes.refuse_nulls(changes)
        topics.check_node(broker, resource.resource_type, resource.resource_name)
        broker.controller.alter_configs(
            resource.resource_type,
            resource.resource_name,
            changes,
            validate_only=validate_only,
        )
    else:
        raise errors.InvalidRequest(f"Unknown resource type {resource.resource_type}")


def _response(
    resource: AlterConfigsResource, error: KafkaError | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=0 if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
