"""Answers with an error: for a whole request, or for some of its items as Kafka places it.

The broker does the work for the other items: it gets the request without the refused items, and
its answer gets their errors.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker import dispatch
from embedlog.broker.error_texts import message_of
from embedlog.testing.faults.items import Item, items_of, key_fields, with_items, without
from embedlog.testing.faults.mapping import broken, mapped
from embedlog.testing.faults.messages import changed
from embedlog.testing.faults.paths import GROUP, PARTITION, TOPIC, path_of
from embedlog.testing.interception import Call
from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode
from wire.registry import response_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from embedlog.errors import KafkaError
    from embedlog.testing.faults.paths import Path
    from embedlog.testing.interception import Proceed

_READ_WHOLE = frozenset({ApiKey.FETCH})
"""APIs whose request the broker gets whole, because a session keeps account of its partitions."""

_NEEDS_THE_REST = frozenset({ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS})
"""APIs whose answer has more than the items: the broker answers even if no item is left."""

_ITEM_CODES: dict[int, frozenset[int]] = {
    ApiKey.OFFSET_FETCH: frozenset(
        {
            ErrorCode.UNSTABLE_OFFSET_COMMIT,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
        }
    )
}
"""API -> errors that Kafka puts at the partitions, though the API has a place for the whole."""

_TOP_CODES: dict[int, frozenset[int]] = {
    ApiKey.FETCH: frozenset(
        {
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        }
    ),
    ApiKey.METADATA: frozenset({ErrorCode.REBOOTSTRAP_REQUIRED}),
}
"""API -> errors that are about the whole request."""

_VALUES: dict[str, object] = {
    "base_offset": -1,
    "high_watermark": -1,
    "last_stable_offset": -1,
    "log_start_offset": -1,
    "records": b"",
    "offset": -1,
    "timestamp": -1,
    "committed_offset": -1,
    "committed_leader_epoch": -1,
    "low_watermark": -1,
    "leader_id": -1,
    "node_id": -1,
    "port": -1,
}
"""Field -> its value beside an error, if it is not the field's default."""

_FIRST_WITH_SEVERAL = 4
_METADATA_EMPTY_IS_NONE_FROM = 1


def refuse(call: Call, error: KafkaError, items: Sequence[Item] | None, proceed: Proceed) -> Any:
    """Answer a call with an error in these items, or everywhere if `items` is None.

    The broker does the work for the other items.
    """
    api_key, version = call.context.api_key, call.context.api_version
    items = _bearers(call, error, items)
    if not items:
        return dispatch.error_response(call.request, call.context, error)
    path, items = _placed(call, error, items)
    name_of = call.broker.topic_name
    if api_key == ApiKey.ADD_PARTITIONS_TO_TXN and version < _FIRST_WITH_SEVERAL:
        return _refuse_together(call, error, items)
    if _is_reached_by_the_answer_alone(call, path, items):
        answer = proceed(_at_once(call))
    else:
        rest = without(path, call.request, items, name_of)
        if rest is None and api_key in _NEEDS_THE_REST:
            rest = changed(call.request, topics=[])
        if rest is None:
            answer = None if is_unanswered(call) else response_class(api_key)()
        else:
            answer = proceed(Call(call.broker, call.context, rest))
    if is_unanswered(call):
        return dispatch.error_response(call.request, call.context, error)  # it closes
    return mapped(answer, lambda response: with_error(call, response, error, items))


def refuse_after(call: Call, error: KafkaError, items: Sequence[Item] | None, response: Any) -> Any:
    """Return the answer to put in place of `response`, the broker's answer."""
    items = _bearers(call, error, items)
    if not items:
        return dispatch.error_response(call.request, call.context, error)
    return with_error(call, response, error, items)


def with_error(call: Call, response: Any, error: KafkaError, items: Sequence[Item]) -> Any:
    """Return the broker's answer with an error in some items."""
    path, items = _placed(call, error, items)
    return with_items(
        path,
        response,
        items,
        lambda made_by, kind, present, item: _refused(made_by, kind, present, item, error),
        call.broker.topic_name,
    )


def _placed(call: Call, error: KafkaError, items: Sequence[Item]) -> tuple[Path, Sequence[Item]]:
    """Return the path to the items, and the items, for an error about whole groups or a part."""
    api_key = call.context.api_key
    path = path_of(api_key, call.context.api_version)
    if not (items and is_by_group(path) and items[0].topic is None):
        return path, items
    if error.code not in _ITEM_CODES.get(api_key, ()):
        return path[:1], items
    owners = {item.owner for item in items}
    return path, [item for item in all_items(call) if item.owner in owners]


def is_by_group(path: Path) -> bool:
    """Return whether an API answers with an error for a group, or for partitions of a group."""
    return len(path) > 1 and path[0].kind == GROUP


def all_groups(call: Call) -> list[Item]:
    """Return the groups of a request whose API `is_by_group`, without their partitions."""
    context = call.context
    path = path_of(context.api_key, context.api_version)
    return items_of(path[:1], call.request, call.broker.topic_name)[0]


def all_items(call: Call) -> list[Item]:
    """Return every item of a request, also items that it asks for without a name."""
    context = call.context
    named, open_ = items_of(
        path_of(context.api_key, context.api_version), call.request, call.broker.topic_name
    )
    if context.api_key == ApiKey.METADATA:
        is_old = context.api_version < _METADATA_EMPTY_IS_NONE_FROM
        request: Any = call.request
        if is_old and not request.topics:
            open_ = [*open_, Item()]
    for owner in open_:
        named += _existing(call, owner)
    if context.api_key == ApiKey.FETCH:
        named += _of_session(call, named)
    return named


def is_unanswered(call: Call) -> bool:
    """Return whether the request has no answer: Produce with acks=0."""
    request: Any = call.request
    return call.context.api_key == ApiKey.PRODUCE and request.acks == 0


def _bearers(call: Call, error: KafkaError, items: Sequence[Item] | None) -> Sequence[Item] | None:
    """Return the items whose answers bear the error; None if the whole answer bears it."""
    api_key = call.context.api_key
    if error.code in _TOP_CODES.get(api_key, ()):
        return None
    if items is None and (
        api_key in _READ_WHOLE
        or api_key in _NEEDS_THE_REST
        or error.code in _ITEM_CODES.get(api_key, ())
    ):
        return all_items(call)
    return items


def _is_reached_by_the_answer_alone(call: Call, path: Path, items: Sequence[Item]) -> bool:
    """Return whether the broker has to get the request with the refused items in it."""
    api_key = call.context.api_key
    if api_key in _READ_WHOLE or not items:
        return True
    levels = [each for each in path if each.request]
    if levels[-1].kind == TOPIC and items[0].partition is not None:
        return True  # the request names topics, and the refused items are partitions
    named, open_ = items_of(tuple(levels), call.request, call.broker.topic_name)
    return bool(open_) or not named


def _at_once(call: Call) -> Call:
    """Return a call that does not wait for records: Kafka answers an error at once."""
    if call.context.api_key != ApiKey.FETCH:
        return call
    return Call(call.broker, call.context, changed(call.request, max_wait_ms=0))


def _refuse_together(call: Call, error: KafkaError, items: Sequence[Item]) -> Any:
    """Refuse a transaction's partitions: if one is refused, Kafka adds none."""
    refused = {item.key for item in items}
    others = [item for item in all_items(call) if item.key not in refused]
    response = response_class(call.context.api_key)()
    response = with_error(call, response, errors.OperationNotAttempted(), others)
    return with_error(call, response, error, items)


def _refused(made_by: type[Any], kind: str, present: Any, item: Item, error: KafkaError) -> Any:
    """Return the element of an answer for a refused item."""
    names = {field.name for field in made_by.__fields__}
    code = "error_code" if "error_code" in names else "partition_error_code"
    values: dict[str, Any] = {code: error.code, **key_fields(made_by, kind, item)}
    values |= {name: value for name, value in _VALUES.items() if name in names}
    if "error_message" in names:
        values["error_message"] = message_of(error)
    if present is not None and kind == TOPIC:
        values |= {name: getattr(present, name) for name in ("name", "topic_id") if name in names}
    return made_by(**values)


def _existing(call: Call, owner: Item) -> list[Item]:
    """Return the items that exist, for a request that asks for all of them."""
    image = call.broker.image
    path = path_of(call.context.api_key, call.context.api_version)
    requested = [level for level in path if level.request]
    has_partitions = requested[-1].kind == PARTITION
    return [
        owner._replace(topic=topic.name, topic_id=topic.topic_id, partition=partition)
        for topic in image.topics_by_name.values()
        if not topic.is_internal
        for partition in (range(len(topic.partitions)) if has_partitions else (None,))
    ]


def _of_session(call: Call, named: Sequence[Item]) -> list[Item]:
    """Return the partitions of the fetch session that the request does not name."""
    request: Any = call.request
    session = call.broker.fetch_sessions.find(request.session_id)
    if session is None or request.session_epoch <= 0:
        return []
    known = {item.key for item in named}
    with session.lock:
        kept = list(session.partitions.values())
    found = [
        Item(
            topic=each.topic,
            partition=each.partition,
            topic_id=each.topic_id,
            is_named=not session.uses_topic_ids,
        )
        for each in kept
    ]
    forgotten = {
        (topic.topic or call.broker.topic_name(topic.topic_id), partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    }
    return [
        item
        for item in found
        if item.key not in known and (item.topic, item.partition) not in forgotten
    ]


def lost(call: Call) -> Any:
    """Return what a client gets whose connection breaks.

    In this process a client without acknowledgements (acks=0) does not notice, as over a socket.
    """
    return None if is_unanswered(call) and call.context.connection is None else broken()


def can_refuse(api_key: int) -> bool:
    """Return whether the newest answer of an API has a place for an error."""

    return _has_code(response_class(api_key))


def _has_code(message: type[Any]) -> bool:
    for field in message.__fields__:
        if field.name in ("error_code", "partition_error_code"):
            return True
        inner = None if field.element is None else field.element.struct
        if inner is not None and _has_code(inner):
            return True
    return False
