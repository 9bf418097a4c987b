"""Members of consumer groups: looking them up, replacing static ones, removing them."""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.consumer import member as states
from embedlog.coordinator.group.consumer import member_records
from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
from embedlog.coordinator.group.consumer.member import ConsumerMember
from embedlog.coordinator.group.consumer.member_timers import ConsumerMemberTimers
from embedlog.coordinator.group.group import Group, is_in_process
from embedlog.coordinator.group.metadata_hash import metadata_hash
from embedlog.coordinator.group.static_members import unreleased
from embedlog.coordinator.result import CoordinatorRecord, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from embedlog.coordinator.shard_context import ShardContext


class Membership:
    """The members of one shard's consumer groups. Requires: the shard's lock."""

    def __init__(self, context: ShardContext, groups: dict[str, Group]) -> None:
        self.context = context
        self.groups = groups
        self.downgrade: Callable[[ConsumerGroup, Sequence[str]], Result[Any] | None] = (
            lambda _group, _leaving: None
        )
        """Turns a group into a classic one if only classic members remain; see `migration`."""
        self.timers = ConsumerMemberTimers(
            context, groups, lambda group, member: self.fence(group, member, None)
        )

    # Looking up

    def group(self, group_id: str, *, absent: str = "Group") -> ConsumerGroup:
        """Return the consumer group of that id. Raise GroupIdNotFound for any other id."""
        found = self.groups.get(group_id)
        if found is None:
            raise errors.GroupIdNotFound(f"{absent} {group_id} not found.")
        if not isinstance(found, ConsumerGroup):
            raise not_a_consumer_group(group_id)
        return found

    def check_room(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None = None
    ) -> None:
        """Raise GroupMaxSizeReached if the group is full, unless the member replaces another."""
        if instance_id in group.static_members or member_id in group.members:
            return
        size_max = self.context.config.group_consumer_max_size
        if len(group.members) >= size_max:
            raise errors.GroupMaxSizeReached(
                f"The consumer group has reached its maximum capacity of {size_max} members.",
            )

    def joining_static_member(
        self,
        group: ConsumerGroup,
        instance_id: str,
        member_id: str,
        records: list[CoordinatorRecord],
        *,
        is_classic: bool,
    ) -> ConsumerMember:
        """Return the member that joins under an instance id: a new one, or a successor.

        Raises:
            UnreleasedInstanceId: the id is in use, and neither its member nor the joining member is
                a classic one.
        """
        former = group.static_member(instance_id)
        if former is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if not is_classic and former.classic is None and former.epoch != states.LEAVE_STATIC_EPOCH:
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

    def fence(self, group: ConsumerGroup, member: ConsumerMember, response: Any) -> Result[Any]:
        """Remove a member, and answer `response`."""
        result = self.remove(group, [member])
        result.response = response
        return result

    def remove(self, group: ConsumerGroup, members: Sequence[ConsumerMember]) -> Result[Any]:
        """Remove members that left, were fenced, or missed a time limit."""
        result = self.downgrade(group, [member.member_id for member in members])
        if result is None:
            result = Result(self._without(group, members))
            for member in members:
                self.timers.cancel_all(group.group_id, member.member_id)
        return result

    def _without(
        self, group: ConsumerGroup, members: Sequence[ConsumerMember]
    ) -> list[CoordinatorRecord]:
        """Return the records that remove members. An empty group needs no assignment."""
        group_id = group.group_id
        records: list[CoordinatorRecord] = []
        leaving: dict[str, int] = {}
        for member in members:
            records += member_records.without_member(group_id, member.member_id)
            if member.regex:
                leaving[member.regex] = leaving.get(member.regex, 0) + 1
        for regex, count in leaving.items():
            if group.subscriptions.regexes[regex] == count:
                records.append(member_records.without_regex(group_id, regex))
        topics = group.subscriptions.topics_without(members)
        epoch = group.group_epoch + 1
        found = metadata_hash(topics, self.context.metadata())
        records.append(member_records.group_epoch(group_id, epoch, found))
        if len(members) == len(group.members):
            records.append(member_records.target_epoch(group_id, epoch, 0))
        return records

    def opened(self) -> Iterator[Result[Any]]:
        """Remove the members that ran in the former process of this broker: they ended with it."""
        for group in list(self.groups.values()):
            if not isinstance(group, ConsumerGroup):
                continue
            ended = [each for each in group.members.values() if is_in_process(each.client_host)]
            if ended:
                yield self.remove(group, ended)


def not_a_consumer_group(group_id: str) -> Exception:
    """Return the error for a group of another type."""
    return errors.GroupIdNotFound(f"Group {group_id} is not a consumer group.")
