"""The public calls of `Producer` about transactions."""

from __future__ import annotations

from embedlog.client.errors import IllegalState
from embedlog.runtime.outer_call import outer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata, GivenOffsets
    from embedlog.client.producer.parts import ProducerParts
    from embedlog.client.producer.transactions.calls import TransactionCalls
    from embedlog.client.producer.transactions.prepared import PreparedTransaction


class Transactional:
    """The transaction calls of `Producer`; they need a transactional.id.

    The attribute `remedy` of an error says what to do:

    "abort"   the transaction cannot be committed: abort it, and begin again
    "close"   the producer can do no more, for example after another with its id has begun
    "retry"   a call timed out after max.block.ms: repeat it to get the same outcome
    """

    _parts: ProducerParts

    @outer
    def init_transactions(self, *, keep_prepared: bool = False) -> None:
        """Get this producer's epoch, once, before the first transaction.

        This fences every other producer with the same transactional.id, and aborts its open
        transaction. `keep_prepared`: with two-phase commit, a prepared transaction stays, for
        `complete_transaction`.

        Raises:
            TimedOut: the coordinator was not found, or did not answer within max.block.ms.
            IllegalState: there is no transactional.id, or it was called before.
            KafkaError: the coordinator refuses for good.
        """
        self._of_transactions("init_transactions").init(keep_prepared=keep_prepared)

    @outer
    def begin_transaction(self) -> None:
        """Open a transaction, which contains the records sent from here on. Sends no request.

        Raises:
            IllegalState: a transaction is open, or `init_transactions` was not called.
            KafkaError: the producer is fenced, or has failed for good.
        """
        self._of_transactions("begin_transaction").begin()

    @outer
    def send_offsets_to_transaction(
        self, offsets: GivenOffsets, group_metadata: ConsumerGroupMetadata
    ) -> None:
        """Commit a group's offsets if and when the transaction commits.

        `offsets` are of the next records to read; `group_metadata` is the result of
        `Consumer.group_metadata`: the coordinator refuses a consumer that is no longer a member of
        the group (KIP-447).

        Raises:
            IllegalState: no transaction is open. KafkaError: the offsets are refused.
            TimedOut: the group's coordinator did not answer within max.block.ms.
        """
        calls = self._of_transactions("send_offsets_to_transaction")
        calls.send_offsets(offsets, group_metadata)

    @outer
    def commit_transaction(self) -> None:
        """Send the records that still wait, wait for all outcomes, and commit.

        From then on readers with isolation.level=read_committed see all records of the transaction.
        If any record could not be written, they see none.

        Raises:
            IllegalState: no transaction is open. TimedOut: see `remedy`.
            KafkaError: a record or the commit itself was refused, so it is not committed.
        """
        self._of_transactions("commit_transaction").commit()

    @outer
    def abort_transaction(self) -> None:
        """Discard the transaction's records. Records that were not written yet are dropped: their
        futures fail with `TransactionAborted`.

        Raises:
            IllegalState: no transaction is open. TimedOut: see `remedy`.
            KafkaError: the producer is fenced, or has failed for good.
        """
        self._of_transactions("abort_transaction").abort()

    @outer
    def prepare_transaction(self) -> PreparedTransaction:
        """Write all sent records, and accept no more: the first phase of a two-phase commit.

        Store the result with the decision of the other side. The second phase is
        `complete_transaction`, or a commit or abort, here or, after a crash, in a producer that
        called `init_transactions(keep_prepared=True)`.

        Raises:
            IllegalState: transaction.two.phase.commit.enable is false, or no transaction is open.
            KafkaError: a record could not be written: abort. TimedOut: see `remedy`.
        """
        return self._of_transactions("prepare_transaction").prepare()

    @outer
    def complete_transaction(self, prepared: PreparedTransaction) -> None:
        """Commit the prepared transaction if it is `prepared`, else abort it.

        Raises:
            IllegalState: no transaction is prepared. Other errors as `commit_transaction`.
        """
        self._of_transactions("complete_transaction").complete(prepared)

    def _of_transactions(self, call: str) -> TransactionCalls:
        self._check_open()
        transactions = self._parts.transactions
        if transactions is None:
            raise IllegalState(f"{call}: the producer has no transactional.id")
        return transactions

    def _check_open(self) -> None:
        """Raise ClosedError if the producer is closed."""
