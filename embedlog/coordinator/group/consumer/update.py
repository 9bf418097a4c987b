"""One member's update by a heartbeat or a join, and all its consequences.

    1. the member changed                   -> its metadata (type 5)
    2. its subscription, the topics, or the
       preferred assignor changed           -> the group epoch rises (type 3)
    3. group epoch > target epoch           -> a new target assignment (types 7, 6), at most once
                                               per `consumer.assignment.interval.ms` (KIP-1263)
    4. the member is not at its target      -> one step towards it (type 8)

See `member_records` for the types. Nothing is changed here: each step is computed as if the earlier
records were already applied.
"""

from __future__ import annotations

from embedlog.coordinator.group import assignors
from embedlog.coordinator.group.assignment_interval import may_assign
from embedlog.coordinator.group.consumer import member_records, regexes
from embedlog.coordinator.group.consumer.reconciliation import MemberReconciliation
from embedlog.coordinator.group.consumer.target_assignment import make_target_assignment
from embedlog.coordinator.group.metadata_hash import metadata_hash
from embedlog.coordinator.group.target import ids_of
from embedlog.logger import Logger

_log = Logger("group")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.assignors.spec import Partitions
    from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
    from embedlog.coordinator.group.consumer.member import ConsumerMember
    from embedlog.coordinator.result import CoordinatorRecord
    from embedlog.coordinator.shard_context import ShardContext


class MemberUpdate:
    """One member's update; it adds to `records`.

    `before` is the present member (a new member has epoch 0), `after` the member that the request
    describes.
    """

    def __init__(
        self,
        context: ShardContext,
        group: ConsumerGroup,
        before: ConsumerMember,
        after: ConsumerMember,
        records: list[CoordinatorRecord],
    ) -> None:
        self._context = context
        self._group = group
        self._before = before
        self._after = after
        self._records = records
        self._metadata = context.metadata()
        self._stored = group.members.get(before.member_id)
        """The stored member that `after` replaces; a static member's former id may differ."""
        if self._stored is None and after.instance_id is not None:
            self._stored = group.static_member(after.instance_id)
        self.has_new_regex = False
        """True if the member's pattern must be matched before it selects topics."""

    def run(self, owned: Partitions | None) -> ConsumerMember:
        """Add the records; return the member after them.

        Raises:
            InvalidRegularExpression: the member's pattern does not parse.
            FencedMemberEpoch: the member must join again.
        """
        group, member = self._group, self._after
        names_changed = member.topics != self._before.topics
        regex_changed = member.regex != self._before.regex
        if member != self._before:
            self._records.append(member_records.member_metadata(group.group_id, member))
        bump = names_changed or self._changes_assignor()
        if regex_changed and self._change_regex():
            bump = True
        target_epoch, target = self._target(self._next_group_epoch(bump))
        subscription_changed = names_changed or regex_changed
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        topics = group.subscriptions.topics_of(member)
        stepped = MemberReconciliation(
            target_epoch=target_epoch,
            target=target,
            owned=owned,
            holder=group.holders.holder,
            subscribed_topics=ids_of(topics, self._metadata),
            subscription_changed=subscription_changed,
        ).step(member)
        if stepped != member:
            self._records.append(member_records.current_assignment(group.group_id, stepped))
        return stepped

    def _change_regex(self) -> bool:
        """Apply the member's new pattern; return True if its topics are known.

        The group epoch rises only then: before its first match a pattern changes no assignment.
        """
        subscriptions = self._group.subscriptions
        old, new = self._before.regex, self._after.regex
        if new and new not in subscriptions.regexes:
            regexes.check(new)
        if old and subscriptions.regexes.get(old) == 1:
            self._records.append(member_records.without_regex(self._group.group_id, old))
        self.has_new_regex = bool(new) and new not in subscriptions.resolved
        return not self.has_new_regex

    def _next_group_epoch(self, bump: bool) -> int:
        group = self._group
        if not bump and group.metadata_seen is self._metadata:
            return group.group_epoch
        topics = group.subscriptions.topics_after(without=self._stored, added=self._after)
        found = metadata_hash(topics, self._metadata)
        if not bump and found == group.metadata_hash:
            group.metadata_seen = self._metadata
            return group.group_epoch
        epoch = group.group_epoch + 1
        _log.info(
            "consumer group %s rebalances: its epoch is %d (reason: %s)",
            group.group_id,
            epoch,
            f"the subscription of member {self._after.member_id}" if bump else "changed topics",
        )
        self._records.append(member_records.group_epoch(group.group_id, epoch, found))
        return epoch

    def _target(self, group_epoch: int) -> tuple[int, Partitions]:
        group, context = self._group, self._context
        interval = "consumer.assignment.interval.ms"
        if group_epoch == group.target_epoch or not may_assign(group, context, interval):
            return group.target_epoch, group.target_of(self._after)
        made = make_target_assignment(
            group,
            self._after,
            self._metadata,
            assignor=self._assignor(),
            epoch=group_epoch,
            now_ms=context.wall_ms(),
            pinned=context.pinned.get(group.group_id),
        )
        _log.info("consumer group %s: epoch %d is assigned", group.group_id, made.epoch)
        self._records.extend(made.records)
        return made.epoch, made.members[self._after.member_id]

    def _assignor(self) -> str:
        return self._group.assignor_votes.preferred(
            self._default_assignor(), before=self._stored, after=self._after
        )

    def _changes_assignor(self) -> bool:
        """Return whether this member's vote changes the assignor that most members prefer."""
        if self._after.server_assignor == self._before.server_assignor:
            return False
        before = self._group.assignor_votes.preferred(self._default_assignor())
        return self._assignor() != before

    def _default_assignor(self) -> str:
        return assignors.configured(self._context.config.group_consumer_assignors)[0]
