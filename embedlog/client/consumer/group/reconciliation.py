"""`Reconciliation`: moves a member from its present partitions to the broker's target (KIP-848)."""

from __future__ import annotations

from embedlog.common import TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.consumer.group.auto_commit import AutoCommit
    from embedlog.client.consumer.group.listener_calls import ListenerCalls
    from embedlog.client.consumer.group.offset_commits import Commit, OffsetCommits
    from embedlog.client.consumer.parts import ConsumerParts
    from wire.schemas.consumer_group_heartbeat import Assignment


class Reconciliation:
    """Replaces the member's partitions by the newest target.

    `advance` and `give_up_all` need the user's thread, because they call the listener.
    """

    def __init__(
        self,
        parts: ConsumerParts,
        calls: ListenerCalls,
        commits: OffsetCommits,
        auto_commit: AutoCommit,
    ) -> None:
        self._parts = parts
        self._subscription = parts.subscription
        self._calls = calls
        self._commits = commits
        self._auto_commit = auto_commit
        self._target: dict[bytes, list[int]] | None = None
        """The broker's target, partitions by topic id; None once it has been taken over."""
        self._commit: Commit | None = None
        self._committing: frozenset[TopicPartition] = frozenset()
        """The partitions that are revoked after `_commit`: their positions move no more."""
        self._commit_deadline = 0

    @property
    def is_over(self) -> bool:
        return self._target is None

    def begin(self, assignment: Assignment) -> None:
        self._target = {
            each.topic_id: list(each.partitions) for each in assignment.topic_partitions
        }

    def abandon(self) -> None:
        self._target = None
        self._abandon_commit()

    def give_up_all(self, *, is_member: bool) -> None:
        """Give up all partitions: as revoked, or as lost if the consumer is no member any more.

        If it is no member, its target is forgotten too.
        """
        owned = list(self._subscription.partitions)
        if not is_member:
            self.abandon()
            self._calls.lost(owned)
        elif owned:
            self._calls.revoked(owned)
        self._subscription.assign_from_group([])

    def advance(self, now_ms: int) -> int | None:
        """Take over the partitions of the target, except in topics that the metadata lacks.

        First commits the positions of revoked partitions; meanwhile, returns the milliseconds that
        the commit may still take. Returns None once the partitions are taken over.
        """
        assert self._target is not None, self
        metadata = self._parts.metadata
        names = metadata.names_by_id
        unknown = [topic_id for topic_id in self._target if topic_id not in names]
        if unknown:
            metadata.request_update()
        target = [
            TopicPartition(names[topic_id], number)
            for topic_id, numbers in self._target.items()
            if topic_id in names
            for number in numbers
        ]
        owned = list(self._subscription.partitions)
        revoked = [each for each in owned if each not in set(target)]
        left = self._commit_before(revoked, now_ms)
        if left is not None:
            return left
        added = [each for each in target if each not in set(owned)]
        if revoked:
            self._calls.revoked(revoked)
        self._subscription.assign_from_group(target)
        if added or revoked:
            self._parts.counts["rebalance-total"] += 1
            self._calls.assigned(added)
        if not unknown:
            self._target = None
        return None

    def _commit_before(self, revoked: list[TopicPartition], now_ms: int) -> int | None:
        """Commit before partitions are revoked, if auto commit is on.

        Returns the milliseconds that the commit may still take; None if no commit is open.
        """
        if not self._committing.issuperset(revoked):
            # A newer target revokes more, and the application has read on in these partitions.
            self._abandon_commit()
        if not revoked:
            self._abandon_commit()
            return None
        if self._commit is None:
            self._subscription.mark_revoking(revoked)
            self._committing = frozenset(revoked)
            if not self._auto_commit.is_on:
                return None
            self._commit = self._auto_commit.begin(retries=True)
            self._commit_deadline = now_ms + self._parts.settings["max.poll.interval.ms"]
            self._commits.advance(now_ms)
        if not self._commit.is_done and now_ms < self._commit_deadline:
            return self._commit_deadline - now_ms
        self._abandon_commit()
        return None

    def _abandon_commit(self) -> None:
        commit, self._commit = self._commit, None
        if commit is not None:
            self._commits.give_up(commit)
