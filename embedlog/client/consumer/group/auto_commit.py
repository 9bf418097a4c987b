"""enable.auto.commit: commit the positions every auto.commit.interval.ms.

Positions are committed inside a poll, before a rebalance and on close, never in between. So the
records that the user is still working on do not count as read.
"""

from __future__ import annotations

from embedlog.client.consumer.group.group_offsets import OffsetAndMetadata
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.consumer.group.offset_commits import Commit, OffsetCommits
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.client.consumer.subscription_state import SubscriptionState
    from embedlog.common import TopicPartition


class AutoCommit:
    """Begins the automatic commits of one consumer when they are due. At most one is open."""

    def __init__(self, parts: ConsumerParts, commits: OffsetCommits) -> None:
        settings = parts.settings
        self._parts = parts
        self._commits = commits
        self.is_on: bool = settings["enable.auto.commit"]
        self._interval_ms: int = settings["auto.commit.interval.ms"]
        self._backoff_ms: int = settings["retry.backoff.ms"]
        self._next_ms: int | None = None
        self._commit: Commit | None = None

    def restart(self, now_ms: int) -> None:
        self._next_ms = now_ms + self._interval_ms

    def advance(self, now_ms: int) -> int | None:
        """Begin a commit if it is due; return milliseconds until the next commit is due.

        Returns None if auto commit is off.
        """
        if not self.is_on:
            return None
        if self._next_ms is None:
            self.restart(now_ms)
        assert self._next_ms is not None, self
        commit = self._commit
        if commit is not None and commit.is_done:
            self._commit = None
            if commit.error is not None:
                self._next_ms = min(self._next_ms, now_ms + self._backoff_ms)
        if self._commit is None and now_ms >= self._next_ms:
            self.restart(now_ms)
            self._commit = self.begin(retries=False)
            self._commits.advance(now_ms)
        return max(self._next_ms - now_ms, 0)

    def begin(self, *, retries: bool) -> Commit:
        """Begin a commit of the positions, except in deleted topics: a broker would refuse them."""
        offsets = consumed_offsets(self._parts.subscription)
        kept = {key: each for key, each in offsets.items() if not self._is_gone(key.topic)}
        return self._commits.begin(kept, retries=retries)

    def _is_gone(self, topic: str) -> bool:
        metadata = self._parts.metadata
        if topic in metadata.topics or not metadata.answer_count:
            return False
        error = metadata.errors.get(topic)
        return error is None or error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def consumed_offsets(
    subscription: SubscriptionState,
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the positions as offsets to commit."""
    return {
        key: OffsetAndMetadata(state.offset, "", state.offset_epoch)
        for key, state in subscription.positions().items()
    }
