"""Errors of the share coordinator, as members of the group see them."""

from __future__ import annotations

from embedlog import errors
from wire.error_codes import ErrorCode

_FENCED = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH)
_UNAVAILABLE = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
)
_KEPT = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.OFFSET_NOT_AVAILABLE,
)


def ends_partition(error: BaseException) -> bool:
    """Return whether the error says that the state is not this leader's any more."""
    return isinstance(error, errors.KafkaError) and error.code in (
        *_FENCED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.GROUP_ID_NOT_FOUND,
    )


def member_error(error: BaseException, prefix: str = "") -> errors.KafkaError:
    """Return the error for a member when reading or writing the state failed with `error`.

    `prefix` begins the message of an answer that has one.
    """
    if not isinstance(error, errors.KafkaError):
        return errors.CoordinatorNotAvailable()
    message = f"{prefix}{error.message}" if prefix and error.message else None
    if error.code in _FENCED:
        return errors.NotLeaderOrFollower(message)
    if error.code in _UNAVAILABLE:
        return errors.CoordinatorNotAvailable(message)
    if error.code in _KEPT:
        return errors.error_for(error.code, message)
    return errors.UnknownServerError(message)
