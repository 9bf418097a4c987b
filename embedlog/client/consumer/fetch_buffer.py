"""What was fetched ahead of the application, by partition.

A partition has up to two answers, the one that is handed out and the one that follows it; a seek
makes both stale.
"""

from __future__ import annotations

from embedlog.common import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.consumer.completed_fetch import CompletedFetch
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.client.consumer.subscription_state import PartitionState
    from embedlog.common import TopicPartition
    from embedlog.errors import EmbedlogError


class FetchBuffer:
    """The answers that wait to be handed out, and the errors that wait to be raised."""

    __slots__ = ("_in_process", "_subscription", "ahead", "errors", "first", "is_committed_only")

    def __init__(self, parts: ConsumerParts) -> None:
        self._subscription = parts.subscription
        self._in_process = parts.transport.in_process
        self.is_committed_only = parts.settings["isolation.level"] == "read_committed"
        self.first: dict[TopicPartition, CompletedFetch] = {}
        """What is handed out next."""
        self.ahead: dict[TopicPartition, CompletedFetch] = {}
        """What follows it."""
        self.errors: deque[EmbedlogError] = deque()

    def is_stale(self, fetch: CompletedFetch) -> bool:
        """Was the partition taken away since, or sought elsewhere?"""
        state = fetch.state
        current = self._subscription.partitions.get(state.topic_partition)
        return current is not state or fetch.generation != state.generation

    def drop(self, key: TopicPartition) -> None:
        """The buffered answer is over, or stale; the one after it takes its place."""
        del self.first[key]
        ahead = self.ahead.pop(key, None)
        if ahead is not None and not self.is_stale(ahead):
            self.first[key] = ahead

    def may_fetch_after(self, fetch: CompletedFetch) -> bool:
        """Is there more in the log than the buffered answer, and no second one yet?"""
        if self._in_process or fetch.state.topic_partition in self.ahead:
            return False
        return 0 <= fetch.batches.end_offset < self.log_end(fetch.state)

    def clear(self) -> None:
        """Forget all answers."""
        self.first.clear()
        self.ahead.clear()

    # How far there is more

    def log_end(self, state: PartitionState) -> int:
        """Where the log ends for this consumer, as of the last fetch; -1 if not known."""
        return state.last_stable_offset if self.is_committed_only else state.high_watermark

    def lag(self, state: PartitionState) -> int | None:
        """Records between a position and the end as of the last fetch; None if not known."""
        end = self.log_end(state)
        return None if end < 0 or state.offset < 0 else max(end - state.offset, 0)

    @property
    def is_behind(self) -> bool:
        """Was there more in a log, as of its last fetch, than is handed out?

        If not, a fetch would only wait, and sending it first keep the application from its records.
        """
        states = self._subscription.partitions.values()
        return any(state.offset < self.log_end(state) for state in states)
