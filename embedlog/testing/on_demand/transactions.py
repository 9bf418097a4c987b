"""`Transactions`: the list of all transactional ids, and transactions that stop half-way.

    Ongoing          the producer's EndTxn waits: nothing is decided
    PrepareCommit    the commit is decided, and the producer knows it; no partition has the marker
    PrepareAbort     the abort is decided; no partition has the marker

Consumers at read_committed wait at a partition that lacks the marker.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Self

from embedlog.common import TopicPartition
from embedlog.coordinator.answers import combined
from embedlog.coordinator.transaction import states
from embedlog.errors import ConfigError
from embedlog.runtime.pending import Pending
from embedlog.testing.inspection.brokers import Brokers
from embedlog.testing.inspection.transactions import (
    TransactionValue,
    read_transaction,
    read_transactions,
)
from embedlog.testing.interception import Call, Proceed
from embedlog.testing.names import check_name
from embedlog.testing.on_demand.markers import divided, joined
from embedlog.testing.signals import Waiter, milliseconds
from embedlog.testing.stage_list import StageList
from embedlog.testing.timed_out import WaitTimedOut
from wire.schemas.end_txn import EndTxnRequest
from wire.schemas.write_txn_markers import WriteTxnMarkersRequest

if TYPE_CHECKING:
    from embedlog.coordinator.transaction.transaction_metadata import TransactionMetadata

ONGOING, PREPARE_COMMIT, PREPARE_ABORT = "Ongoing", "PrepareCommit", "PrepareAbort"
HELD_AT = (ONGOING, PREPARE_COMMIT, PREPARE_ABORT)


class Transactions:
    """The transactional ids of a cluster. A call lists them; `hold` stops one half-way."""

    def __init__(self, brokers: Brokers, stages: StageList) -> None:
        self._brokers = brokers
        self._stages = stages
        self._held: list[HeldTransaction] = []

    def __call__(self) -> list[TransactionValue]:
        """Return all transactional ids, sorted."""
        return read_transactions(self._brokers)

    def hold(
        self,
        transactional_id: str,
        at: str = PREPARE_COMMIT,
        *,
        partitions: Collection[tuple[str, int]] = (),
    ) -> HeldTransaction:
        """Stop the transactions of an id when they reach a state, until the release.

        `at` is "Ongoing", "PrepareCommit" or "PrepareAbort". With `partitions` only these lack the
        marker, and the other partitions of the transaction get it.

        >>> from embedlog.testing import Kafka
        >>> with Kafka(topics={"orders": 1}) as kafka:
        ...     producer = kafka.producer(transactional_id="payments")
        ...     producer.init_transactions()
        ...     with kafka.transactions.hold("payments", at="PrepareCommit") as held:
        ...         with producer.transaction():
        ...             _ = producer.send("orders", b"x")
        ...         held.wait()
        ...         state = kafka.transaction("payments").state
        ...     state, kafka.transaction("payments").state
        ('PrepareCommit', 'CompleteCommit')

        Raises:
            ConfigError: transactions cannot be held at that state, or `partitions` have no markers
                in that state.
            UnknownTopicOrPartition: there is no such partition.
        """
        if not isinstance(transactional_id, str) or not transactional_id:
            raise ConfigError(f"hold {transactional_id!r}: expected a transactional id")
        state = check_name("state", at, HELD_AT)
        if partitions and state == ONGOING:
            raise ConfigError("hold: partitions get markers after the decision, not at Ongoing")
        places = frozenset(self._brokers.check_partition(*place) for place in partitions)
        held = HeldTransaction(self._brokers, self._stages, transactional_id, state, places)
        self._held.append(held)
        return held

    def release_all(self) -> None:
        """Release every held transaction."""
        for each in self._held:
            each.release()


class HeldTransaction:
    """A hold of the transactions of one id. Leaving its `with` releases them."""

    def __init__(
        self,
        brokers: Brokers,
        stages: StageList,
        transactional_id: str,
        at: str,
        partitions: frozenset[TopicPartition],
    ) -> None:
        self.transactional_id = transactional_id
        self.at = at
        self.partitions = partitions
        """The partitions whose markers are held; empty for all of them."""
        self.is_released = False
        self._brokers = brokers
        self._stages = stages
        self._parked: list[_Parked] = []
        stages.add(self._stage)

    @property
    def is_holding(self) -> bool:
        """Whether a transaction has been stopped, and was not released."""
        return bool(self._parked)

    def wait(self, timeout: float = 10) -> None:
        """Wait until a transaction is stopped.

        Raises:
            WaitTimedOut: none came in `timeout` seconds of real time.
        """
        waiter = Waiter(self._brokers.signals, milliseconds(timeout))
        if waiter.run(lambda: self.is_holding or None) is None:
            value = read_transaction(self._brokers, self.transactional_id)
            raise WaitTimedOut(
                f"transactional id {self.transactional_id!r} held at {self.at}", timeout, str(value)
            )

    def release(self) -> None:
        """Let the transactions go on. Idempotent."""
        self.is_released = True
        self._stages.remove(self._stage)
        while self._parked:
            try:
                parked = self._parked.pop(0)
            except IndexError:
                return  # another thread releases as well
            parked.go_on()

    def _stage(self, call: Call, proceed: Proceed) -> Any:
        if self.is_released or not self._stops(call.request):
            return proceed(call)
        if not self.partitions:
            return self._park(call, proceed)
        held, others = divided(call.request, self.partitions)  # type: ignore[arg-type]
        answers = []
        if others.markers:
            answers.append(proceed(Call(call.broker, call.context, others)))
        if held.markers:
            answers.append(self._park(Call(call.broker, call.context, held), proceed))
        return combined(answers, joined)

    def _park(self, call: Call, proceed: Proceed) -> Pending[Any]:
        parked = _Parked(call, proceed)
        self._parked.append(parked)
        if self.is_released:  # by another thread, which may not have seen this request
            self.release()
        self._brokers.signals.changed()
        return parked.answer

    def _stops(self, request: object) -> bool:
        if type(request) is EndTxnRequest:
            return self.at == ONGOING and request.transactional_id == self.transactional_id
        if type(request) is not WriteTxnMarkersRequest or self.at == ONGOING:
            return False
        is_commit = self.at == PREPARE_COMMIT
        present = self._present()
        return present is not None and any(
            marker.transaction_result == is_commit
            and marker.producer_id == present.producer_id
            and marker.producer_epoch == present.producer_epoch
            for marker in request.markers
        )

    def _present(self) -> TransactionMetadata | None:
        """Return the decided transaction of the id; None if there is none. Needs no lock."""
        for core in self._brokers.running():
            for shard in core.transaction_coordinator.runtime.loaded():
                found = shard.transactions.get(self.transactional_id)
                if found is not None and found.state in (
                    states.PREPARE_COMMIT,
                    states.PREPARE_ABORT,
                ):
                    return found
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.release()

    def __repr__(self) -> str:
        how = "released" if self.is_released else f"{len(self._parked)} requests stopped"
        return f"<HeldTransaction {self.transactional_id!r} at {self.at}, {how}>"


class _Parked:
    """A request that waits for the release."""

    def __init__(self, call: Call, proceed: Proceed) -> None:
        self._call = call
        self._proceed = proceed
        self.answer: Pending[Any] = Pending()

    def go_on(self) -> None:
        try:
            response = self._proceed(self._call)
        except Exception as error:  # a bug of the broker reaches its client, as without the hold
            self.answer.fail(error)
            return
        self.answer.follow(response)
