"""FindCoordinator (api key 10), versions 0-6: the coordinator of a group or a transactional id.

v1 key type: 0 for a group, 1 for a transactional id. v3 flexible. v4 several keys. v6 key type 2
for a share partition; the key is group:topic id:partition.

The first request for a key type creates the internal topic of its coordinators, and the answer
waits for the topic. Kafka answers COORDINATOR_NOT_AVAILABLE until the topic exists.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.broker import topics
from embedlog.broker.error_texts import message_of
from embedlog.common import uuid_from_text
from embedlog.coordinator.placement import partition_of
from embedlog.errors import KafkaError, error_for
from embedlog.topic_names import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from wire.error_codes import ErrorCode
from wire.schemas.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.broker.broker import Broker
    from embedlog.broker.context import RequestContext
    from embedlog.broker.topics import BrokerEndpoint

_FIRST_WITH_MESSAGE = 1
_FIRST_WITH_BATCH = 4
_FIRST_WITH_SHARE = 6
_SHARE = 2
_PADDED_LENGTH = 24
_DIGITS_MAX = 100
_INT32_MIN, _INT32_MAX = -(1 << 31), (1 << 31) - 1
_TOPICS = {0: OFFSETS_TOPIC, 1: TRANSACTIONS_TOPIC, _SHARE: SHARE_STATE_TOPIC}


def handle(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    version = context.api_version
    if version >= _FIRST_WITH_BATCH:
        _check_key_type(request.key_type)
        return FindCoordinatorResponse(
            coordinators=[_find(broker, context, request, key) for key in request.coordinator_keys]
        )
    if request.key_type == _SHARE:
        raise errors.InvalidRequest()
    _check_key_type(request.key_type)
    found = _find(broker, context, request, request.key)
    if found.error_code:
        raise error_for(found.error_code)
    return FindCoordinatorResponse(
        # Kafka puts the name of the error code here, and "NONE" is the name of code 0.
        error_message="NONE" if version >= _FIRST_WITH_MESSAGE else "",
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def refused(
    request: FindCoordinatorRequest, version: int, error: KafkaError
) -> FindCoordinatorResponse:
    """Return the error for every key."""
    message = message_of(error)
    if version >= _FIRST_WITH_BATCH:
        return FindCoordinatorResponse(
            coordinators=[_nobody(key, error.code, message) for key in request.coordinator_keys]
        )
    return FindCoordinatorResponse(
        error_code=error.code,
        error_message=message if version >= _FIRST_WITH_MESSAGE else "",
        node_id=-1,
        port=-1,
    )


def _check_key_type(key_type: int) -> None:
    if key_type not in _TOPICS:
        raise errors.InvalidRequest()


def _find(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest, key: str
) -> Coordinator:
    if request.key_type == _SHARE and (
        context.api_version < _FIRST_WITH_SHARE or not _is_share_key(key)
    ):
        return _nobody(key, ErrorCode.INVALID_REQUEST, "")
    if not topics.ensure_internal_topic(broker, _TOPICS[request.key_type]):
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    node = _leader(broker, context, _TOPICS[request.key_type], key)
    if node is None:
        return _nobody(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    return Coordinator(
        key=key, node_id=node.node_id, host=node.host, port=node.port, error_message=""
    )


def _leader(broker: Broker, context: RequestContext, topic: str, key: str) -> BrokerEndpoint | None:
    if broker.peers is None:
        return None if broker.is_hidden else topics.this_node(broker, context)
    known = broker.image.topics_by_name.get(topic)
    if known is None:
        return None
    partition = known.partitions[partition_of(key, len(known.partitions))]
    return topics.node(broker, context, partition.leader)


def _is_share_key(key: str) -> bool:
    """Return whether the key has the form group:topic id:partition. The group may have colons."""
    parts = key.rsplit(":", 2)
    if len(parts) != 3 or not parts[0].strip():
        return False
    text = parts[1]
    if len(text) == _PADDED_LENGTH and text.endswith("=="):
        text = text[:-2]
    number = parts[2]
    digits = number[1:] if number[:1] in ("+", "-") else number
    if not (digits.isdigit() and digits.isascii() and len(digits) <= _DIGITS_MAX):
        return False
    if "+" in text or "/" in text:
        return False  # these belong to the other base64 alphabet
    try:
        uuid_from_text(text)
    except ValueError:
        return False
    return _INT32_MIN <= int(number) <= _INT32_MAX


def _nobody(key: str, code: int, message: str | None) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message
    )
