"""The pause before the first assignment of an empty group, in which more members can join."""

from __future__ import annotations

from embedlog.coordinator.group.assignment_interval import may_assign
from embedlog.coordinator.group.streams.streams_group import StreamsGroup
from embedlog.coordinator.group.streams.target_assignment import make_target_assignment
from embedlog.coordinator.result import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from embedlog.coordinator.group.group import Group
    from embedlog.coordinator.shard_context import ShardContext

_TIMER = "streams-initial-delay"

INTERVAL = "streams.assignment.interval.ms"


class InitialDelay:
    """The delays of one shard's groups. Requires: the shard's lock."""

    def __init__(self, context: ShardContext, groups: Mapping[str, Group]) -> None:
        self._context = context
        self._groups = groups

    def is_active(self, group_id: str) -> bool:
        return self._context.timer.is_scheduled((_TIMER, group_id))

    def begin(self, group_id: str) -> None:
        """Begin the group's delay, unless it is active or the settings want none."""
        delay_ms = self._context.group_config(group_id, "streams.initial.rebalance.delay.ms")
        assert isinstance(delay_ms, int), delay_ms
        if delay_ms and not self.is_active(group_id):
            self._context.timer.schedule(
                (_TIMER, group_id), delay_ms, lambda: self._assign(group_id)
            )

    def _assign(self, group_id: str) -> Result[Any]:
        """Assign the tasks. A group that only had joins so far is assigned by a heartbeat."""
        context, group = self._context, self._groups.get(group_id)
        if (
            not isinstance(group, StreamsGroup)
            or not group.members
            or group.configured is None
            or group.group_epoch <= group.target_epoch
            or not may_assign(group, context, INTERVAL)
        ):
            return Result()
        made = make_target_assignment(
            group,
            group.members,
            group.configured,
            configs=dict(group.assignment_configs),
            epoch=group.group_epoch,
            now_ms=context.wall_ms(),
        )
        return Result(made.records)
