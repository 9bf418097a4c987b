"""The states of a transactional producer, and which may follow which."""

from __future__ import annotations


class TransactionState:
    """What a transactional producer is doing, in Kafka's words."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    PREPARED = "in a prepared transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "in a transaction that can only be aborted"
    FATAL_ERROR = "unusable"


S = TransactionState

VALID_PREVIOUS = {
    S.INITIALIZING: {S.UNINITIALIZED, S.COMMITTING, S.ABORTING},
    S.READY: {S.INITIALIZING, S.COMMITTING, S.ABORTING},
    S.IN_TRANSACTION: {S.READY},
    S.PREPARED: {S.IN_TRANSACTION, S.INITIALIZING},
    S.COMMITTING: {S.IN_TRANSACTION, S.PREPARED},
    S.ABORTING: {S.IN_TRANSACTION, S.PREPARED, S.ABORTABLE_ERROR},
    S.ABORTABLE_ERROR: {S.IN_TRANSACTION, S.COMMITTING, S.ABORTABLE_ERROR, S.INITIALIZING},
    S.FATAL_ERROR: {
        S.UNINITIALIZED,
        S.INITIALIZING,
        S.READY,
        S.IN_TRANSACTION,
        S.PREPARED,
        S.COMMITTING,
        S.ABORTING,
        S.ABORTABLE_ERROR,
        S.FATAL_ERROR,
    },
}
"""By state: those it may be entered from. Nothing leaves `FATAL_ERROR`."""

SENDS = frozenset((S.IN_TRANSACTION, S.COMMITTING))
"""Where batches may be sent, also again."""

CLOSED = frozenset((S.UNINITIALIZED, S.INITIALIZING, S.READY))
"""Where there is no transaction that a record could belong to."""

OPEN = frozenset((S.IN_TRANSACTION, S.ABORTABLE_ERROR))
"""Where there is a transaction that closing the producer aborts."""
