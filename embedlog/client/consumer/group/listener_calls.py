"""How a user's rebalance listener is called."""

from __future__ import annotations

from embedlog.client.user_code import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.client.consumer.subscription_state import SubscriptionState
    from embedlog.common import TopicPartition


class ListenerCalls:
    """Calls the listener of the present subscription, and keeps its first exception."""

    __slots__ = ("_first_error", "_subscription", "is_calling")

    def __init__(self, subscription: SubscriptionState) -> None:
        self._subscription = subscription
        self._first_error: Exception | None = None
        self.is_calling = False
        """Is the user's code running? Then no rebalance may go on below it."""

    def revoked(self, partitions: Iterable[TopicPartition]) -> None:
        """Tell that these are given up."""
        self._call("on_partitions_revoked", partitions)

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Tell that these were added."""
        self._call("on_partitions_assigned", partitions)

    def lost(self, partitions: Iterable[TopicPartition]) -> None:
        """Tell that these belong to others by now; nothing when there are none."""
        chosen = list(partitions)
        if chosen:
            self._call("on_partitions_lost", chosen)

    def raise_first(self) -> None:
        """Raise the first exception since this was called last."""
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
