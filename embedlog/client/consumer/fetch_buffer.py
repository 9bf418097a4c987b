"""Fetched records that the application has not polled, by partition.

A partition has at most two answers: the one being handed out and its successor. A seek makes both
stale.
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
    """Answers to hand out and errors to raise."""

    def __init__(self, parts: ConsumerParts) -> None:
        self._subscription = parts.subscription
        self._in_process = parts.transport.in_process
        self.is_committed_only = parts.settings["isolation.level"] == "read_committed"
        self.first: dict[TopicPartition, CompletedFetch] = {}
        """The answer of each partition that is handed out next."""
        self.ahead: dict[TopicPartition, CompletedFetch] = {}
        """The answer after it."""
        self.errors: deque[EmbedlogError] = deque()

    def is_stale(self, fetch: CompletedFetch) -> bool:
        """Whether the partition was revoked or repositioned after the fetch."""
        state = fetch.state
        current = self._subscription.partitions.get(state.topic_partition)
        return current is not state or fetch.generation != state.generation

    def drop(self, key: TopicPartition) -> None:
        """Replace an answer that is drained or stale by its successor."""
        del self.first[key]
        ahead = self.ahead.pop(key, None)
        if ahead is not None and not self.is_stale(ahead):
            self.first[key] = ahead

    def may_fetch_after(self, fetch: CompletedFetch) -> bool:
        """Whether the log has more than the buffered answer and no second answer is buffered."""
        if self._in_process or fetch.state.topic_partition in self.ahead:
            return False
        return 0 <= fetch.batches.end_offset < self.log_end(fetch.state)

    def clear(self) -> None:
        self.first.clear()
        self.ahead.clear()

    def log_end(self, state: PartitionState) -> int:
        """End of the log for this consumer, as of the last fetch; -1 if unknown."""
        return state.last_stable_offset if self.is_committed_only else state.high_watermark

    def lag(self, state: PartitionState) -> int | None:
        """Records between the position and the end as of the last fetch; None if unknown."""
        end = self.log_end(state)
        return None if end < 0 or state.offset < 0 else max(end - state.offset, 0)

    @property
    def is_behind(self) -> bool:
        """Whether some log, as of its last fetch, has records past the position.

        Otherwise a fetch would only wait, and sending it would delay the application.
        """
        states = self._subscription.partitions.values()
        return any(state.offset < self.log_end(state) for state in states)
