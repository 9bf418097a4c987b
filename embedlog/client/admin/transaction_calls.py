"""The implementation of `transactions.py`: listing, describing, fencing producers, aborting."""

from __future__ import annotations

from embedlog.client.admin.coordinators import (
    TRANSACTION_KEY,
    CoordinatorCalls,
    ask_all_coordinators,
)
from embedlog.client.admin.results import ItemResults, results_of
from embedlog.client.admin.value import AdminValue
from embedlog.common import TopicPartition
from embedlog.errors import KafkaError
from wire.schemas.describe_transactions import DescribeTransactionsRequest
from wire.schemas.init_producer_id import InitProducerIdRequest
from wire.schemas.list_transactions import ListTransactionsRequest
from wire.schemas.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from embedlog.client.admin.calls import AdminCalls
    from embedlog.client.admin.coordinators import Answer
    from wire.schemas.describe_transactions import DescribeTransactionsResponse
    from wire.schemas.init_producer_id import InitProducerIdResponse
    from wire.schemas.write_txn_markers import WriteTxnMarkersResponse

_SEVERAL = 0
"""Value of `several_since` for DescribeTransactions: all its versions take several ids."""
_ONE_BY_ONE = 32_767
"""Value of `several_since` for InitProducerId: none of its versions takes several ids."""


class TransactionListing(AdminValue):
    """A transactional id in a listing. `state` is Kafka's name: "Empty", "Ongoing", ..."""

    transactional_id: str
    producer_id: int
    state: str


class TransactionDescription(AdminValue):
    """The state of one transactional id.

    `start_ms` is the start of its last transaction in ms since 1970; None before the first.
    `partitions` has the partitions of the transaction that is open or ending.
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    partitions: list[TopicPartition]


class FencedProducer(AdminValue):
    """The producer id and epoch of a transactional id after its producers were fenced."""

    producer_id: int
    producer_epoch: int


def describe_transactions(
    calls: AdminCalls, ids: list[str], timeout_ms: int | None
) -> ItemResults[str, TransactionDescription]:
    """Ask the coordinator of each transactional id."""

    def take(
        response: DescribeTransactionsResponse, _ids: list[str]
    ) -> Mapping[str, Answer[TransactionDescription]]:
        return {
            each.transactional_id: (each.error_code, None, _description(each))
            for each in response.transaction_states
        }

    outcomes = CoordinatorCalls(calls, timeout_ms, TRANSACTION_KEY).ask(
        ids,
        DescribeTransactionsRequest,
        lambda some, _version: DescribeTransactionsRequest(transactional_ids=some),
        take,
        several_since=_SEVERAL,
    )
    return results_of(outcomes)


def list_transactions(
    calls: AdminCalls,
    *,
    states: list[str],
    producer_ids: list[int],
    longer_than_ms: int | None,
    pattern: str | None,
    timeout_ms: int | None,
) -> ItemResults[str | int, TransactionListing]:
    """List the transactional ids of all brokers. Each broker lists the ids that it coordinates."""
    results: ItemResults[str | int, TransactionListing] = ItemResults()
    request = ListTransactionsRequest(
        state_filters=states,
        producer_id_filters=producer_ids,
        duration_filter=-1 if longer_than_ms is None else longer_than_ms,
        transactional_id_pattern=pattern,
    )
    for response in ask_all_coordinators(calls, request, results.failures, timeout_ms):
        for each in response.transaction_states:
            results.values[each.transactional_id] = TransactionListing(
                each.transactional_id, each.producer_id, each.transaction_state
            )
    return results


def fence_producers(
    calls: AdminCalls, ids: list[str], timeout_ms: int | None
) -> ItemResults[str, FencedProducer]:
    """Send InitProducerId for each id, as a new producer with that id would."""

    def request_for(some: list[str], _version: int) -> InitProducerIdRequest:
        return InitProducerIdRequest(
            transactional_id=some[0], transaction_timeout_ms=calls.timeout(timeout_ms)
        )

    def take(
        response: InitProducerIdResponse, some: list[str]
    ) -> Mapping[str, Answer[FencedProducer]]:
        fenced = FencedProducer(response.producer_id, response.producer_epoch)
        return {some[0]: (response.error_code, None, fenced)}

    outcomes = CoordinatorCalls(calls, timeout_ms, TRANSACTION_KEY).ask(
        ids, InitProducerIdRequest, request_for, take, several_since=_ONE_BY_ONE
    )
    return results_of(outcomes)


def abort_transaction(
    calls: AdminCalls,
    partition: TopicPartition,
    producer_id: int,
    producer_epoch: int,
    *,
    coordinator_epoch: int,
    timeout_ms: int | None,
) -> None:
    """Send an abort marker to the partition's leader, without the coordinator."""

    def request_for(keys: list[TopicPartition]) -> WriteTxnMarkersRequest:
        topics = [
            WritableTxnMarkerTopic(name=k.topic, partition_indexes=[k.partition]) for k in keys
        ]
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            topics=topics,
            coordinator_epoch=coordinator_epoch,
        )
        return WriteTxnMarkersRequest(markers=[marker])

    def take(response: WriteTxnMarkersResponse) -> dict[TopicPartition, tuple[int, None]]:
        return {
            TopicPartition(topic.name, each.partition_index): (each.error_code, None)
            for marker in response.markers
            for topic in marker.topics
            for each in topic.partitions
        }

    (outcome,) = calls.to_leaders({partition: None}, request_for, take, timeout_ms).values()
    if isinstance(outcome, KafkaError):
        raise outcome


def _description(state: Any) -> TransactionDescription:
    return TransactionDescription(
        state.transactional_id,
        state.transaction_state,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        timeout_ms=state.transaction_timeout_ms,
        start_ms=state.transaction_start_time_ms if state.transaction_start_time_ms >= 0 else None,
        partitions=[
            TopicPartition(topic.topic, index)
            for topic in state.topics
            for index in topic.partitions
        ],
    )
