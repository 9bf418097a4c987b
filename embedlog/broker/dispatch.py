"""From a request to its handler, and from an exception to an error code: both happen here only.

A handler module answers one API:

    VERSIONS = (first, last)
    def handle(broker, context, request) -> response | Pending[response] | None
    def refused(request, version, error) -> response      optional

`refused` puts an error code everywhere the API's response has room for it; without it the code
goes into the response's top-level `error_code`. Modules are imported when first asked for.
"""

from __future__ import annotations

from embedlog import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, Protocol

    from embedlog.broker.context import RequestContext
    from embedlog.pending import Pending
    from wire.schema import R, Request

    Handler = Callable[[Any, RequestContext, Any], Any]

    class Broker(Protocol):
        """What is handed to the handlers, as this file knows it."""

        def report(self, context: RequestContext, error: Exception) -> None:
            """A defect showed itself."""


HANDLERS: dict[int, tuple[str, int, int]] = {
    0: ("produce", 0, 13),
    1: ("fetch", 0, 18),
    2: ("list_offsets", 0, 11),
    3: ("metadata", 0, 13),
    8: ("offset_commit", 0, 10),
    9: ("offset_fetch", 0, 10),
    10: ("find_coordinator", 0, 6),
    11: ("join_group", 0, 9),
    12: ("heartbeat", 0, 4),
    13: ("leave_group", 0, 5),
    14: ("sync_group", 0, 5),
    15: ("describe_groups", 0, 6),
    16: ("list_groups", 0, 5),
    18: ("api_versions", 0, 5),
    19: ("create_topics", 0, 7),
    20: ("delete_topics", 0, 6),
    21: ("delete_records", 0, 2),
    22: ("init_producer_id", 0, 5),
    23: ("offset_for_leader_epoch", 0, 4),
    32: ("describe_configs", 0, 4),
    33: ("alter_configs", 0, 2),
    35: ("describe_log_dirs", 0, 5),
    37: ("create_partitions", 0, 3),
    42: ("delete_groups", 0, 3),
    44: ("incremental_alter_configs", 0, 1),
    47: ("offset_delete", 0, 0),
    60: ("describe_cluster", 0, 2),
    61: ("describe_producers", 0, 0),
    68: ("consumer_group_heartbeat", 0, 1),
    69: ("consumer_group_describe", 0, 1),
    75: ("describe_topic_partitions", 0, 0),
}
"""API key -> (module, first version, last version); what ApiVersions lists is what is served."""

_handlers: dict[int, Handler] = {}


def served_versions(api_key: int) -> tuple[int, int]:
    """The first and the last version of an API that this broker answers; (0, -1) for none."""
    _, first, last = HANDLERS.get(api_key) or ("", 0, -1)
    return first, last


def call(broker: Broker, context: RequestContext, request: Request[R]) -> R | Pending[R]:
    """Let the API's handler answer. Requires: it is among the `served_versions`."""
    handler = _handlers.get(context.api_key)
    if handler is None:
        handler = _load(context.api_key)
    try:
        answer: R | Pending[R] = handler(broker, context, request)
        return answer
    except errors.EmbedlogError as error:
        return error_response(request, context, error)
    except Exception as error:
        # A caller in this process shall see where it went wrong. A peer gets the code that Kafka
        # has for it: without an answer it would wait for its time-out.
        if context.in_process:
            raise
        broker.report(context, error)
        return error_response(request, context, errors.UnknownServerError())


def error_response(request: Request[R], context: RequestContext, error: Exception) -> R:
    """The answer to a request whose handler raised `error`: the code wherever Kafka puts it.

    None where there is no response at all (acks 0): then the connection is closed.
    """
    kafka_error = as_kafka_error(error)
    module = _module(context.api_key)
    refused = getattr(module, "refused", _refused_at_the_top)
    response: R = refused(request, context.api_version, kafka_error)
    if response is None and context.connection is not None:
        context.connection.close()
    return response


def settle(context: RequestContext, request: Request[R], pending: Pending[R]) -> R | Pending[R]:
    """The response in `pending`, or a pending of it; a failure becomes the API's error response.

    For requests that may wait and then fail: whoever waits shall get a response, not an exception.
    """
    from embedlog.coordinator.answers import answered

    return answered(pending, lambda error: error_response(request, context, error))


def _refused_at_the_top(request: Request[Any], _version: int, error: errors.KafkaError) -> Any:
    from wire.registry import response_class
    from wire.schema import declaration

    api_key = declaration(type(request)).api
    assert api_key is not None, request
    made: Any = response_class(api_key)
    return made(error_code=error.code) if "error_code" in made.__slots__ else None


def as_kafka_error(error: Exception) -> errors.KafkaError:
    """`error`, or the wire error that says as much to a client."""
    if isinstance(error, errors.KafkaError):
        return error
    if isinstance(error, errors.StorageFailed | errors.CorruptRecord | errors.ClosedError):
        return errors.KafkaStorageError(str(error))
    if isinstance(error, errors.ConfigError):
        return errors.InvalidConfig(str(error))
    return errors.UnknownServerError(str(error))


def _module(api_key: int) -> ModuleType:
    name = HANDLERS[api_key][0]
    # Not importlib: it would be the only one to need `importlib` and `warnings`.
    module: ModuleType = __import__(f"embedlog.broker.apis.{name}", fromlist=(name,))
    return module


def _load(api_key: int) -> Handler:
    handler: Handler = _module(api_key).handle
    _handlers[api_key] = handler
    return handler
