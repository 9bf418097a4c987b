"""`StreamsGroups`: the streams groups of one shard, the shard's entry point."""

from __future__ import annotations

from embedlog.coordinator.group.streams.facts import NO_EPOCH
from embedlog.coordinator.group.streams.membership import Membership
from embedlog.coordinator.group.streams.replay import replay
from embedlog.coordinator.group.streams.stored_descriptions import StoredDescriptions
from embedlog.coordinator.group.streams.streams_group import StreamsGroup
from embedlog.coordinator.group.streams.streams_heartbeats import StreamsHeartbeats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from embedlog.coordinator.group.group import Group
    from embedlog.coordinator.result import Result
    from embedlog.coordinator.shard_context import ShardContext
    from wire.schemas.streams_group_describe import DescribedGroup


class StreamsGroups:
    """The part of a shard for streams groups. Requires for every method: the shard's lock.

    `groups` is the shard's dictionary of groups of every type.
    """

    def __init__(self, context: ShardContext, groups: dict[str, Group]) -> None:
        self._context = context
        self._groups = groups
        self._membership = Membership(context, groups)
        self.heartbeats = StreamsHeartbeats(self._membership)
        self.descriptions = StoredDescriptions(self._membership)

    def describe(self, group_id: str) -> tuple[DescribedGroup, int]:
        """StreamsGroupDescribe of one group, and the epoch of its stored description.

        Raises GroupIdNotFound for any other group.
        """
        from embedlog.coordinator.group.streams.description import described

        group = self._membership.group(group_id)
        return described(group), group.stored_description_epoch

    def is_described(self, group: Group) -> bool:
        """Return whether a description of the group is stored, or may be."""
        return isinstance(group, StreamsGroup) and group.stored_description_epoch != NO_EPOCH

    def keep_alive(self, is_alive: Callable[[str, str, int], bool]) -> list[int]:
        """Restart the timers of the chosen members: see `MemberTimers`."""
        return self._membership.timers.keep_alive(is_alive)

    def expire_sessions(self, is_chosen: Callable[[str, str], bool]) -> int:
        """End the sessions of the chosen members now; return the number of sessions."""
        return self._membership.timers.expire_sessions(is_chosen)

    # The shard's life

    def replay(self, key: Any, value: Any) -> None:
        replay(self._groups, key, value, self._context.metadata)

    def loaded(self) -> None:
        self._membership.timers.loaded()

    def opened(self) -> Iterator[Result[Any]]:
        return self._membership.opened()
