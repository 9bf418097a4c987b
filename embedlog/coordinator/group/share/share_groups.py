"""`ShareGroups`: the share groups of one shard, the shard's entry point."""

from __future__ import annotations

from embedlog.coordinator.group.share import member_records
from embedlog.coordinator.group.share.deletion import Deletion
from embedlog.coordinator.group.share.initialization import Initialization
from embedlog.coordinator.group.share.membership import Membership
from embedlog.coordinator.group.share.offsets import OffsetChanges
from embedlog.coordinator.group.share.replay import replay
from embedlog.coordinator.group.share.share_group import ShareGroup
from embedlog.coordinator.group.share.share_heartbeats import ShareHeartbeats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Set
    from typing import Any, TypeVar

    from embedlog.coordinator.group.group import Group
    from embedlog.coordinator.result import CoordinatorRecord, Result
    from embedlog.coordinator.shard_context import ShardContext
    from embedlog.coordinator.share.state_client import ShareStateClient
    from wire.schemas.share_group_describe import DescribedGroup

    R = TypeVar("R")


class ShareGroups:
    """The part of a shard for share groups. Requires for every method: the shard's lock.

    `groups` is the shard's dictionary of groups of every type. `state` returns the share
    coordinators; it is called without the lock, for the first change of their state.
    """

    def __init__(
        self, context: ShardContext, groups: dict[str, Group], state: Callable[[], ShareStateClient]
    ) -> None:
        self._context = context
        self._groups = groups
        self._membership = Membership(context, groups)
        initialization = Initialization(self._membership, state)
        self._deletion = Deletion(self._membership, state)
        self.heartbeats = ShareHeartbeats(self._membership, initialization)
        self.offsets = OffsetChanges(self._membership, initialization, self._deletion)

    def describe(self, group_id: str) -> DescribedGroup:
        """ShareGroupDescribe of one group. Raises GroupIdNotFound for any other group."""
        from embedlog.coordinator.group.share.description import described

        return described(self._membership.group(group_id), self._context.metadata())

    def initialized(self, group_id: str) -> list[tuple[str, list[int]]]:
        """Return the initialised partitions of a group by topic name; none for any other group."""
        group = self._groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return []
        known = self._context.metadata().topics_by_id
        return [
            (name, sorted(numbers))
            for topic_id, (name, numbers) in group.state_topics.initialized.items()
            if topic_id in known
        ]

    def delete_group(self, group: Group, response: R) -> Result[R]:
        """DeleteGroups of one share group: first its state, then the group."""
        assert isinstance(group, ShareGroup), group
        return self._deletion.delete_group(group, response)

    def forget_topics(self, topic_ids: Set[bytes]) -> Iterator[CoordinatorRecord]:
        """Make the records that drop deleted topics; their state goes without being asked for."""
        for group in self._membership.all_groups():
            left = group.state_topics.without(topic_ids)
            if left != group.state_topics:
                yield member_records.state_topics(group.group_id, left)

    def keep_alive(self, is_alive: Callable[[str, str, int], bool]) -> list[int]:
        """Restart the sessions of the chosen members: see `Membership`."""
        return self._membership.keep_alive(is_alive)

    def expire_sessions(self, is_chosen: Callable[[str, str], bool]) -> int:
        """End the sessions of the chosen members now; return the number of sessions."""
        return self._membership.expire_sessions(is_chosen)

    # The shard's life

    def replay(self, key: Any, value: Any) -> None:
        replay(self._groups, key, value, self._context.monotonic_ms())

    def loaded(self) -> None:
        self._membership.loaded()

    def opened(self) -> Iterator[Result[Any]]:
        return self._membership.opened()
