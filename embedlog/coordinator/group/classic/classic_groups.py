"""`ClassicGroups`: the classic groups of one shard, the shard's entry point."""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from embedlog.coordinator.group.classic.join import Joins
from embedlog.coordinator.group.classic.leave import Leaves
from embedlog.coordinator.group.classic.rebalances import Rebalances
from embedlog.coordinator.group.classic.records import group_from
from embedlog.coordinator.group.classic.sync import Syncs
from embedlog.coordinator.group.group import Group, is_in_process
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from embedlog.coordinator.result import Result
    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.errors import KafkaError
    from wire.schemas.group_metadata import GroupMetadataKey, GroupMetadataValue


class ClassicGroups:
    """The classic part of a shard. Requires for every method: the shard's lock.

    `groups` is the shard's dictionary of groups of every type. Requests treat a group of another
    type as absent; only a join may replace it, if it is empty.
    """

    def __init__(self, context: ShardContext, groups: dict[str, Group]) -> None:
        self._context = context
        self._groups = groups
        self.rebalances = Rebalances(context)
        self.joins = Joins(context, groups, self.rebalances)
        self.syncs = Syncs(context, groups, self.rebalances)
        self.leaves = Leaves(groups, self.rebalances)

    def get_or_make(self, group_id: str) -> ClassicGroup:
        """Return the group. If it does not exist, create it without members, to store offsets.

        Raises:
            GroupIdNotFound: the group is of another type.
        """
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = ClassicGroup(
                group_id, state_timestamp_ms=self._context.wall_ms()
            )
        if not isinstance(group, ClassicGroup):
            raise errors.GroupIdNotFound(f"Group {group_id} is not a classic one.")
        return group

    # Groups that change their type (KIP-848)

    def adopt(self, group: ClassicGroup) -> None:
        self._groups[group.group_id] = group
        self._open_sessions(group)

    def release(self, group: ClassicGroup, code: int) -> None:
        """Remove a group from the shard, stop its timers, answer parked requests with `code`."""
        self.rebalances.dissolve(group, code)
        if self._groups.get(group.group_id) is group:
            del self._groups[group.group_id]

    # The shard's life

    def replay_metadata(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        former = self._groups.get(key.group)
        if isinstance(former, ClassicGroup):
            self.release(former, ErrorCode.UNKNOWN_MEMBER_ID)
        if value is not None:
            self._groups[key.group] = group_from(key.group, value)

    def loaded(self) -> None:
        """Start the sessions; rebalance groups that are too large or have lost their leader.

        If the broker stopped between a member's leave and the rebalance after it, the group's
        record names a leader that is not a member (see `records.group_record`).
        """
        size_max: int = self._context.config.group_max_size
        for group in self._groups.values():
            if not isinstance(group, ClassicGroup):
                continue
            self._open_sessions(group)
            members = group.members
            has_lost_leader = bool(members.by_id) and members.leader_id not in members.by_id
            if len(members.by_id) > size_max or has_lost_leader:
                result = self.rebalances.prepare(group, "loaded without its leader, or too large")
                assert not result.records, (group.group_id, result)

    def opened(self) -> Iterator[Result[Any]]:
        """Remove the members that ran in the former process of this broker: they ended with it."""
        for group in list(self._groups.values()):
            if not isinstance(group, ClassicGroup):
                continue
            members = group.members.by_id.values()
            ended = [each for each in members if is_in_process(each.client_host)]
            for member in ended:
                self.rebalances.remove(group, member)
            if ended:
                reason = f"{len(ended)} members ended with their process"
                yield self.rebalances.prepare_or_complete(group, reason)

    def unloaded(self, error: KafkaError) -> None:
        for group in self._groups.values():
            if isinstance(group, ClassicGroup) and group.state != GroupState.DEAD:
                self.rebalances.dissolve(group, error.code)

    def _open_sessions(self, group: ClassicGroup) -> None:
        for member in group.members.by_id.values():
            member.session = self.rebalances.open_session(
                group, member.member_id, member.session_timeout_ms
            )
