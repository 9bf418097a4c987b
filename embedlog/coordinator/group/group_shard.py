"""`GroupShard`: the groups whose records lie in one partition of `__consumer_offsets`.

    classic    groups whose members elect a leader       record type 2
    consumer   groups that the coordinator assigns       record types 3-8 and 16
    offsets    what groups of either kind have committed record types 0 and 1

All three share one dictionary of groups. A request goes to the part that the group's type names;
a record goes to the part that its type names.
"""

from __future__ import annotations

from typing import Any

from wire.schema import declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.group import Group
    from embedlog.coordinator.result import CoordinatorRecord, Result
    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.coordinator.surroundings import RequestContext
    from embedlog.errors import KafkaError
    from wire.schemas.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )
    from wire.schemas.heartbeat import HeartbeatRequest, HeartbeatResponse
    from wire.schemas.join_group import JoinGroupRequest, JoinGroupResponse
    from wire.schemas.leave_group import LeaveGroupRequest, LeaveGroupResponse
    from wire.schemas.sync_group import SyncGroupRequest, SyncGroupResponse

_CLASSIC_GROUP = 2
_CONSUMER = "consumer"


class GroupShard:
    """One loaded shard. Requires for every method: the shard's lock."""

    __slots__ = ("classic", "consumer", "context", "groups")

    def __init__(self, context: ShardContext) -> None:
        self.context = context
        self.groups: dict[str, Group] = {}
        """All groups by id, shared by the parts."""
        self.classic: Any = _part("classic", "ClassicGroups", context, self.groups)
        self.consumer: Any = _part("consumer", "ConsumerGroups", context, self.groups, self.classic)

    # Members

    def join(self, context: RequestContext, request: JoinGroupRequest) -> Result[JoinGroupResponse]:
        """JoinGroup: of either kind of group, as classic clients may join both."""
        version = context.api_version
        if self._is_consumer(request.group_id):
            return self.consumer.classic_join(context, request, version=version)
        return self.classic.join(context, request, version=version)

    def sync(self, context: RequestContext, request: SyncGroupRequest) -> Result[SyncGroupResponse]:
        """SyncGroup."""
        version = context.api_version
        if self._is_consumer(request.group_id):
            return self.consumer.classic_sync(context, request, version=version)
        return self.classic.sync(context, request, version=version)

    def heartbeat(
        self, context: RequestContext, request: HeartbeatRequest
    ) -> Result[HeartbeatResponse]:
        """Heartbeat of a classic member."""
        version = context.api_version
        if self._is_consumer(request.group_id):
            return self.consumer.classic_heartbeat(context, request, version=version)
        return self.classic.heartbeat(context, request, version=version)

    def leave(
        self, context: RequestContext, request: LeaveGroupRequest
    ) -> Result[LeaveGroupResponse]:
        """LeaveGroup."""
        version = context.api_version
        if self._is_consumer(request.group_id):
            return self.consumer.classic_leave(context, request, version=version)
        return self.classic.leave(context, request, version=version)

    def consumer_heartbeat(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest
    ) -> Result[ConsumerGroupHeartbeatResponse]:
        """ConsumerGroupHeartbeat (KIP-848)."""
        return self.consumer.heartbeat(context, request, context.api_version)

    def _is_consumer(self, group_id: str) -> bool:
        group = self.groups.get(group_id)
        return group is not None and group.GROUP_TYPE == _CONSUMER

    # Life

    def replay(self, record: CoordinatorRecord, *, offset: int, producer_id: int = -1) -> None:
        """Take over what a record says, from the log or just appended."""
        record_type = declaration(type(record.key)).record_type
        if record_type == _CLASSIC_GROUP:
            self.classic.replay_metadata(record.key, record.value)
        else:
            self.consumer.replay(record.key, record.value)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """A marker of that producer: what it has written since its last one counts, or never."""

    def loaded(self) -> None:
        """The log was replayed: begin what runs by the clock."""
        self.classic.loaded()
        self.consumer.loaded()

    def unloaded(self, error: KafkaError) -> None:
        """The shard ends here: answer whoever is parked."""
        self.classic.unloaded()
        self.consumer.unloaded()


class _Absent:
    """Stands for a part that is not built yet."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **options: None


def _part(package: str, name: str, *arguments: Any) -> Any:
    module_name = f"embedlog.coordinator.group.{package}.{package}_groups"
    try:
        module = __import__(module_name, fromlist=(name,))
    except ModuleNotFoundError:
        return _Absent()
    return getattr(module, name)(*arguments)
