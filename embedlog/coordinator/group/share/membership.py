"""Members of share groups: looking them up, removing them, the end of their sessions."""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.group import Group, is_in_process
from embedlog.coordinator.group.metadata_hash import metadata_hash
from embedlog.coordinator.group.share import member_records
from embedlog.coordinator.group.share.share_group import ShareGroup
from embedlog.coordinator.result import CoordinatorRecord, Result
from embedlog.logger import Logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from typing import Any

    from embedlog.coordinator.group.share.member import ShareMember
    from embedlog.coordinator.shard_context import ShardContext

SESSION = "share-session"

_log = Logger("group")


class Membership:
    """The members of one shard's share groups. Requires: the shard's lock."""

    def __init__(self, context: ShardContext, groups: dict[str, Group]) -> None:
        self.context = context
        self.groups = groups

    def group(self, group_id: str, *, absent: str = "Group") -> ShareGroup:
        """Return the share group of that id. Raise GroupIdNotFound for any other id."""
        found = self.groups.get(group_id)
        if found is None:
            raise errors.GroupIdNotFound(f"{absent} {group_id} not found.")
        if not isinstance(found, ShareGroup):
            raise errors.GroupIdNotFound(f"Group {group_id} is not a share group.")
        return found

    def empty_group(self, group_id: str) -> ShareGroup:
        """Return a share group whose offsets may be changed. Raise NonEmptyGroup for members."""
        group = self.group(group_id)
        group.validate_delete()
        return group

    def check_room(self, group: ShareGroup, member_id: str) -> None:
        """Raise GroupMaxSizeReached if the group is full and the member is new."""
        size_max = self.context.config.group_share_max_size
        if member_id not in group.members and len(group.members) >= size_max:
            raise errors.GroupMaxSizeReached(
                f"The share group has reached its maximum capacity of {size_max} members."
            )

    def all_groups(self) -> Iterator[ShareGroup]:
        for group in self.groups.values():
            if isinstance(group, ShareGroup):
                yield group

    # Removing

    def remove(self, group: ShareGroup, members: Sequence[ShareMember]) -> Result[Any]:
        """Remove members that left or whose session ended. An empty group needs no assignment."""
        group_id = group.group_id
        records: list[CoordinatorRecord] = []
        for member in members:
            records += member_records.without_member(group_id, member.member_id)
            self.context.timer.cancel((SESSION, group_id, member.member_id))
        topics = group.topics_after(without=members)
        epoch = group.group_epoch + 1
        hashed = metadata_hash(topics, self.context.metadata())
        records.append(member_records.group_epoch(group_id, epoch, hashed))
        if len(members) == len(group.members):
            records.append(member_records.target_epoch(group_id, epoch, 0))
        return Result(records)

    def opened(self) -> Iterator[Result[Any]]:
        """Remove the members that ran in the former process of this broker: they ended with it."""
        for group in list(self.all_groups()):
            ended = [each for each in group.members.values() if is_in_process(each.client_host)]
            if ended:
                yield self.remove(group, ended)

    # Sessions

    def session_timeout_ms(self, group_id: str) -> int:
        timeout_ms = self.context.group_config(group_id, "share.session.timeout.ms")
        assert isinstance(timeout_ms, int), timeout_ms
        return timeout_ms

    def start_session(self, group_id: str, member_id: str) -> None:
        """Start a session, or start it again: every heartbeat does so."""
        self.context.timer.schedule(
            (SESSION, group_id, member_id),
            self.session_timeout_ms(group_id),
            lambda: self._expired(group_id, member_id),
        )

    def loaded(self) -> None:
        """Start a full session of each loaded member."""
        for group in self.all_groups():
            for member_id in group.members:
                self.start_session(group.group_id, member_id)

    def keep_alive(self, is_alive: Callable[[str, str, int], bool]) -> list[int]:
        """Restart the sessions of the chosen members; return their time-outs.

        `is_alive` gets the group, the member and the session time-out.
        """
        kept: dict[Hashable, int] = {}
        for group in self.all_groups():
            timeout_ms = self.session_timeout_ms(group.group_id)
            for member_id in group.members:
                if is_alive(group.group_id, member_id, timeout_ms):
                    kept[SESSION, group.group_id, member_id] = timeout_ms
        self.context.timer.restart(lambda key: key in kept)
        return list(kept.values())

    def expire_sessions(self, is_chosen: Callable[[str, str], bool]) -> int:
        """End the sessions of the chosen members now; return the number of sessions."""
        chosen: set[Hashable] = {
            (SESSION, group.group_id, member_id)
            for group in self.all_groups()
            for member_id in group.members
            if is_chosen(group.group_id, member_id)
        }
        return self.context.timer.expire(lambda key: key in chosen)

    def _expired(self, group_id: str, member_id: str) -> Result[Any]:
        group = self.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ShareGroup) else None
        if member is None:
            return Result()
        assert isinstance(group, ShareGroup), group
        _log.warning("share group %s fences member %s: its session expired", group_id, member_id)
        return self.remove(group, [member])
