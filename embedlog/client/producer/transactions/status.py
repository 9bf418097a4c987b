"""The state of a transactional producer, its open transaction, and the error that ended it.

All changes of the state happen here, by the table `VALID_PREVIOUS`.
"""

from __future__ import annotations

from copy import copy

from embedlog import errors
from embedlog.client.errors import IllegalState, TransactionAborted
from embedlog.client.producer.transactions.errors import (
    FENCED,
    FORGOTTEN,
    is_fatal_to_produce,
)
from embedlog.errors import EmbedlogError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.client.producer.transactions.prepared import PreparedTransaction
    from embedlog.client.settings import Settings


class TransactionState:
    """The states of a transactional producer, in Kafka's words."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    PREPARED = "in a prepared transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "in a transaction that can only be aborted"
    FATAL_ERROR = "unusable"


_S = TransactionState

VALID_PREVIOUS = {
    _S.INITIALIZING: {_S.UNINITIALIZED, _S.COMMITTING, _S.ABORTING},
    _S.READY: {_S.INITIALIZING, _S.COMMITTING, _S.ABORTING},
    _S.IN_TRANSACTION: {_S.READY},
    _S.PREPARED: {_S.IN_TRANSACTION, _S.INITIALIZING},
    _S.COMMITTING: {_S.IN_TRANSACTION, _S.PREPARED},
    _S.ABORTING: {_S.IN_TRANSACTION, _S.PREPARED, _S.ABORTABLE_ERROR},
    _S.ABORTABLE_ERROR: {_S.IN_TRANSACTION, _S.COMMITTING, _S.ABORTABLE_ERROR, _S.INITIALIZING},
}
VALID_PREVIOUS[_S.FATAL_ERROR] = {_S.FATAL_ERROR}.union(*VALID_PREVIOUS.values())
"""By state, the states that it may follow. Nothing leaves `FATAL_ERROR`."""

SENDS = frozenset((_S.IN_TRANSACTION, _S.COMMITTING))
"""The states in which batches may be sent or resent."""

CLOSED = frozenset((_S.UNINITIALIZED, _S.INITIALIZING, _S.READY))
"""The states without a transaction that a record could belong to."""

OPEN = frozenset((_S.IN_TRANSACTION, _S.ABORTABLE_ERROR))
"""The states in which closing the producer aborts its transaction."""

_HINTS = {
    _S.UNINITIALIZED: "; call init_transactions first",
    _S.READY: "; no transaction is open: call begin_transaction first",
    _S.IN_TRANSACTION: "; a transaction is open already, and they do not nest",
    _S.PREPARED: "; a prepared transaction can only be ended",
}
_NOTES = {
    "abort": "The transaction cannot be committed: abort it; then the next one may begin.",
    "close": "This producer can do no more: close it.",
}


class OpenTransaction:
    """The state of one transaction, from its begin to its end."""

    def __init__(self, *, is_v2: bool) -> None:
        self.is_v2 = is_v2
        """True if brokers themselves add the written partitions to the transaction."""
        self.is_started = False
        """True if the coordinator may know of the transaction."""
        self.is_ending = False
        """True once EndTxn was sent: no partition or offsets can be added any more."""
        self.needs_epoch = False
        """True if sequences were lost, so that the next transaction needs a new epoch."""
        self.partitions: set[tuple[str, int]] = set()
        self.new_partitions: set[tuple[str, int]] = set()
        """Partitions of waiting batches that the next AddPartitionsToTxn request adds."""
        self.pending_partitions: set[tuple[str, int]] = set()
        """Partitions for which an AddPartitionsToTxn request was queued already."""
        self.prepared: PreparedTransaction | None = None


class TransactionStatus:
    """The status of one producer. It changes only in the sender's pass or while no pass runs."""

    def __init__(self, settings: Settings) -> None:
        self.transactional_id: str = settings["transactional.id"]
        self._timeout_ms: int = settings["transaction.timeout.ms"]
        self.state = _S.UNINITIALIZED
        self.open = OpenTransaction(is_v2=False)
        """The open transaction; an empty object while no transaction is open."""
        self.error: Exception | None = None
        """The error after which only an abort, or only closing the producer, is possible."""
        self.doom: Exception | None = None
        """The error for unsent records once the transaction cannot commit; None before that."""
        self.identity: Callable[[], tuple[int, int]] = lambda: (-1, -1)
        """Returns the producer's id and epoch."""
        self.tell_open: Callable[[bool], None] | None = None
        """Called at each change of the state, with True if records may be sent."""

    def transition_to(self, state: str) -> None:
        """Enter `state`. No other code assigns it."""
        assert self.state in VALID_PREVIOUS[state], (self.state, state)
        is_open, tell = state == _S.IN_TRANSACTION, self.tell_open
        # Ctrl-C may come in between: the producer must not take a transaction for open that is not.
        if tell is not None and not is_open:
            tell(False)
        self.state = state
        if tell is not None and is_open:
            tell(True)

    def begin_abort(self) -> None:
        """Enter the state; a second call goes on after Ctrl-C."""
        if self.state != _S.ABORTING:
            self.transition_to(_S.ABORTING)
        self.error = None
        if self.doom is None:
            text = "the transaction was aborted before the record was sent"
            self.doom = TransactionAborted(text)
        self.open.new_partitions.clear()

    def ended(self, state: str) -> None:
        """Enter the state after a transaction; a second call goes on after Ctrl-C."""
        if self.state != state:
            self.transition_to(state)
        self.doom = None
        self.open = OpenTransaction(is_v2=self.open.is_v2)

    def record_failed(self, error: Exception) -> None:
        """Note that a record failed; this ends the transaction or the producer."""
        is_fatal = is_fatal_to_produce(error)
        if is_fatal or self.state in SENDS:
            self.refused(error, is_fatal=is_fatal)

    def refused(self, error: Exception, *, is_fatal: bool) -> Exception:
        """End the transaction, or the producer, with `error`; return the error for the caller."""
        if self.state == _S.FATAL_ERROR:
            assert self.error is not None, self
            return self.error
        if getattr(error, "code", None) in FORGOTTEN:
            self.open.needs_epoch = True
        told = self._told(error, is_fatal=is_fatal)
        if is_fatal:
            self.transition_to(_S.FATAL_ERROR)
        elif self.state in VALID_PREVIOUS[_S.ABORTABLE_ERROR]:
            self.transition_to(_S.ABORTABLE_ERROR)
        else:
            return told  # the transaction is being aborted, or was aborted
        self.error = self.doom = told
        self.open.new_partitions.clear()
        return told

    def raise_error(self) -> None:
        if self.error is not None:
            raise again(self.error)

    def wrong_state(self, call: str) -> IllegalState:
        """Return the error of a `call` that does not fit the state."""
        return IllegalState(f"{call}: the producer is {self.state}{_HINTS.get(self.state, '')}")

    def fenced(self, kind: type[errors.KafkaError]) -> errors.KafkaError:
        """Return the error of a producer whose epoch is over."""
        producer_id, producer_epoch = self.identity()
        return kind(
            f"this epoch is over: another producer with transactional.id={self.transactional_id!r} "
            f"has begun, or the transaction took longer than transaction.timeout.ms="
            f"{self._timeout_ms} (this one is producer {producer_id}, epoch {producer_epoch})"
        )

    def _told(self, error: Exception, *, is_fatal: bool) -> Exception:
        if is_fatal and getattr(error, "code", None) in FENCED:
            error = self.fenced(errors.ProducerFenced)
        if isinstance(error, EmbedlogError) and error.remedy is None:
            error.remedy = "close" if is_fatal else "abort"
            error.add_note(_NOTES[error.remedy])
        return error


def again(error: Exception) -> Exception:
    """Return a copy to raise, so that the traceback of the caller is not added to `error`."""
    return copy(error)
