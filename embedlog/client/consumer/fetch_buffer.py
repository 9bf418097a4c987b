"""Fetched records that the application has not polled, by partition.

A partition has at most two buffered answers: the answer that is being handed out, and the answer
that continues it. A seek makes both stale.
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
    """The fetch answers to hand out, and the errors that the next polls raise."""

    def __init__(self, parts: ConsumerParts) -> None:
        self._subscription = parts.subscription
        self._in_process = parts.transport.in_process
        self.is_committed_only = parts.settings["isolation.level"] == "read_committed"
        self.first: dict[TopicPartition, CompletedFetch] = {}
        """By partition, the answer that is handed out next."""
        self.ahead: dict[TopicPartition, CompletedFetch] = {}
        """By partition, the answer that continues the one in `first`."""
        self.errors: deque[tuple[EmbedlogError, PartitionState | None, int]] = deque()
        """Errors that the next polls raise, with the state and generation they are about."""

    def add_error(self, error: EmbedlogError, state: PartitionState | None = None) -> None:
        """Let a later poll raise `error`; only at the present position if it concerns `state`."""
        self.errors.append((error, state, -1 if state is None else state.generation))

    def take_error(self) -> EmbedlogError | None:
        """Return and forget the first error that is not stale, if there is one."""
        while self.errors:
            error, state, generation = self.errors.popleft()
            if state is None or self._is_current(state, generation):
                return error
        return None

    def is_stale(self, fetch: CompletedFetch) -> bool:
        """Whether the partition was revoked or repositioned after the fetch."""
        return not self._is_current(fetch.state, fetch.generation)

    def _is_current(self, state: PartitionState, generation: int) -> bool:
        current = self._subscription.partitions.get(state.topic_partition)
        return current is state and generation == state.generation

    def drop(self, key: TopicPartition) -> None:
        """Remove the partition's first answer, which is drained or stale.

        The answer in `ahead` becomes the first, unless it is stale.
        """
        del self.first[key]
        ahead = self.ahead.pop(key, None)
        if ahead is not None and not self.is_stale(ahead):
            self.first[key] = ahead

    def may_fetch_after(self, fetch: CompletedFetch) -> bool:
        """Whether to request the records after `fetch`, although `fetch` is not drained yet.

        Over a network: if the log has more records and no second answer is buffered. In process:
        never.
        """
        if self._in_process or fetch.state.topic_partition in self.ahead:
            return False
        return 0 <= fetch.batches.end_offset < self.log_end(fetch.state)

    def clear(self) -> None:
        self.first.clear()
        self.ahead.clear()

    def log_end(self, state: PartitionState) -> int:
        """Return the offset where the readable records ended at the last fetch; -1 if unknown."""
        return state.last_stable_offset if self.is_committed_only else state.high_watermark

    def lag(self, state: PartitionState) -> int | None:
        """Return the record count from the position to the log's end, as of the last fetch.

        Returns None if the position or the end is unknown.
        """
        end = self.log_end(state)
        return None if end < 0 or state.offset < 0 else max(end - state.offset, 0)

    @property
    def is_behind(self) -> bool:
        """Whether some log has records after the position, as far as its last fetch showed.

        If none had, a fetch would only wait, and sending it would delay the application.
        """
        states = self._subscription.partitions.values()
        return any(state.offset < self.log_end(state) for state in states)
