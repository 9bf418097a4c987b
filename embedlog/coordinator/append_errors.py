"""What clients of a coordinator are told when its log refuses: try again, or look elsewhere."""

from __future__ import annotations

from embedlog import errors
from wire.error_codes import ErrorCode

_TOLD_AS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}


def as_coordinator_error(error: errors.EmbedlogError) -> errors.KafkaError:
    """The error of a log, or of an append to it, as a coordinator's client is to hear it."""
    if isinstance(error, errors.CorruptRecord):
        # Nobody can say what was committed, so no client may begin anew as if nothing had been.
        # Kafka's NOT_COORDINATOR would make them look for another one for ever, in silence; every
        # client gives this code to its user.
        return errors.UnknownServerError(str(error))
    if not isinstance(error, errors.KafkaError):
        # The disk refused, or the log was closed: another coordinator may have better luck.
        return errors.NotCoordinator()
    return errors.error_for(_TOLD_AS[error.code]) if error.code in _TOLD_AS else error


def commit_error(code: int) -> errors.KafkaError:
    """The same for an error code of `replication.delayed_produce.commit_state`."""
    return as_coordinator_error(errors.error_for(code))
