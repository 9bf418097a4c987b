"""Admin calls about transactions.

This file has the public interface. The first call imports the implementation.
"""

from __future__ import annotations

from embedlog.client import arguments
from embedlog.client.admin.part import AdminPart, in_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.client.admin.results import ItemResults
    from embedlog.client.admin.transaction_calls import (
        FencedProducer,
        TransactionDescription,
        TransactionListing,
    )
    from embedlog.common import TopicPartition


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
        """Return the transactional ids of all brokers; errors of brokers by node id.

        The filters are `states` ("Ongoing", "CompleteCommit", ...), `producer_ids`, the time since
        the transaction began, and an RE2 `pattern` that the whole id matches. A broker that is too
        old for a filter answers UnsupportedVersion.
        """
        from embedlog.client.admin.transaction_calls import list_transactions

        call = "list_transactions"
        return list_transactions(
            self._calls,
            states=arguments.names(states, call, "states", what="states of transactions"),
            producer_ids=list(producer_ids),
            longer_than_ms=longer_than_ms,
            pattern=pattern,
            timeout_ms=timeout_ms,
        )

    @in_turn
    def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> ItemResults[str, TransactionDescription]:
        """Return state, producer and partitions of transactional ids from their coordinators."""
        from embedlog.client.admin.transaction_calls import describe_transactions

        wanted = arguments.names(
            transactional_ids,
            "describe_transactions",
            "transactional_ids",
            what="transactional ids",
        )
        return describe_transactions(self._calls, wanted, timeout_ms)

    @in_turn
    def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> ItemResults[str, FencedProducer]:
        """Fence all producers of the transactional ids, and abort their open transactions."""
        from embedlog.client.admin.transaction_calls import fence_producers

        wanted = arguments.names(
            transactional_ids, "fence_producers", "transactional_ids", what="transactional ids"
        )
        return fence_producers(self._calls, wanted, timeout_ms)

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
        from embedlog.client.admin.transaction_calls import abort_transaction

        (place,) = arguments.partitions([partition], "abort_transaction")
        abort_transaction(
            self._calls,
            place,
            producer_id,
            producer_epoch,
            coordinator_epoch=max(0, coordinator_epoch),
            timeout_ms=timeout_ms,
        )
