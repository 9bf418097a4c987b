"""`ShareGroup`: the state of one share group (KIP-932).

group epoch     rises with every change of members, subscriptions, subscribed metadata, or
                initialised partitions
target epoch    the group epoch of the target assignment
member epoch    the target epoch that a member has reached with its last heartbeat

Empty    no members
Stable   any members: a member needs only one heartbeat for its target
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.group.modern_group import ModernGroup
from embedlog.coordinator.group.share.member import NO_PARTITIONS, ShareMember
from embedlog.coordinator.group.share.state_topics import StateTopics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.group.assignors.spec import Partitions
    from embedlog.coordinator.group.group import ExpiryBase
    from embedlog.coordinator.result import CoordinatorRecord

EMPTY = "Empty"
STABLE = "Stable"


class ShareGroup(ModernGroup["ShareMember", "Partitions"]):
    """One group. Only replay changes it, except for the last attributes of `__init__`."""

    GROUP_TYPE = "share"

    expires = False

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.names: dict[str, int] = {}
        """Topic name -> number of members that subscribe to it."""
        self.state_topics = StateTopics()
        # These are not stored.
        self.begun_ms: dict[bytes, int] = {}
        """Topic id -> monotonic time at which its initializing partitions were begun."""
        self.complete_for: tuple[MetadataImage, StateTopics, int] | None = None
        """Metadata, share partitions and target epoch in which no share partition was missing."""

    # State

    @property
    def protocol_type(self) -> str:
        return self.GROUP_TYPE

    def state_name(self) -> str:
        return STABLE if self.members else EMPTY

    def target_of(self, member_id: str) -> Partitions:
        return self.target.get(member_id, NO_PARTITIONS)

    def topics_after(
        self, *, without: Iterable[ShareMember] = (), added: ShareMember | None = None
    ) -> set[str]:
        """Return the subscribed topics after members have left and `added` has joined."""
        counts = dict(self.names)
        for member in without:
            for name in member.topics:
                counts[name] -= 1
        topics = {name for name, count in counts.items() if count}
        return topics if added is None else topics | added.topics

    # As any group

    def validate_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        api_version: int,
        partitions: Iterable[tuple[bytes, int]] = (),
    ) -> None:
        """Refuse every commit: share groups have no committed offsets."""
        raise self._no_offsets()

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Allow every fetch, which then finds nothing."""

    def validate_offset_delete(self) -> None:
        raise self._no_offsets()

    def validate_delete(self) -> None:
        if self.members:
            raise errors.NonEmptyGroup("The group is not empty.")

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.names

    def offset_expiry_base(self) -> ExpiryBase | None:
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        from embedlog.coordinator.group.share import member_records

        return member_records.without_group(self.group_id, self.members)

    def _no_offsets(self) -> Exception:
        return errors.GroupIdNotFound(f"Group {self.group_id} is a share group.")

    # Replay

    def put_member(self, member: ShareMember) -> None:
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if before is not None:
            if before.topics == member.topics:
                return
            self._uncount(before)
        self.complete_for = None
        for name in member.topics:
            self.names[name] = self.names.get(name, 0) + 1

    def drop_member(self, member_id: str) -> None:
        self.target.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is not None:
            self._uncount(member)

    def _uncount(self, member: ShareMember) -> None:
        self.complete_for = None
        for name in member.topics:
            count = self.names[name] - 1
            if count:
                self.names[name] = count
            else:
                del self.names[name]
