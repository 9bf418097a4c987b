"""One member's update by a heartbeat, and all its consequences.

    1. the member changed                        -> its metadata (type 10)
    2. its subscription or the topics changed,
       or an initialised partition has no member -> the group epoch rises (type 11)
    3. group epoch > target epoch                -> a new target assignment (types 13, 12), at most
                                                    once per `share.assignment.interval.ms`
    4. the member is not at its target           -> it takes its target (type 14)
    5. share partitions are not initialised      -> they are begun (type 15)

See `member_records` for the types. Nothing is changed here: each step is computed as if the earlier
records were already applied.
"""

from __future__ import annotations

from embedlog.coordinator.group.assignment_interval import may_assign
from embedlog.coordinator.group.metadata_hash import metadata_hash
from embedlog.coordinator.group.share import member_records
from embedlog.coordinator.group.share.target_assignment import assignable, make_target_assignment
from embedlog.coordinator.group.target import ids_of
from embedlog.logger import Logger

_log = Logger("group")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.assignors.spec import Partitions
    from embedlog.coordinator.group.share.initialization import Initialization
    from embedlog.coordinator.group.share.member import ShareMember
    from embedlog.coordinator.group.share.share_group import ShareGroup
    from embedlog.coordinator.group.share.state_topics import Named
    from embedlog.coordinator.result import CoordinatorRecord
    from embedlog.coordinator.shard_context import ShardContext


class MemberUpdate:
    """One member's update.

    `before` is the present member (a new member has epoch 0), `after` the member that the request
    describes.
    """

    def __init__(
        self,
        context: ShardContext,
        group: ShareGroup,
        before: ShareMember,
        after: ShareMember,
    ) -> None:
        self._context = context
        self._group = group
        self._before = before
        self._after = after
        self._metadata = context.metadata()
        self.records: list[CoordinatorRecord] = []
        self.group_epoch = group.group_epoch
        """The group epoch after the records."""
        self.begun: Named = {}
        """The share partitions that the records begin."""

    def run(self, initialization: Initialization) -> ShareMember:
        """Make the records; return the member after them."""
        group, member = self._group, self._after
        is_new = member.member_id not in group.members
        if is_new or member != self._before:
            self.records.append(member_records.member_metadata(group.group_id, member))
        if is_new or member.topics != self._before.topics:
            topics = self._topics()
            self._raise_epoch(topics, bump=True)
        elif self._is_complete():
            topics = None
        else:
            topics = self._topics()
            self._raise_epoch(topics, bump=self._has_unassigned(topics))
        target_epoch, target = self._target()
        member = self._at_target(target_epoch, target)
        if member != self._after:
            self.records.append(member_records.current_assignment(group.group_id, member))
        if topics is not None:
            self._begin(initialization, topics)
        return member

    def _topics(self) -> set[str]:
        """Return the group's topics after the update."""
        stored = self._group.members.get(self._after.member_id)
        return self._group.topics_after(
            without=[] if stored is None else [stored], added=self._after
        )

    def _is_complete(self) -> bool:
        """Return whether an earlier update has found nothing to begin or to assign.

        This saves every other heartbeat the look at all partitions.
        """
        group = self._group
        metadata, state_topics, target_epoch = group.complete_for or (None, None, -1)
        return (
            metadata is self._metadata
            and state_topics is group.state_topics
            and target_epoch == group.target_epoch == group.group_epoch
        )

    def _begin(self, initialization: Initialization, topics: set[str]) -> None:
        group = self._group
        self.begun = initialization.missing(group, topics, self._metadata)
        if self.begun:
            begun = group.state_topics.begun(self.begun)
            self.records.append(member_records.state_topics(group.group_id, begun))
        elif not self.records and not group.state_topics.initializing:
            group.complete_for = self._metadata, group.state_topics, group.target_epoch

    def _has_unassigned(self, topics: set[str]) -> bool:
        """Return whether the last target assignment lacks an initialised partition.

        While the next assignment is due anyway, the answer is no.
        """
        group = self._group
        if group.group_epoch > group.target_epoch:
            return False
        assigned: dict[bytes, set[int]] = {}
        for target in group.target.values():
            for topic_id, numbers in target.items():
                assigned.setdefault(topic_id, set()).update(numbers)
        partitions = assignable(group, topics, self._metadata)
        return any(
            not numbers <= assigned.get(topic_id, set()) for topic_id, numbers in partitions.items()
        )

    def _raise_epoch(self, topics: set[str], *, bump: bool) -> None:
        group = self._group
        if not bump and group.metadata_seen is self._metadata:
            return
        hashed = metadata_hash(topics, self._metadata)
        if not bump and hashed == group.metadata_hash:
            group.metadata_seen = self._metadata
            return
        self.group_epoch += 1
        _log.info("share group %s rebalances: its epoch is %d", group.group_id, self.group_epoch)
        self.records.append(member_records.group_epoch(group.group_id, self.group_epoch, hashed))

    def _is_awaited(self) -> bool:
        """Return whether the member waits for its first partitions, which need not wait."""
        return bool(self._context.config.embedlog_share_first_heartbeat_ms) and not (
            self._before.assigned
        )

    def _target(self) -> tuple[int, Partitions]:
        group, context = self._group, self._context
        interval = "share.assignment.interval.ms"
        is_due = self._is_awaited() or may_assign(group, context, interval)
        if self.group_epoch == group.target_epoch or not is_due:
            return group.target_epoch, group.target_of(self._after.member_id)
        made = make_target_assignment(
            group,
            self._after,
            self._metadata,
            epoch=self.group_epoch,
            now_ms=context.wall_ms(),
        )
        _log.info("share group %s: epoch %d is assigned", group.group_id, made.epoch)
        self.records.extend(made.records)
        return made.epoch, made.members[self._after.member_id]

    def _at_target(self, target_epoch: int, target: Partitions) -> ShareMember:
        member = self._after
        if member.epoch != target_epoch:
            return member.replace(epoch=target_epoch, previous_epoch=member.epoch, assigned=target)
        if member.topics == self._before.topics:
            return member
        # The next assignment has to wait, but topics that the member no longer reads go at once.
        ids = ids_of(member.topics, self._metadata)
        kept = {t: numbers for t, numbers in member.assigned.items() if t in ids}
        return member.replace(assigned=kept)
