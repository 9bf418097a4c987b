"""`ConsumerGroups`: the consumer groups of one shard, the shard's entry point."""

from __future__ import annotations

from embedlog.coordinator.group import assignors
from embedlog.coordinator.group.consumer.classic_members import ClassicMembers
from embedlog.coordinator.group.consumer.consumer_heartbeats import ConsumerHeartbeats
from embedlog.coordinator.group.consumer.membership import Membership
from embedlog.coordinator.group.consumer.migration import Migration
from embedlog.coordinator.group.consumer.regex_matching import RegexMatching
from embedlog.coordinator.group.consumer.replay import replay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from embedlog.coordinator.group.classic.classic_groups import ClassicGroups
    from embedlog.coordinator.group.group import Group
    from embedlog.coordinator.result import Result
    from embedlog.coordinator.shard_context import ShardContext
    from wire.schemas.consumer_group_describe import DescribedGroup


class ConsumerGroups:
    """The part of a shard for consumer groups. Requires for every method: the shard's lock.

    `groups` is the shard's dictionary of groups of every type. `heartbeats` answers members of the
    consumer protocol, `classic_members` members of the classic one.
    """

    def __init__(
        self, context: ShardContext, groups: dict[str, Group], classic: ClassicGroups
    ) -> None:
        self._context = context
        self._groups = groups
        self._membership = Membership(context, groups)
        migration = Migration(self._membership, classic)
        self._membership.downgrade = migration.downgrade_leaving
        self.heartbeats = ConsumerHeartbeats(
            self._membership, migration, RegexMatching(context, groups)
        )
        self.classic_members = ClassicMembers(self._membership, migration)

    def describe(self, group_id: str) -> DescribedGroup:
        """ConsumerGroupDescribe of one group. Raises GroupIdNotFound for any other group."""
        from embedlog.coordinator.group.consumer.description import described

        names = assignors.configured(self._context.config.group_consumer_assignors)
        return described(self._membership.group(group_id), self._context.metadata(), names[0])

    def keep_alive(self, is_alive: Callable[[str, str, int], bool]) -> list[int]:
        """Restart the timers of the chosen members: see `MemberTimers`."""
        return self._membership.timers.keep_alive(is_alive)

    def expire_sessions(self, is_chosen: Callable[[str, str], bool]) -> int:
        """End the sessions of the chosen members now; return the number of sessions."""
        return self._membership.timers.expire_sessions(is_chosen)

    # The shard's life

    def replay(self, key: Any, value: Any) -> None:
        replay(self._groups, key, value)

    def loaded(self) -> None:
        self._membership.timers.loaded()

    def opened(self) -> Iterator[Result[Any]]:
        return self._membership.opened()
