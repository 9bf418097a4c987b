"""Translation of errors of a coordinator's log into errors for clients.

Most errors for clients make a client try again, or look for the coordinator again.
"""

from __future__ import annotations

from embedlog import errors
from wire.error_codes import ErrorCode

_CLIENT_ERRORS = {
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
    """Return the error that a client gets when a log, or an append to it, fails with `error`."""
    if isinstance(error, errors.CorruptRecord):
        # Nobody knows which records were committed, so clients must not start over as if there
        # had been none. Kafka's NOT_COORDINATOR would make them look for another coordinator for
        # ever, in silence; every client reports this code to its user.
        return errors.UnknownServerError(str(error))
    if not isinstance(error, errors.KafkaError):
        # The disk refused the write, or the log was closed: another coordinator may succeed.
        return errors.NotCoordinator()
    return errors.error_for(_CLIENT_ERRORS[error.code]) if error.code in _CLIENT_ERRORS else error


def commit_error(code: int) -> errors.KafkaError:
    """Return the client's error for an error code of `replication.delayed_produce.commit_state`."""
    return as_coordinator_error(errors.error_for(code))
