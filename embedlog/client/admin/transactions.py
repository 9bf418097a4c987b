"""Admin calls about transactions. The first use of a call imports its requests."""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.admin.part import AdminPart, in_turn
from embedlog.client.admin.results import AdminValue, ItemResults, results_of
from embedlog.common import TopicPartition
from embedlog.errors import KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from embedlog.client.admin.coordinators import Answer
    from wire.schemas.describe_transactions import DescribeTransactionsResponse
    from wire.schemas.init_producer_id import InitProducerIdResponse
    from wire.schemas.write_txn_markers import WriteTxnMarkersResponse

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


class TransactionAdmin(AdminPart):
    """Lists, describes and ends transactions."""

    @in_turn
    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int | None = None,
        pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> ItemResults[str | int, TransactionListing]:
        """Return the transactional ids of all brokers; `errors` has failed brokers by node id.

        The filters are `states` ("Ongoing", "CompleteCommit", ...), `producer_ids`, the time since
        the transaction began, and an RE2 `pattern` that the whole id matches. A broker that is too
        old for a filter answers UnsupportedVersion.
        """
        from embedlog.client.admin.coordinators import ask_all_coordinators
        from wire.schemas.list_transactions import ListTransactionsRequest

        what = "states of transactions"
        request = ListTransactionsRequest(
            state_filters=arguments.names(states, "list_transactions", "states", what=what),
            producer_id_filters=list(producer_ids),
            duration_filter=-1 if longer_than_ms is None else longer_than_ms,
            transactional_id_pattern=pattern,
        )
        results: ItemResults[str | int, TransactionListing] = ItemResults()
        for response in ask_all_coordinators(self._calls, request, results.failures, timeout_ms):
            for each in response.transaction_states:
                results.values[each.transactional_id] = TransactionListing(
                    each.transactional_id, each.producer_id, each.transaction_state
                )
        return results

    @in_turn
    def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> ItemResults[str, TransactionDescription]:
        """Return state, producer and partitions of transactional ids from their coordinators."""
        from embedlog.client.admin.coordinators import TRANSACTION_KEY, CoordinatorCalls
        from wire.schemas.describe_transactions import DescribeTransactionsRequest

        def take(
            response: DescribeTransactionsResponse, _some: list[str]
        ) -> Mapping[str, Answer[TransactionDescription]]:
            return {
                each.transactional_id: (each.error_code, None, _description(each))
                for each in response.transaction_states
            }

        outcomes = CoordinatorCalls(self._calls, timeout_ms, TRANSACTION_KEY).ask(
            _ids(transactional_ids, "describe_transactions"),
            DescribeTransactionsRequest,
            lambda some, _version: DescribeTransactionsRequest(transactional_ids=some),
            take,
        )
        return results_of(outcomes)

    @in_turn
    def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> ItemResults[str, FencedProducer]:
        """Fence all producers of the transactional ids, and abort their open transactions.

        InitProducerId is sent for each id, as a new producer with that id would send it.
        """
        from embedlog.client.admin.coordinators import TRANSACTION_KEY, CoordinatorCalls
        from wire.schemas.init_producer_id import InitProducerIdRequest

        def request_for(some: list[str], _version: int) -> InitProducerIdRequest:
            return InitProducerIdRequest(
                transactional_id=some[0], transaction_timeout_ms=self._calls.timeout(timeout_ms)
            )

        def take(
            response: InitProducerIdResponse, some: list[str]
        ) -> Mapping[str, Answer[FencedProducer]]:
            fenced = FencedProducer(response.producer_id, response.producer_epoch)
            return {some[0]: (response.error_code, None, fenced)}

        wanted = _ids(transactional_ids, "fence_producers")
        outcomes = CoordinatorCalls(self._calls, timeout_ms, TRANSACTION_KEY).ask(
            wanted, InitProducerIdRequest, request_for, take, several_since=_ONE_BY_ONE
        )
        return results_of(outcomes)

    @in_turn
    def abort_transaction(
        self,
        partition: TopicPartition | tuple[str, int],
        producer_id: int,
        producer_epoch: int,
        *,
        coordinator_epoch: int = 0,
        timeout_ms: int | None = None,
    ) -> None:
        """Abort a hanging transaction in one partition, without its coordinator.

        Take the numbers from `describe_producers`; a negative coordinator epoch counts as 0. Use
        this only for hanging transactions, which the coordinator does not know. Other transactions
        end by their time-out, and aborting one here could leave half of it in other partitions.

        Raises:
            KafkaError: the partition's leader refused.
        """
        from wire.schemas.write_txn_markers import (
            WritableTxnMarker,
            WritableTxnMarkerTopic,
            WriteTxnMarkersRequest,
        )

        def request_for(keys: list[TopicPartition]) -> WriteTxnMarkersRequest:
            marker = WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transaction_result=False,
                topics=[
                    WritableTxnMarkerTopic(name=k.topic, partition_indexes=[k.partition])
                    for k in keys
                ],
                coordinator_epoch=max(0, coordinator_epoch),
            )
            return WriteTxnMarkersRequest(markers=[marker])

        def take(response: WriteTxnMarkersResponse) -> dict[TopicPartition, tuple[int, None]]:
            return {
                TopicPartition(topic.name, each.partition_index): (each.error_code, None)
                for marker in response.markers
                for topic in marker.topics
                for each in topic.partitions
            }

        (place,) = arguments.partitions([partition], "abort_transaction")
        outcomes = self._calls.to_leaders({place: None}, request_for, take, timeout_ms)
        outcome = outcomes[place]
        if isinstance(outcome, KafkaError):
            raise outcome


def _ids(transactional_ids: Iterable[str], call: str) -> list[str]:
    return arguments.names(transactional_ids, call, "transactional_ids", what="transactional ids")


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
