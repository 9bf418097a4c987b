"""The served APIs and versions, the calls of their handlers, and error codes for exceptions.

`VERSIONS` only lists the versions. The place that checks a request's version against the list is
`BrokerService.handle` in `server/service.py`. Clients in this process choose from the same list.

A handler module in `broker/apis` has the name of the API's schema and answers one API:

    def handle(broker, context, request) -> response | Pending[response] | None
    def refused(request, version, error) -> response      optional

`refused` puts an error code into every place that the response has for it. Without `refused`, the
error goes into the top-level `error_code` and `error_message`. Modules are imported for the first
request of their API.

The docstring of a handler module says what each version added: "v3 flexible" means that version 3
is the first with Kafka's compact encoding and tagged fields (KIP-482).
"""

from __future__ import annotations

from embedlog import errors
from embedlog.logger import Logger
from wire.api_keys import NAMES, ApiKey
from wire.registry import module_name, stable_versions, valid_versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from embedlog.broker.context import RequestContext
    from embedlog.config import BrokerConfig
    from embedlog.runtime.pending import Pending
    from wire.schema import R, Request

    Handler = Callable[[Any, RequestContext, Any], Any]

_log = Logger("broker")

_EARLY_ACCESS = frozenset(
    {
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
    }
)
"""APIs whose version 0 was an early access, which Kafka has removed."""


def _served(api_key: int, declared: tuple[int, int]) -> tuple[int, int]:
    return max(declared[0], int(api_key in _EARLY_ACCESS)), declared[1]


VERSIONS: dict[int, tuple[int, int]] = {
    api_key: _served(api_key, stable_versions(api_key))
    for api_key in (
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.METADATA,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_GROUPS,
        ApiKey.API_VERSIONS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DELETE_RECORDS,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ADD_OFFSETS_TO_TXN,
        ApiKey.END_TXN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.DELETE_GROUPS,
        ApiKey.ELECT_LEADERS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.OFFSET_DELETE,
        ApiKey.UPDATE_FEATURES,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.DESCRIBE_TRANSACTIONS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_DESCRIBE,
        ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_DESCRIBE,
        ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE,
    )
}
"""API key -> first and last served version: all versions that Kafka calls stable. ApiVersions lists
exactly these."""

UNSTABLE_VERSIONS: dict[int, tuple[int, int]] = {
    api_key: _served(api_key, valid_versions(api_key)) for api_key in VERSIONS
}
"""Like VERSIONS, but with unstable versions, for `unstable.api.versions.enable`."""


def versions(config: BrokerConfig) -> dict[int, tuple[int, int]]:
    """Return the versions that a broker with these settings serves.

    Raises:
        ConfigError: embedlog.api.versions cannot be understood.
    """
    # Read the value only if it is set: to find the default, the opening would import another
    # table of settings.
    name = "unstable.api.versions.enable"
    served = UNSTABLE_VERSIONS if config.is_set(name) and config.value(name) else VERSIONS
    if not config.is_set("embedlog.api.versions"):
        return served
    from embedlog.broker.narrowed_versions import narrowed

    return narrowed(config.embedlog_api_versions, served)


_handlers: dict[int, Handler] = {}


def call(broker: object, context: RequestContext, request: Request[R]) -> R | Pending[R]:
    """Call the API's handler; turn an exception into an error response.

    Requires: `versions` has the request's version.
    """
    handler = _handlers.get(context.api_key)
    if handler is None:
        handler = _load(context.api_key)
    try:
        answer: R | Pending[R] = handler(broker, context, request)
        return answer
    except errors.EmbedlogError as error:
        return error_response(request, context, error)
    except Exception as error:
        # This is a bug. A caller in this process gets the traceback. A client over a connection
        # gets Kafka's code for it, because without an answer it would wait until its timeout.
        if context.in_process:
            raise
        _log.error(
            "%s version %d of client %r at %s failed",
            NAMES[context.api_key],
            context.api_version,
            context.client_id,
            context.client_host,
            exc_info=error,
        )
        return error_response(request, context, errors.UnknownServerError())


def error_response(request: Request[R], context: RequestContext, error: Exception) -> R:
    """Return the answer to a failed request, with the error code in each place where Kafka puts it.

    If the request has no response (acks=0), close its connection and return None.
    """
    kafka_error = as_kafka_error(error)
    module = _module(context.api_key)
    refused = getattr(module, "refused", _refused_at_the_top)
    response: R = refused(request, context.api_version, kafka_error)
    if response is None and context.connection is not None:
        context.connection.close()
    return response


def settle(context: RequestContext, request: Request[R], pending: Pending[R]) -> R | Pending[R]:
    """Return the response of `pending`, or a pending for it; errors become error responses.

    Handlers use it for requests that may wait and then fail: the client must get a response.
    """
    from embedlog.coordinator.answers import answered

    return answered(pending, lambda error: error_response(request, context, error))


def _refused_at_the_top(request: Request[Any], _version: int, error: errors.KafkaError) -> Any:
    from embedlog.broker.error_texts import message_of
    from wire.registry import response_class
    from wire.schema import declaration

    api_key = declaration(type(request)).api
    assert api_key is not None, request
    made: Any = response_class(api_key)
    if "error_message" in made.__slots__:
        return made(error_code=error.code, error_message=message_of(error))
    return made(error_code=error.code) if "error_code" in made.__slots__ else None


def as_kafka_error(error: Exception) -> errors.KafkaError:
    """Return `error` if it is a Kafka error, otherwise the nearest Kafka error."""
    if isinstance(error, errors.KafkaError):
        return error
    if isinstance(error, errors.StorageFailed | errors.CorruptRecord | errors.ClosedError):
        return errors.KafkaStorageError(str(error))
    if isinstance(error, errors.ConfigError):
        return errors.InvalidConfig(str(error))
    return errors.UnknownServerError(str(error))


def _module(api_key: int) -> ModuleType:
    name = module_name(api_key)
    # `__import__` and not importlib, which would import `importlib` and `warnings` for this alone.
    module: ModuleType = __import__(f"embedlog.broker.apis.{name}", fromlist=(name,))
    return module


def _load(api_key: int) -> Handler:
    handler: Handler = _module(api_key).handle
    _handlers[api_key] = handler
    return handler
