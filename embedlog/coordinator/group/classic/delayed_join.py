"""A rebalance that waits for the members to join."""

from __future__ import annotations

from embedlog.coordinator.group.classic.group_operation import GroupOperation
from embedlog.coordinator.result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.classic.classic_group import ClassicGroup
    from embedlog.coordinator.group.classic.rebalances import Rebalances
    from embedlog.coordinator.shard_context import ShardContext


class DelayedJoin(GroupOperation):
    """Waits until every member has a parked join, at most for the group's rebalance time-out."""

    __slots__ = ("_rebalances", "group")

    def __init__(
        self, context: ShardContext, rebalances: Rebalances, group: ClassicGroup, delay_ms: int
    ) -> None:
        super().__init__(context, context.join_purgatory, (group.group_id, "join"), delay_ms)
        self._rebalances = rebalances
        self.group = group

    def time_is_up(self) -> Result[None]:
        """Go on with those who are there."""
        return self._rebalances.complete_join(self.group)


class InitialDelayedJoin(DelayedJoin):
    """The first rebalance of an empty group: waits for `delay_ms` whoever is there, and again when
    somebody came meanwhile, until `remaining_ms` is used up. So many members that start together
    make one generation, not one each.
    """

    __slots__ = ("_remaining_ms",)

    def __init__(
        self,
        context: ShardContext,
        rebalances: Rebalances,
        group: ClassicGroup,
        delay_ms: int,
        remaining_ms: int,
    ) -> None:
        super().__init__(context, rebalances, group, delay_ms)
        self._remaining_ms = remaining_ms

    def time_is_up(self) -> Result[None]:
        """Wait another step, or go on."""
        group = self.group
        if not group.member_was_added or self._remaining_ms == 0:
            return super().time_is_up()
        self._rebalances.await_more_members(group, self._remaining_ms)
        return Result()
