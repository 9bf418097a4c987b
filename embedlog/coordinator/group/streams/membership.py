"""Members of streams groups: looking them up, replacing static ones, removing them."""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.classic.classic_group import ClassicGroup
from embedlog.coordinator.group.group import Group, is_in_process
from embedlog.coordinator.group.static_members import unreleased
from embedlog.coordinator.group.streams import member as states
from embedlog.coordinator.group.streams import member_records
from embedlog.coordinator.group.streams.member import StreamsMember
from embedlog.coordinator.group.streams.member_timers import StreamsMemberTimers
from embedlog.coordinator.group.streams.streams_group import StreamsGroup
from embedlog.coordinator.result import CoordinatorRecord, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from embedlog.coordinator.shard_context import ShardContext


class Membership:
    """The members of one shard's streams groups. Requires: the shard's lock."""

    def __init__(self, context: ShardContext, groups: dict[str, Group]) -> None:
        self.context = context
        self.groups = groups
        self.timers = StreamsMemberTimers(
            context, groups, lambda group, one: self.remove(group, [one])
        )

    # Looking up

    def group(self, group_id: str, *, absent: str = "Group") -> StreamsGroup:
        """Return the streams group of that id. Raise GroupIdNotFound for any other id."""
        found = self.groups.get(group_id)
        if found is None:
            raise errors.GroupIdNotFound(f"{absent} {group_id} not found.")
        if not isinstance(found, StreamsGroup):
            raise errors.GroupIdNotFound(f"Group {group_id} is not a streams group.")
        return found

    def group_to_join(self, group_id: str, records: list[CoordinatorRecord]) -> StreamsGroup:
        """Return a group that a member may join. It may be new, or replace an empty classic one.

        Raises:
            GroupIdNotFound: the group has another type.
        """
        found = self.groups.get(group_id)
        if isinstance(found, ClassicGroup) and found.is_empty():
            records += found.tombstones()
            found = None
        if found is None:
            return StreamsGroup(group_id, self.context.metadata)
        return self.group(group_id)

    def check_room(self, group: StreamsGroup, member_id: str, instance_id: str | None) -> None:
        """Raise GroupMaxSizeReached if the group is full, unless the member replaces another."""
        if instance_id in group.static_members or member_id in group.members:
            return
        size_max = self.context.config.group_streams_max_size
        if len(group.members) >= size_max:
            raise errors.GroupMaxSizeReached(
                f"The streams group has reached its maximum capacity of {size_max} members.",
            )

    def joining_static_member(
        self,
        group: StreamsGroup,
        instance_id: str,
        member_id: str,
        records: list[CoordinatorRecord],
    ) -> StreamsMember:
        """Return the member that joins under an instance id: a new one, or a successor.

        Raises:
            UnreleasedInstanceId: the id is in use.
        """
        former = group.static_member(instance_id)
        if former is None:
            return group.members.get(member_id) or StreamsMember(member_id)
        if former.epoch != states.LEAVE_STATIC_EPOCH:
            raise unreleased(instance_id, member_id, former.member_id)
        successor = former.replace(member_id=member_id, epoch=0, previous_epoch=0)
        group_id = group.group_id
        records += member_records.without_member(group_id, former.member_id)
        records += (
            member_records.member_metadata(group_id, successor),
            member_records.target_assignment(group_id, member_id, group.target_of(former)),
            member_records.current_assignment(group_id, successor),
        )
        return successor

    # Letting go

    def remove(self, group: StreamsGroup, members: Sequence[StreamsMember]) -> Result[Any]:
        """Remove members that left, were fenced, or missed a time limit. An empty group needs no
        assignment.
        """
        group_id = group.group_id
        records: list[CoordinatorRecord] = []
        for member in members:
            records += member_records.without_member(group_id, member.member_id)
            self.timers.cancel_all(group_id, member.member_id)
        epoch = group.group_epoch + 1
        records.append(member_records.group_facts(group_id, group.facts().replace(epoch=epoch)))
        if len(members) == len(group.members):
            records.append(member_records.target_epoch(group_id, epoch, 0))
        return Result(records)

    def opened(self) -> Iterator[Result[Any]]:
        """Remove the members that ran in the former process of this broker: they ended with it."""
        for group in list(self.groups.values()):
            if not isinstance(group, StreamsGroup):
                continue
            ended = [each for each in group.members.values() if is_in_process(each.client_host)]
            if ended:
                yield self.remove(group, ended)
