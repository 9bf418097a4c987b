"""The shortest time between two target assignments of a group (KIP-1263)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.coordinator.group.modern_group import ModernGroup
    from embedlog.coordinator.shard_context import ShardContext


def may_assign(group: ModernGroup[Any, Any], context: ShardContext, setting: str) -> bool:
    """Return whether the group's next assignment may be made; `setting` names the interval."""
    interval_ms = context.group_config(group.group_id, setting)
    assert isinstance(interval_ms, int), interval_ms
    waited_ms = context.wall_ms() - group.target_made_ms
    # A clock that was set back must not stop assignments until it catches up.
    if waited_ms >= interval_ms or waited_ms < 0:
        return True
    # Nor a wall clock that stands still in a test: count from here on the monotonic clock.
    counted = group.counted_from
    if counted is None or counted[0] != group.target_epoch:
        counted = group.counted_from = group.target_epoch, context.monotonic_ms() - waited_ms
    return context.monotonic_ms() - counted[1] >= interval_ms
