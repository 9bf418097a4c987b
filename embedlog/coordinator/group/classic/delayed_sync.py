"""A new generation that waits for its members to ask for their assignments."""

from __future__ import annotations

from embedlog.coordinator.group.classic.group_operation import GroupOperation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.classic.classic_group import ClassicGroup
    from embedlog.coordinator.group.classic.rebalances import Rebalances
    from embedlog.coordinator.result import Result
    from embedlog.coordinator.shard_context import ShardContext


class DelayedSync(GroupOperation):
    """Waits until every member has sent SyncGroup, at most for the group's rebalance time-out."""

    __slots__ = ("_rebalances", "generation_id", "group")

    def __init__(self, context: ShardContext, rebalances: Rebalances, group: ClassicGroup) -> None:
        delay_ms = group.rebalance_timeout_ms
        super().__init__(context, context.join_purgatory, (group.group_id, "sync"), delay_ms)
        self._rebalances = rebalances
        self.group = group
        self.generation_id = group.generation_id

    def time_is_up(self) -> Result[None]:
        """The members that did not ask are gone."""
        return self._rebalances.sync_timed_out(self)
