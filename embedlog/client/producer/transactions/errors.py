"""What an error means to a transaction: try again, abort it, or close the producer.

error of a request                              then
the coordinator moved, or does not answer       find the coordinator, and send again
a retriable one                                 send the request again after a back-off
of the table `_REFUSALS`                        as the table says
another, of AddPartitionsToTxn                  the transaction has to be aborted
another                                         the producer can only be closed

error of a batch                                then
of `_FATAL_TO_PRODUCE`                          the producer can only be closed
another, once it is not tried again             the transaction has to be aborted
"""

from __future__ import annotations

from wire.api_keys import ApiKey
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.errors import KafkaError


class Verdict:
    """What to do after a refused request."""

    LOOK_UP = "look up"
    """Find the coordinator, and send the request again."""
    RETRY = "retry"
    ABORT = "abort"
    CLOSE = "close"


UNANSWERED = frozenset((ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT))
"""Errors after which nobody knows whether the request has arrived, or still will."""

_LOST_COORDINATOR = UNANSWERED | {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}

_REFUSALS = {
    ErrorCode.TRANSACTION_ABORTABLE: Verdict.ABORT,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Verdict.ABORT,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Verdict.ABORT,
    ErrorCode.UNKNOWN_MEMBER_ID: Verdict.ABORT,
    ErrorCode.ILLEGAL_GENERATION: Verdict.ABORT,
    ErrorCode.FENCED_INSTANCE_ID: Verdict.ABORT,
    ErrorCode.UNKNOWN_PRODUCER_ID: Verdict.ABORT,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Verdict.ABORT,
    ErrorCode.PRODUCER_FENCED: Verdict.CLOSE,
    ErrorCode.INVALID_PRODUCER_EPOCH: Verdict.CLOSE,
    ErrorCode.INVALID_TXN_STATE: Verdict.CLOSE,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: Verdict.CLOSE,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Verdict.CLOSE,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: Verdict.CLOSE,
    ErrorCode.UNSUPPORTED_VERSION: Verdict.CLOSE,
}

_FATAL_TO_PRODUCE = frozenset(
    (
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    )
)

FENCED = frozenset((ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH))
"""Errors of requests which mean that a newer epoch of this producer exists."""

FORGOTTEN = frozenset((ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING))
"""Errors which mean that the coordinator has forgotten this producer, which needs a new id."""


def verdict(api_key: int, error: KafkaError) -> str:
    """Return what to do after an error of a request."""
    if error.code in _LOST_COORDINATOR:
        return Verdict.LOOK_UP
    known = _REFUSALS.get(error.code)
    if known is not None:
        return known
    if error.retriable:
        return Verdict.RETRY
    return Verdict.ABORT if api_key == ApiKey.ADD_PARTITIONS_TO_TXN else Verdict.CLOSE


def is_fatal_to_produce(error: Exception) -> bool:
    """Return whether a batch's error ends the producer, not only its transaction."""
    return getattr(error, "code", None) in _FATAL_TO_PRODUCE
