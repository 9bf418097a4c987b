"""Asking a transaction's coordinator, wherever it is, for partitions to be part of the transaction.

On this broker it is called; another broker is sent an AddPartitionsToTxn, as Kafka's brokers do.
"""

from __future__ import annotations

from embedlog.coordinator.answers import then
from embedlog.coordinator.placement import partition_of
from embedlog.runtime.pending import Pending, completed
from embedlog.topic_names import TRANSACTIONS_TOPIC
from wire.error_codes import ErrorCode
from wire.schemas.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Protocol

    from embedlog.broker.peers import Peers
    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.transaction.transaction_coordinator import TransactionCoordinator
    from wire.schemas.add_partitions_to_txn import AddPartitionsToTxnResponse

    Place = tuple[str, int]

    class Broker(Protocol):
        """The broker, as this file knows it."""

        image: MetadataImage
        peers: Peers | None

        @property
        def node_id(self) -> int: ...
        @property
        def transaction_coordinator(self) -> TransactionCoordinator: ...


_TIMEOUT_MS = 30_000


def register(
    broker: Broker,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[Place],
    *,
    is_verified_only: bool,
    is_patient: bool,
) -> Pending[dict[Place, int]]:
    """An error code for each partition: see `TransactionCoordinator.register`."""
    peers = broker.peers
    coordinator = broker.node_id if peers is None else _coordinator(broker, transactional_id)
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


def _coordinator(broker: Broker, transactional_id: str) -> int:
    """Who leads the partition that the id lives in; -1 for nobody."""
    topic = broker.image.topics_by_name.get(TRANSACTIONS_TOPIC)
    if topic is None:
        return -1
    return topic.partitions[partition_of(transactional_id, len(topic.partitions))].leader


def _codes(
    answer: AddPartitionsToTxnResponse, partitions: Collection[Place]
) -> dict[Place, int]:
    codes = dict.fromkeys(partitions, answer.error_code or int(ErrorCode.UNKNOWN_SERVER_ERROR))
    for transaction in answer.results_by_transaction:
        for topic in transaction.topic_results:
            for found in topic.results_by_partition:
                codes[topic.name, found.partition_index] = found.partition_error_code
    return codes


def _settled(
    asked: Pending[dict[Place, int]], partitions: Collection[Place]
) -> Pending[dict[Place, int]]:
    """The codes; that nobody answers is one."""
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
