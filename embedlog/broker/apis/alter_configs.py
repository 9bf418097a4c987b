"""AlterConfigs (api key 33), versions 0-2: replace all settings of a resource.

Deprecated since Kafka 2.3, because settings that the request does not name return to their
defaults. v2 flexible. A repeated resource is refused; Kafka does not answer such a request at all.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker import topics
from embedlog.common import repeated
from embedlog.controller import config_changes
from embedlog.controller.metadata import CONFIG_ATTRIBUTES
from embedlog.errors import KafkaError
from wire.schemas.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext


def handle(
    broker: Broker, _context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    keys = [(resource.resource_type, resource.resource_name) for resource in request.resources]
    named_twice = repeated(keys)
    responses = []
    for key, resource in zip(keys, request.resources, strict=True):
        try:
            if key in named_twice:
                raise errors.InvalidRequest("Each resource must appear at most once.")
            _replace(broker, resource, validate_only=request.validate_only)
        except KafkaError as error:
            responses.append(_response(resource, error))
        else:
            responses.append(_response(resource, None))
    return AlterConfigsResponse(responses=responses)


def refused(request: AlterConfigsRequest, _version: int, error: KafkaError) -> AlterConfigsResponse:
    """Return the error in every resource."""
    return AlterConfigsResponse(
        responses=[_response(resource, error) for resource in request.resources]
    )


def _replace(broker: Broker, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    if resource.resource_type not in CONFIG_ATTRIBUTES:
        raise errors.InvalidRequest(f"Unknown resource type {resource.resource_type}")
    configs = [(config.name, config.value) for config in resource.configs]
    config_changes.replacement(configs)  # refuses unknown settings
    topics.check_node(broker, resource.resource_type, resource.resource_name)
    broker.controller.replace_configs(
        resource.resource_type,
        resource.resource_name,
        configs,
        validate_only=validate_only,
    )


def _response(
    resource: AlterConfigsResource, error: KafkaError | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=0 if error is None else error.code,
        error_message=None if error is None else error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
