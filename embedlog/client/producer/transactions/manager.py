"""`TransactionManager`: the state changes and requests of each call about transactions.

A call changes the state and queues a request; the sender's passes send it. The end of a transaction
waits until every batch has an outcome, and brings the epoch of the next transaction. Before
transaction.version 2 only an error requires a new epoch, which the producer requests after the
abort. Stricter than in Kafka's client: it also requests one after a request whose answer was lost,
because that request may arrive late and end the next transaction.
"""

from __future__ import annotations

from embedlog.client.errors import IllegalState
from embedlog.client.producer.transactions.coordinators import Coordinators
from embedlog.client.producer.transactions.prepared import PreparedTransaction
from embedlog.client.producer.transactions.queue import RequestQueue
from embedlog.client.producer.transactions.requests import (
    AddOffsets,
    CallResult,
    CommitOffsets,
    EndTxn,
    InitProducerId,
    TransactionContext,
)
from embedlog.client.producer.transactions.status import (
    VALID_PREVIOUS,
    OpenTransaction,
    TransactionState,
    TransactionStatus,
)
from embedlog.client.producer.transactions.transactional_sequences import TransactionalSequences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from embedlog.client.consumer.group.group_offsets import (
        ConsumerGroupMetadata,
        OffsetAndMetadata,
    )
    from embedlog.client.settings import Settings
    from embedlog.common import TopicPartition
    from embedlog.transport import Transport

_S = TransactionState


class TransactionManager:
    """The transactions of one producer. No method waits, none is thread-safe.

    The sender's pass uses it; another thread may use it only while no pass runs.
    """

    def __init__(
        self, transport: Transport, settings: Settings, has_records: Callable[[], bool]
    ) -> None:
        self.status = TransactionStatus(settings)
        self._coordinators = Coordinators(transport)
        self.sequences = TransactionalSequences(self.status, self._coordinators)
        self.context = TransactionContext(
            transport, settings, self.status, self._coordinators, self.sequences, has_records
        )
        self.sequences.queue = RequestQueue(self.context)
        self._result: CallResult | None = None

    # The user's calls

    def check(self, call: str) -> None:
        """Refuse a call after an error, or while an earlier call has to be repeated.

        Raises:
            IllegalState: an earlier call timed out. After an error: that error.
        """
        result = self._result
        if result is not None and not result.is_told:
            raise IllegalState(
                f"{call}: {result.call} has timed out, or is under way: call it again to get its "
                f"outcome"
            )
        self.status.raise_error()

    def initialize(self, *, keeps_prepared: bool) -> CallResult:
        """Begin to get an id and an epoch; this ends an earlier producer's transaction."""
        call = "init_transactions"
        again = self._again(call)
        if again is not None:
            return again
        self.check(call)
        if self.status.state != _S.UNINITIALIZED:
            raise IllegalState(f"{call}: it was called before; the producer is {self.status.state}")
        self.status.transition_to(_S.INITIALIZING)
        result = self._result = CallResult(call)
        self.context.add(InitProducerId(result, keeps_prepared=keeps_prepared))
        return result

    def begin(self) -> None:
        call = "begin_transaction"
        self.check(call)
        if self.status.state != _S.READY:
            raise self.status.wrong_state(call)
        self.status.transition_to(_S.IN_TRANSACTION)
        self.status.open = OpenTransaction(is_v2=self._coordinators.offers_v2)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> CallResult:
        call = "send_offsets_to_transaction"
        self.check(call)
        if self.status.state != _S.IN_TRANSACTION:
            raise self.status.wrong_state(call)
        result = CallResult(call)
        commit = CommitOffsets(result, offsets, group)
        if self.status.open.is_v2:
            self.context.add(commit)
            self.status.open.is_started = True
        else:
            self.context.add(AddOffsets(commit))
        return result

    def prepare(self) -> PreparedTransaction:
        """Admit no more records: only a commit or abort may follow, here or in another producer."""
        self.check("prepare_transaction")
        if self.status.state != _S.IN_TRANSACTION:
            raise self.status.wrong_state("prepare_transaction")
        self.status.transition_to(_S.PREPARED)
        sequences = self.sequences
        prepared = PreparedTransaction(sequences.producer_id, sequences.producer_epoch)
        self.status.open.prepared = prepared
        return prepared

    def commit(self) -> CallResult:
        call = "commit_transaction"
        again = self._again(call)
        if again is not None:
            return again
        self.check(call)
        if self.status.state != _S.COMMITTING:  # by a call that Ctrl-C ended before its request
            if self.status.state not in VALID_PREVIOUS[_S.COMMITTING]:
                raise self.status.wrong_state(call)
            self.status.transition_to(_S.COMMITTING)
        return self._end(call, commits=True)

    def abort(self) -> CallResult:
        call = "abort_transaction"
        again = self._again(call)
        if again is not None:
            return again
        if self.status.state != _S.ABORTABLE_ERROR:
            self.check(call)
        if self.status.state not in {*VALID_PREVIOUS[_S.ABORTING], _S.ABORTING}:
            raise self.status.wrong_state(call)
        self.status.begin_abort()
        return self._end(call, commits=False)

    def give_up(self, error: Exception) -> None:
        """Fail the call that is under way. Any thread may call this."""
        result = self._result
        if result is not None:
            result.fail(error)

    # Inside

    def _again(self, call: str) -> CallResult | None:
        """Return the result of an earlier, equal call, if its caller has not seen the result."""
        result = self._result
        if result is None or result.is_told or result.call != call:
            return None
        return result

    def _end(self, call: str, *, commits: bool) -> CallResult:
        for request in self.context.waiting:
            if isinstance(request, EndTxn) and request.result is not None:
                self._result = request.result  # Ctrl-C came before an earlier call noted it
                return request.result
        result = CallResult(call)
        # The request comes first: nothing would ever end a result without one.
        self.context.add(EndTxn(result, commits=commits))
        self._result = result
        return result
