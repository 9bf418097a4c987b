"""The calls about transactions: each changes the state between two passes, then waits."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata, offsets_of
from embedlog.client.errors import IllegalState, because
from embedlog.client.producer.transactions.prepared import PreparedTransaction
from embedlog.client.producer.transactions.status import OPEN, TransactionState, again
from embedlog.errors import TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from embedlog.client.drivers.driver import Driver
    from embedlog.client.producer.accumulator import RecordAccumulator
    from embedlog.client.producer.batch import ProducerBatch
    from embedlog.client.producer.transactions.manager import TransactionManager
    from embedlog.client.producer.transactions.requests import CallResult
    from embedlog.client.settings import Settings
    from embedlog.runtime import Clock

    T = TypeVar("T")


class TransactionCalls:
    """The calls of one transactional producer, see `Transactional`. Thread-safe."""

    def __init__(
        self,
        manager: TransactionManager,
        driver: Driver,
        accumulator: RecordAccumulator,
        settings: Settings,
        clock: Clock,
    ) -> None:
        self._manager = manager
        self._driver = driver
        self._accumulator = accumulator
        self._max_block_ms: int = settings["max.block.ms"]
        self._clock = clock
        self.spent_ns = dict.fromkeys(("init", "begin", "send-offsets", "commit", "abort"), 0)
        """Total time in calls, by Kafka's names of their metrics."""

    def on_open(self, tell: Callable[[bool], None]) -> None:
        """Call `tell(True)` when a transaction is opened, `tell(False)` at any other change."""
        self._manager.status.tell_open = tell

    def init(self, *, keep_prepared: bool) -> None:
        manager = self._manager
        self._await("init", lambda: manager.initialize(keeps_prepared=keep_prepared))

    def begin(self) -> None:
        began_us = self._clock.monotonic_us()
        if self._accumulator.incomplete:
            self._driver.run()  # fails records that were sent too late for the last transaction
        self._in_turn(self._manager.begin)
        self._count("begin", began_us)

    def send_offsets(self, offsets: Any, group_metadata: Any) -> None:
        call = "send_offsets_to_transaction"
        given = offsets_of(offsets, call)
        group = _group(group_metadata, call)
        if given:
            self._await("send-offsets", lambda: self._manager.send_offsets(given, group))
        else:
            self._in_turn(lambda: self._manager.check(call))

    def commit(self) -> None:
        self._await("commit", self._manager.commit)

    def abort(self) -> None:
        self._await("abort", self._manager.abort)

    def prepare(self) -> PreparedTransaction:
        manager, call = self._manager, "prepare_transaction"
        if not manager.context.two_phases:
            raise IllegalState(f"{call}: transaction.two.phase.commit.enable is false")
        self._in_turn(lambda: manager.check(call))
        if manager.status.state == TransactionState.IN_TRANSACTION:
            self._accumulator.close_all()
            if not self._driver.wait(lambda: not manager.context.has_records(), self._max_block_ms):
                raise self._timed_out(call)
        return self._in_turn(manager.prepare)

    def complete(self, prepared: Any) -> None:
        call = "complete_transaction"
        if not isinstance(prepared, PreparedTransaction):
            raise arguments.WrongType(
                f"{call}(prepared={arguments.shown(prepared)}): expected a PreparedTransaction, "
                f"got {type(prepared).__name__}"
            )
        known = self._manager.status.open.prepared
        if known is None:
            raise IllegalState(
                f"{call}: no transaction is prepared: call prepare_transaction, or "
                f"init_transactions(keep_prepared=True), first"
            )
        if known == prepared:
            self.commit()
        else:
            self.abort()

    def check_send(self, call: str) -> None:
        """Raise unless records may be sent now.

        Raises:
            IllegalState: no transaction is open. Or the error that ended the transaction.
        """
        manager = self._manager
        if manager.status.state != TransactionState.IN_TRANSACTION:
            manager.check(call)
            raise manager.status.wrong_state(call)

    def saw(self, batch: ProducerBatch) -> None:
        """Fail the transaction if `batch` has failed: its record was refused at once."""
        error = None if batch.outcome is None else batch.outcome.first_error()
        if error is not None:
            self._in_turn(lambda: self._refused(error))

    @property
    def is_open(self) -> bool:
        """True if closing the producer would abort a transaction."""
        return self._manager.status.state in OPEN

    def begin_abort(self) -> CallResult:
        """Begin to abort the open transaction; the sender's passes set the outcome."""
        return self._in_turn(self._manager.abort)

    def close(self, timeout_ms: int | None) -> None:
        """Abort the open transaction, within `timeout_ms` and max.block.ms; a prepared one stays.

        After a time-out the coordinator aborts it by itself later.
        """
        if self.is_open:
            result = self.begin_abort()
            limit = self._max_block_ms if timeout_ms is None else timeout_ms
            self._driver.wait(lambda: result.is_done, min(limit, self._max_block_ms))

    def end(self, error: Exception) -> None:
        """Fail the call that another thread waits for: the producer is closed."""
        self._manager.give_up(error)
        self._driver.arrived()

    def _refused(self, error: Exception) -> None:
        # If another thread is committing, the record came too late for the transaction.
        if self._manager.status.state == TransactionState.IN_TRANSACTION:
            self._manager.status.record_failed(error)

    def _in_turn(self, action: Callable[[], T]) -> T:
        """Call `action` while the sender makes no pass."""
        found: list[T] = []
        self._driver.exclusively(lambda: found.append(action()))
        return found[0]

    def _await(self, name: str, begin: Callable[[], CallResult]) -> None:
        began_us = self._clock.monotonic_us()
        result = self._in_turn(begin)
        if name == "commit":
            self._accumulator.close_all()

        def is_done() -> bool:
            return result.is_done

        try:
            if not self._driver.wait(is_done, self._max_block_ms, is_news=is_done):
                raise self._timed_out(result.call)
        finally:
            self._count(name, began_us)
        result.is_told = True
        if result.error is not None:
            raise again(result.error)

    def _count(self, name: str, began_us: int) -> None:
        self.spent_ns[name] += (self._clock.monotonic_us() - began_us) * 1000

    def _timed_out(self, call: str) -> TimedOut:
        error = TimedOut(
            f"{call} had no outcome after max.block.ms={self._max_block_ms}"
            f"{because(self._manager.context.last_refusal)}"
        )
        error.remedy = "retry"
        error.add_note("Call it again to wait for the same outcome, or close the producer.")
        return error


def _group(given: Any, call: str) -> ConsumerGroupMetadata:
    if not isinstance(given, ConsumerGroupMetadata):
        raise arguments.WrongType(
            f"{call}(group_metadata={arguments.shown(given)}): expected what "
            f"consumer.group_metadata() returns, got {type(given).__name__}"
        )
    if given.generation_id > 0 and not given.member_id:
        raise ValueError(
            f"{call}(group_metadata={given!r}): a generation without a member id names nobody"
        )
    return given
