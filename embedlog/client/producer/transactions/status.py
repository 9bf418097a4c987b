"""The state of a transactional producer, the transaction that is open, and the error that ended it.

Whatever changes the state does so here, by the table in `states`.
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
from embedlog.client.producer.transactions.open_transaction import OpenTransaction
from embedlog.client.producer.transactions.states import (
    SENDS,
    VALID_PREVIOUS,
    TransactionState,
)
from embedlog.errors import EmbedlogError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from embedlog.client.settings import Settings

_S = TransactionState
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


class TransactionStatus:
    """Of one producer; changed in its sender's turn, by the calls that others make there too."""

    def __init__(self, settings: Settings) -> None:
        self.transactional_id: str = settings["transactional.id"]
        self._timeout_ms: int = settings["transaction.timeout.ms"]
        self.state = _S.UNINITIALIZED
        self.open = OpenTransaction(is_v2=False)
        """The transaction; between two of them an empty one."""
        self.error: Exception | None = None
        """Why it can only be aborted, or the producer be closed."""
        self.doom: Exception | None = None
        """What records fail with that wait to be sent; None while they may be."""
        self.tell_open: Callable[[bool], None] | None = None
        """Called with each change of the state: may records be sent?"""

    def transition_to(self, state: str) -> None:
        """Enter `state`. The only place that assigns it."""
        assert self.state in VALID_PREVIOUS[state], (self.state, state)
        self.state = state
        if self.tell_open is not None:
            self.tell_open(state == _S.IN_TRANSACTION)

    def begin_abort(self) -> None:
        """From here on records are dropped that were not sent."""
        self.transition_to(_S.ABORTING)
        self.error = None
        if self.doom is None:
            text = "the transaction was aborted before the record was sent"
            self.doom = TransactionAborted(text)
        self.open.new_partitions.clear()

    def ended(self, state: str) -> None:
        """The transaction is over: go on in `state`."""
        self.transition_to(state)
        self.doom = None
        self.open = OpenTransaction(is_v2=self.open.is_v2)

    def record_failed(self, error: Exception) -> None:
        """A record is not part of the transaction that should be."""
        is_fatal = is_fatal_to_produce(error)
        if is_fatal or self.state in SENDS:
            self.refused(error, is_fatal=is_fatal)

    def refused(self, error: Exception, *, is_fatal: bool) -> Exception:
        """An error ends the transaction or the producer; what the caller is told."""
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
            return told  # it is being aborted, or has been
        self.error = self.doom = told
        self.open.new_partitions.clear()
        return told

    def raise_error(self) -> None:
        """Raise the error that there is, if any."""
        if self.error is not None:
            raise again(self.error)

    def wrong_state(self, call: str) -> IllegalState:
        """What `call` raises that does not fit the state."""
        return IllegalState(f"{call}: the producer is {self.state}{_HINTS.get(self.state, '')}")

    def _told(self, error: Exception, *, is_fatal: bool) -> Exception:
        if is_fatal and getattr(error, "code", None) in FENCED:
            error = errors.ProducerFenced(
                f"this epoch is over: another producer with transactional.id="
                f"{self.transactional_id!r} has begun, or the transaction took longer than "
                f"transaction.timeout.ms={self._timeout_ms}"
            )
        if isinstance(error, EmbedlogError) and error.remedy is None:
            error.remedy = "close" if is_fatal else "abort"
            error.add_note(_NOTES[error.remedy])
        return error


def again(error: Exception) -> Exception:
    """The error for one more caller, who adds to its traceback."""
    return copy(error)
