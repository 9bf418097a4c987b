"""`ListenerCalls`: calls of the user's rebalance listener."""

from __future__ import annotations

from embedlog.client.user_code import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.client.consumer.subscription_state import SubscriptionState
    from embedlog.common import TopicPartition


class ListenerCalls:
    """Calls the listener of the present subscription, and keeps its first exception."""

    def __init__(self, subscription: SubscriptionState) -> None:
        self._subscription = subscription
        self._first_error: Exception | None = None
        self.is_calling = False
        """True while the user's code runs: no rebalance may continue meanwhile."""

    def revoked(self, partitions: Iterable[TopicPartition]) -> None:
        self._call("on_partitions_revoked", partitions)

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        self._call("on_partitions_assigned", partitions)

    def lost(self, partitions: Iterable[TopicPartition]) -> None:
        """Call `on_partitions_lost` unless there are no partitions."""
        chosen = list(partitions)
        if chosen:
            self._call("on_partitions_lost", chosen)

    def raise_first(self) -> None:
        """Raise the listener's first exception since the last call of this method, if any."""
        error, self._first_error = self._first_error, None
        if error is not None:
            raise error

    def _call(self, method: str, partitions: Iterable[TopicPartition]) -> None:
        callback = getattr(self._subscription.listener, method, None)
        if callback is None:
            return
        self.is_calling = True
        chosen = sorted(partitions)
        try:
            about = f"for {', '.join(map(str, chosen)) or 'no partitions'} in a rebalance"
            error = attempt(callback, chosen, about=about)
        finally:
            self.is_calling = False
        if self._first_error is None:
            self._first_error = error
