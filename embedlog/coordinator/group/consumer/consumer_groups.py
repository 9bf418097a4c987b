"""`ConsumerGroups`: the consumer groups of one shard, as the shard calls them."""

from __future__ import annotations

from embedlog.coordinator.group import assignors
from embedlog.coordinator.group.consumer.classic_members import ClassicMembers
from embedlog.coordinator.group.consumer.consumer_group import ConsumerGroup
from embedlog.coordinator.group.consumer.heartbeats import Heartbeats
from embedlog.coordinator.group.consumer.membership import Membership
from embedlog.coordinator.group.consumer.migration import Migration
from embedlog.coordinator.group.consumer.regex_matching import RegexMatching
from embedlog.coordinator.group.consumer.replay import replay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from embedlog.coordinator.broker_view import RequestContext
    from embedlog.coordinator.group.classic.classic_groups import ClassicGroups
    from embedlog.coordinator.group.group import Group
    from embedlog.coordinator.result import Result
    from embedlog.coordinator.shard_context import ShardContext
    from wire.schemas.consumer_group_describe import DescribedGroup
    from wire.schemas.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )
    from wire.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse
    from wire.schemas.join_group import JoinGroupRequest, JoinGroupResponse
    from wire.schemas.leave_group import LeaveGroupRequest, LeaveGroupResponse
    from wire.schemas.sync_group import SyncGroupRequest, SyncGroupResponse


class ConsumerGroups:
    """Requires for every method: the shard's lock.

    `groups` is the shard's dictionary of groups of every type. The `classic_...` methods are for
    groups that are consumer groups, whichever protocol their members speak.
    """

    def __init__(
        self, context: ShardContext, groups: dict[str, Group], classic: ClassicGroups
    ) -> None:
        self._context = context
        self._groups = groups
        self._classic = classic
        self._membership = Membership(context, groups)
        migration = Migration(self._membership, classic)
        self._membership.downgrade = migration.downgrade_leaving
        self._heartbeats = Heartbeats(self._membership, migration, RegexMatching(context, groups))
        self._classic_members = ClassicMembers(self._membership, migration)

    # Requests

    def heartbeat(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest, version: int
    ) -> Result[ConsumerGroupHeartbeatResponse]:
        """ConsumerGroupHeartbeat: join, stay, leave.

        Raises:
            KafkaError: what the member is to be answered.
        """
        return self._heartbeats.heartbeat(context, request, version)

    def describe(self, group_ids: Sequence[str]) -> list[DescribedGroup]:
        """ConsumerGroupDescribe, of those groups.

        Raises:
            GroupIdNotFound: one of them is not there, or is of another type.
        """
        from embedlog.coordinator.group.consumer.description import described

        names = assignors.configured(self._context.config.group_consumer_assignors)
        metadata = self._context.metadata()
        return [
            described(self._membership.group(group_id), metadata, names[0])
            for group_id in group_ids
        ]

    def classic_join(
        self, context: RequestContext, request: JoinGroupRequest, *, version: int
    ) -> Result[JoinGroupResponse]:
        """JoinGroup. An empty consumer group gives way to a classic one."""
        group = self._group(request.group_id)
        if group.is_empty():
            return self._classic.join(context, request, version=version)
        return self._classic_members.join(group, context, request, version)

    def classic_sync(
        self, _context: RequestContext, request: SyncGroupRequest, *, version: int
    ) -> Result[SyncGroupResponse]:
        """SyncGroup."""
        del version  # what it has no field for is None
        return self._classic_members.sync(self._group(request.group_id), request)

    def classic_heartbeat(
        self, _context: RequestContext, request: HeartbeatRequest, *, version: int
    ) -> Result[HeartbeatResponse]:
        """Heartbeat."""
        del version
        return self._classic_members.heartbeat(self._group(request.group_id), request)

    def classic_leave(
        self, _context: RequestContext, request: LeaveGroupRequest, *, version: int
    ) -> Result[LeaveGroupResponse]:
        """LeaveGroup."""
        return self._classic_members.leave(self._group(request.group_id), request, version)

    def _group(self, group_id: str) -> ConsumerGroup:
        group = self._groups[group_id]
        assert isinstance(group, ConsumerGroup), group
        return group

    # The shard's life

    def replay(self, key: Any, value: Any) -> None:
        """Take over a record of types 3-8 or 16, from the log or just appended."""
        replay(self._groups, key, value)

    def loaded(self) -> None:
        """The log was replayed: sessions begin."""
        self._membership.loaded()

    def opened(self) -> Iterator[Result[Any]]:
        """Remove the members that were threads of the process that had the log open before."""
        return self._membership.opened()

    def unloaded(self) -> None:
        """The shard ends here. Nobody is parked, and the timers go with the shard."""
