"""Verify that a transactional batch belongs to an open transaction, before it is appended.

If the partition knows the producer's open transaction, that is enough. If not, the broker asks the
transaction coordinator. For clients of transactions version 2 (KIP-890) the coordinator adds the
partition to the transaction; for other clients it only verifies that the partition was added.

    the coordinator's answer        the producer's error
    not part of the transaction     TRANSACTION_ABORTABLE if the client knows this code, otherwise
                                    INVALID_TXN_STATE
    fenced                          INVALID_PRODUCER_EPOCH
    the previous transaction is     CONCURRENT_TRANSACTIONS for clients of version 2; a coordinator
    not complete                    on this broker first waits for its end, at most
                                    add.partitions.to.txn.retry.backoff.max.ms. For other clients as
                                    in the next row
    not available now               NOT_ENOUGH_REPLICAS, so that the client repeats the batch;
                                    clients that commit offsets get the coordinator's own error

A marker that ends the transaction before the append invalidates the verification: see
`VerificationState`.
"""

from __future__ import annotations

from struct import Struct

from embedlog import errors
from embedlog.coordinator.answers import then
from embedlog.coordinator.append_errors import as_coordinator_error
from embedlog.coordinator.placement import partition_of
from embedlog.errors import KafkaError, again, error_for, error_name
from embedlog.runtime.pending import Pending, completed
from embedlog.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from wire.error_codes import ErrorCode
from wire.schemas.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from embedlog.broker.broker import Broker
    from embedlog.storage.producers.entry import VerificationState
    from wire.schema import Payload
    from wire.schemas.add_partitions_to_txn import AddPartitionsToTxnResponse
    from wire.schemas.produce import ProduceRequest
    from wire.schemas.txn_offset_commit import TxnOffsetCommitRequest

    Place = tuple[str, int]

_PRODUCER = Struct(">qhi").unpack_from
_PRODUCER_POSITION = 43
_PRODUCER_END = 57
_NO_SEQUENCE = -1
_TIMEOUT_MS = 30_000

_NOT_NOW = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class TransactionVerification:
    """The verification of one request's transactional batches, which are all of one producer.

    `knows_abortable`: the client knows the code TRANSACTION_ABORTABLE. `adds`: the coordinator adds
    partitions to the transaction. `knows_coordinators`: the client knows the errors of a
    coordinator.
    """

    __slots__ = (
        "_adds",
        "_broker",
        "_guards",
        "_knows_abortable",
        "_knows_coordinators",
        "_refusals",
        "_to_ask",
    )

    def __init__(
        self, broker: Broker, *, knows_abortable: bool, adds: bool, knows_coordinators: bool
    ) -> None:
        self._broker = broker
        self._knows_coordinators = knows_coordinators
        self._knows_abortable = knows_abortable
        self._adds = adds
        self._guards: dict[Place, VerificationState] = {}
        self._refusals: dict[Place, KafkaError] = {}
        self._to_ask: list[Place] = []

    def begin(self, place: Place, producer_id: int, epoch: int, sequence: int) -> None:
        """Begin the verification of a batch.

        If the partition does not know the transaction, `ask` will ask the coordinator.
        """
        try:
            guard = self._broker.replica_manager.partition(*place).begin_verification(
                producer_id, epoch, sequence, supports_epoch_bump=self._adds
            )
        except errors.InvalidProducerEpoch as error:
            self._refusals[place] = error
            return
        except KafkaError:
            return  # the append raises the same error
        self._guards[place] = guard
        if not guard.is_open:
            self._to_ask.append(place)

    def ask(
        self, transactional_id: str, producer_id: int, producer_epoch: int
    ) -> Pending[TransactionVerification]:
        is_verified = self._broker.config.transaction_partition_verification_enable
        if not self._to_ask or not (self._adds or is_verified):
            return completed(self)
        answer = _register(
            self._broker,
            transactional_id,
            producer_id,
            producer_epoch,
            self._to_ask,
            is_verified_only=not self._adds,
            is_patient=self._adds,
        )
        return then(answer, self._answered)

    def guard(self, place: Place) -> VerificationState | None:
        """Return the `verification` for the append to a partition, or None if there is none.

        Raises:
            KafkaError: the batch may not be appended.
        """
        refusal = self._refusals.get(place)
        if refusal is not None:
            raise again(refusal)
        return self._guards.get(place)

    def _answered(self, codes: dict[Place, int]) -> TransactionVerification:
        for place, code in codes.items():
            if code:
                self._refusals[place] = self._told(code)
        return self

    def _told(self, code: int) -> KafkaError:
        if code == ErrorCode.TRANSACTION_ABORTABLE and not self._knows_abortable:
            return _with_message(
                errors.InvalidTxnState("Partition was not added to the transaction")
            )
        if code == ErrorCode.PRODUCER_FENCED:
            return errors.InvalidProducerEpoch()
        if self._knows_coordinators:
            return as_coordinator_error(error_for(code))
        if code in _NOT_NOW or (code == ErrorCode.CONCURRENT_TRANSACTIONS and not self._adds):
            return _with_message(
                errors.NotEnoughReplicas(
                    "Unable to verify the partition has been added to the transaction. Underlying "
                    f"error: {error_name(code)}"
                )
            )
        return error_for(code)


def _with_message(error: KafkaError) -> KafkaError:
    error.told_with_message = True
    return error


_PRODUCE_WITH_ABORTABLE = 11
_PRODUCE_WITH_ADDING = 12
_COMMIT_WITH_ABORTABLE = 4
_COMMIT_WITH_ADDING = 5


def of_produce(
    broker: Broker,
    request: ProduceRequest,
    version: int,
    *,
    name_of: Callable[[bytes], str],
    is_transactional: Callable[[Payload], bool],
) -> Pending[TransactionVerification]:
    """Verify the transactional batches of a Produce request.

    `name_of` returns the name for a topic id, or "" if the id is unknown.

    Raises:
        InvalidProducerIdMapping: the batches have more than one producer id.
    """
    found = TransactionVerification(
        broker,
        knows_abortable=version >= _PRODUCE_WITH_ABORTABLE,
        adds=version >= _PRODUCE_WITH_ADDING,
        knows_coordinators=False,
    )
    producers: dict[int, int] = {}
    for topic in request.topic_data:
        name = topic.name or name_of(topic.topic_id)
        for data in topic.partition_data:
            records = data.records
            if records is None or not is_transactional(records) or len(records) < _PRODUCER_END:
                continue
            producer_id, epoch, sequence = _PRODUCER(records, _PRODUCER_POSITION)
            producers.setdefault(producer_id, epoch)
            found.begin((name, data.index), producer_id, epoch, sequence)
    if len(producers) != 1:
        if producers:
            raise errors.InvalidProducerIdMapping()
        return completed(found)
    ((producer_id, epoch),) = producers.items()
    assert request.transactional_id is not None
    return found.ask(request.transactional_id, producer_id, epoch)


def of_offsets(
    broker: Broker, request: TxnOffsetCommitRequest, version: int, partition: int
) -> Pending[TransactionVerification]:
    """Verify a transaction that commits offsets to a partition of `__consumer_offsets`."""
    found = TransactionVerification(
        broker,
        knows_abortable=version >= _COMMIT_WITH_ABORTABLE,
        adds=version >= _COMMIT_WITH_ADDING,
        knows_coordinators=True,
    )
    producer_id, epoch = request.producer_id, request.producer_epoch
    found.begin((OFFSETS_TOPIC, partition), producer_id, epoch, _NO_SEQUENCE)
    return found.ask(request.transactional_id, producer_id, epoch)


# Calls to the transaction coordinator


def _register(
    broker: Broker,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[Place],
    *,
    is_verified_only: bool,
    is_patient: bool,
) -> Pending[dict[Place, int]]:
    """Add partitions to a transaction, or only verify them; return an error code for each.

    See `TransactionCoordinator.register`. If another broker coordinates the id, send it
    AddPartitionsToTxn, as Kafka's brokers do.
    """
    peers = broker.peers
    coordinator = broker.node_id if peers is None else _coordinator_of(broker, transactional_id)
    if peers is None or coordinator == broker.node_id:
        return broker.transaction_coordinator.register(
            transactional_id,
            producer_id,
            producer_epoch,
            partitions,
            is_verified_only=is_verified_only,
            is_patient=is_patient,
        )
    if coordinator < 0:
        return completed(dict.fromkeys(partitions, int(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        verify_only=is_verified_only,
        topics=[
            AddPartitionsToTxnTopic(name=name, partitions=indexes)
            for name, indexes in topics.items()
        ],
    )
    request = AddPartitionsToTxnRequest(transactions=[transaction])
    asked = peers.send(coordinator, request, timeout_ms=_TIMEOUT_MS)
    return _settled(then(asked, lambda answer: _codes(answer, partitions)), partitions)


def _coordinator_of(broker: Broker, transactional_id: str) -> int:
    """Return the broker that coordinates the transactional id, or -1 if there is none."""
    topic = broker.image.topics_by_name.get(TRANSACTIONS_TOPIC)
    if topic is None:
        return -1
    return topic.partitions[partition_of(transactional_id, len(topic.partitions))].leader


def _codes(answer: AddPartitionsToTxnResponse, partitions: Collection[Place]) -> dict[Place, int]:
    codes = dict.fromkeys(partitions, answer.error_code or int(ErrorCode.UNKNOWN_SERVER_ERROR))
    for transaction in answer.results_by_transaction:
        for topic in transaction.topic_results:
            for found in topic.results_by_partition:
                codes[topic.name, found.partition_index] = found.partition_error_code
    return codes


def _settled(
    asked: Pending[dict[Place, int]], partitions: Collection[Place]
) -> Pending[dict[Place, int]]:
    """Return the codes. If the request fails, each partition has the code of the error."""
    settled: Pending[dict[Place, int]] = Pending()

    def answered(done: Pending[dict[Place, int]]) -> None:
        error = done.error()
        if error is None:
            settled.complete(done.result())
        else:
            code = getattr(error, "code", int(ErrorCode.UNKNOWN_SERVER_ERROR))
            settled.complete(dict.fromkeys(partitions, code))

    asked.add_callback(answered)
    return settled
