"""May a transactional Produce be appended? What its partitions and its coordinator say.

    the partition knows the open transaction   yes, without asking anybody
    otherwise                                  the coordinator is asked; from v12 on it adds the
                                               partition itself (KIP-890), before that it only looks

    the coordinator says            the producer is told
    not part of the transaction     TRANSACTION_ABORTABLE from v11 on, INVALID_TXN_STATE before
    fenced                          INVALID_PRODUCER_EPOCH
    not now                         NOT_ENOUGH_REPLICAS, so that old clients try again; from v12 on
                                    CONCURRENT_TRANSACTIONS as such

A batch that was verified is guarded until it is appended: see `VerificationState`.
"""

from __future__ import annotations

from struct import Struct

from embedlog import errors
from embedlog.errors import KafkaError, error_for
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from embedlog.coordinator.transaction.transaction_coordinator import TransactionCoordinator
    from embedlog.pending import Pending
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.storage.producers.entry import VerificationState
    from wire.schema import Payload
    from wire.schemas.produce import ProduceRequest

    Place = tuple[str, int]

    class Broker(Protocol):
        """The broker, as this file knows it."""

        replica_manager: ReplicaManager

        @property
        def transaction_coordinator(self) -> TransactionCoordinator: ...
        @property
        def verifies_transactions(self) -> bool:
            """transaction.partition.verification.enable."""


_FIRST_WITH_ABORTABLE = 11
_FIRST_WITH_ADDING = 12
_PRODUCER = Struct(">qhi").unpack_from
_PRODUCER_POSITION = 43
_PRODUCER_END = 57

_NOT_NOW = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Verification:
    """What is known of the transactional batches of one Produce request."""

    __slots__ = ("guards", "refusals", "version")

    def __init__(self, version: int) -> None:
        self.version = version
        self.guards: dict[Place, VerificationState] = {}
        """What guards the append of each partition that may be appended to."""
        self.refusals: dict[Place, KafkaError] = {}
        """Why the others may not."""

    def guard(self, place: Place) -> VerificationState | None:
        """What guards the append of a transactional batch to this partition.

        Raises:
            KafkaError: it may not be appended.
        """
        refusal = self.refusals.get(place)
        if refusal is not None:
            raise refusal
        return self.guards.get(place)

    def answered(self, codes: dict[Place, int]) -> Verification:
        """Take over what the coordinator says."""
        for place, code in codes.items():
            if code:
                self.refusals[place] = self._told(code)
        return self

    def _told(self, code: int) -> KafkaError:
        if code == ErrorCode.TRANSACTION_ABORTABLE and self.version < _FIRST_WITH_ABORTABLE:
            return errors.InvalidTxnState("Partition was not added to the transaction")
        if code == ErrorCode.PRODUCER_FENCED:
            return errors.InvalidProducerEpoch()
        if code in _NOT_NOW or (
            code == ErrorCode.CONCURRENT_TRANSACTIONS and self.version < _FIRST_WITH_ADDING
        ):
            return errors.NotEnoughReplicas(
                "Unable to verify the partition has been added to the transaction. Underlying "
                f"error: {error_for(code)}"
            )
        return error_for(code)


def verify(
    broker: Broker,
    request: ProduceRequest,
    version: int,
    *,
    name_of: Callable[[bytes], str],
    is_transactional: Callable[[Payload], bool],
) -> Verification | Pending[Verification]:
    """Find out which of the request's transactional batches may be appended.

    `name_of` names a topic by its id; "" for none.

    Raises:
        InvalidProducerIdMapping: batches of more than one producer.
    """
    found = Verification(version)
    producers: dict[int, int] = {}
    to_ask: list[Place] = []
    for topic in request.topic_data:
        name = topic.name or name_of(topic.topic_id)
        for data in topic.partition_data:
            records = data.records
            if records is None or not is_transactional(records) or len(records) < _PRODUCER_END:
                continue
            producer_id, epoch, sequence = _PRODUCER(records, _PRODUCER_POSITION)
            producers.setdefault(producer_id, epoch)
            place = name, data.index
            try:
                guard = broker.replica_manager.partition(*place).begin_verification(
                    producer_id,
                    epoch,
                    sequence,
                    supports_epoch_bump=version >= _FIRST_WITH_ADDING,
                )
            except KafkaError:
                continue  # the append says why
            found.guards[place] = guard
            if not guard.is_open:
                to_ask.append(place)
    if len(producers) > 1:
        raise errors.InvalidProducerIdMapping()
    only_looks = version < _FIRST_WITH_ADDING
    if not to_ask or (only_looks and not broker.verifies_transactions):
        return found
    from embedlog.coordinator.answers import then

    assert request.transactional_id is not None
    ((producer_id, epoch),) = producers.items()
    pending = broker.transaction_coordinator.register(
        request.transactional_id, producer_id, epoch, to_ask, is_verified_only=only_looks
    )
    verified = then(pending, found.answered)
    return verified.result() if verified.done() else verified
