"""Who is a member of a consumer group: looking members up, replacing static ones, letting go.

timer          runs from                          when it ends
session        every heartbeat                    the member is removed
rebalance      being told to give up partitions   removed, if it has not: its epoch is the same
join           a classic member being told to     removed: it has not joined again
sync           its JoinGroup's answer             removed: it has not asked for its assignment
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.consumer import member as states
from embedlog.coordinator.group.consumer import member_records
from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
from embedlog.coordinator.group.consumer.member import ConsumerMember
from embedlog.coordinator.group.consumer.subscriptions import metadata_hash
from embedlog.coordinator.group.group import is_in_process
from embedlog.coordinator.result import Result
from embedlog.logs import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from embedlog.coordinator.group.group import Group
    from embedlog.coordinator.result import CoordinatorRecord
    from embedlog.coordinator.shard_context import ShardContext

SESSION = "consumer-session"
REBALANCE = "consumer-rebalance"
JOIN = "consumer-join"
SYNC = "consumer-sync"
_TIMERS = (SESSION, REBALANCE, JOIN, SYNC)
_EXPIRED = {
    SESSION: "its session expired",
    REBALANCE: "it did not give up its partitions in time",
    JOIN: "it did not join again in time",
    SYNC: "it did not ask for its assignment in time",
}

_log = Log("group")


class Membership:
    """The members of one shard's consumer groups. Requires: the shard's lock."""

    def __init__(self, context: ShardContext, groups: dict[str, Group]) -> None:
        self.context = context
        self.groups = groups
        self.downgrade: Callable[[ConsumerGroup, Sequence[str]], Result[Any] | None] = _never
        """Turn a group into a classic one as members leave, if that is due; see `migration`."""

    # Looking up

    def group(self, group_id: str, *, absent: str = "Group") -> ConsumerGroup:
        """The consumer group of that id.

        Raises:
            GroupIdNotFound: there is none, or it is of another type.
        """
        found = self.groups.get(group_id)
        if found is None:
            raise errors.GroupIdNotFound(f"{absent} {group_id} not found.")
        if not isinstance(found, ConsumerGroup):
            raise not_a_consumer_group(group_id)
        return found

    def check_room(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None = None
    ) -> None:
        """Refuse who is no member, nor takes the place of one, when the group is full.

        Raises:
            GroupMaxSizeReached: it is.
        """
        if instance_id in group.static_members or member_id in group.members:
            return
        size_max = self.context.config.group_consumer_max_size
        if len(group.members) >= size_max:
            raise errors.GroupMaxSizeReached(
                f"The consumer group has reached its maximum capacity of {size_max} members.",
            )

    def static_member(
        self, group: ConsumerGroup, instance_id: str, member_id: str
    ) -> ConsumerMember:
        """The member of that instance id, which must be that member id.

        Raises:
            UnknownMemberId, FencedInstanceId: it is not.
        """
        found = group.static_member(instance_id)
        if found is None:
            raise errors.UnknownMemberId(f"Instance id {instance_id} is unknown.")
        if found.member_id != member_id:
            raise errors.FencedInstanceId(
                f"Static member {member_id} with instance id {instance_id} was fenced by member"
                f" {found.member_id}.",
            )
        return found

    def joining_static_member(
        self,
        group: ConsumerGroup,
        instance_id: str,
        member_id: str,
        records: list[CoordinatorRecord],
        *,
        is_classic: bool,
    ) -> ConsumerMember:
        """Who joins under an instance id: somebody new, or the successor of who had it.

        Raises:
            UnreleasedInstanceId: it is in use, and neither of the two is a classic member.
        """
        former = group.static_member(instance_id)
        if former is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if not is_classic and former.classic is None and former.epoch != states.LEAVE_STATIC_EPOCH:
            raise errors.UnreleasedInstanceId(
                f"Static member {member_id} with instance id {instance_id} cannot join the group"
                f" because the instance id is owned by {former.member_id} member.",
            )
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
        """Remove members, who have no say in it."""
        result = self.downgrade(group, [member.member_id for member in members])
        if result is None:
            result = Result(self._without(group, members))
            for member in members:
                self.cancel_timers(group.group_id, member.member_id)
        return result

    def _without(
        self, group: ConsumerGroup, members: Sequence[ConsumerMember]
    ) -> list[CoordinatorRecord]:
        """The records that remove members. The last ones leave nothing to assign."""
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

    # Timers

    def start_session(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """The member lives; look again after `timeout_ms`."""
        self._start(SESSION, group_id, member_id, timeout_ms, self._session_expired)

    def start_rebalance(self, group_id: str, member: ConsumerMember) -> None:
        """The member must give partitions up within its rebalance time-out."""
        epoch = member.epoch

        def expired(group_id: str, member_id: str) -> Result[Any]:
            group = self.groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                found = group.members.get(member_id)
                if found is not None and found.epoch == epoch:
                    return self._fence_late(REBALANCE, group, found)
            return Result()

        timeout_ms = member.rebalance_timeout_ms
        self._start(REBALANCE, group_id, member.member_id, timeout_ms, expired)

    def start_join(self, group_id: str, member: ConsumerMember) -> None:
        """A classic member was told to join again, unless it was before."""
        if not self.context.timer.is_scheduled((JOIN, group_id, member.member_id)):
            timeout_ms = member.rebalance_timeout_ms
            self._start(JOIN, group_id, member.member_id, timeout_ms, self._join_expired)

    def start_sync(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """A classic member has joined, and must ask for its assignment."""
        self._start(SYNC, group_id, member_id, timeout_ms, self._sync_expired)

    def cancel(self, timer: str, group_id: str, member_id: str) -> None:
        """Stop one of the timers."""
        self.context.timer.cancel((timer, group_id, member_id))

    def cancel_timers(self, group_id: str, member_id: str) -> None:
        """Stop all of a member's timers."""
        for timer in _TIMERS:
            self.cancel(timer, group_id, member_id)

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a member of the consumer protocol may be silent."""
        timeout_ms = self.context.group_config(group_id, "consumer.session.timeout.ms")
        assert isinstance(timeout_ms, int), timeout_ms
        return timeout_ms

    def loaded(self) -> None:
        """Everybody has a whole session to be heard in, and to give up what it must."""
        for group in self.groups.values():
            if not isinstance(group, ConsumerGroup):
                continue
            group_session_ms = self.session_timeout_ms(group.group_id)
            for member in group.members.values():
                classic = member.classic
                session_ms = group_session_ms if classic is None else classic.session_timeout_ms
                self.start_session(group.group_id, member.member_id, session_ms)
                if member.state == states.UNREVOKED_PARTITIONS and member.classic is None:
                    self.start_rebalance(group.group_id, member)

    def opened(self) -> Iterator[Result[Any]]:
        """Remove the members that were threads of the process that had the log open before."""
        for group in list(self.groups.values()):
            if not isinstance(group, ConsumerGroup):
                continue
            ended = [each for each in group.members.values() if is_in_process(each.client_host)]
            if ended:
                yield self.remove(group, ended)

    def _start(
        self,
        timer: str,
        group_id: str,
        member_id: str,
        timeout_ms: int,
        expired: Callable[[str, str], Result[Any]],
    ) -> None:
        self.context.timer.schedule(
            (timer, group_id, member_id), timeout_ms, lambda: expired(group_id, member_id)
        )

    def _session_expired(self, group_id: str, member_id: str) -> Result[Any]:
        return self._expired(SESSION, group_id, member_id)

    def _join_expired(self, group_id: str, member_id: str) -> Result[Any]:
        return self._expired(JOIN, group_id, member_id)

    def _sync_expired(self, group_id: str, member_id: str) -> Result[Any]:
        return self._expired(SYNC, group_id, member_id)

    def _expired(self, timer: str, group_id: str, member_id: str) -> Result[Any]:
        group = self.groups.get(group_id)
        # The group may have become a classic one, and the member may have gone.
        if isinstance(group, ConsumerGroup):
            member = group.members.get(member_id)
            if member is not None:
                return self._fence_late(timer, group, member)
        return Result()

    def _fence_late(self, timer: str, group: ConsumerGroup, member: ConsumerMember) -> Result[Any]:
        why = _EXPIRED[timer]
        _log.warning("group %s fences member %s: %s", group.group_id, member.member_id, why)
        return self.fence(group, member, None)


def not_a_consumer_group(group_id: str) -> Exception:
    """What is said of a group of another type."""
    return errors.GroupIdNotFound(f"Group {group_id} is not a consumer group.")


def _never(_group: ConsumerGroup, _leaving: Sequence[str]) -> None:
    return None
