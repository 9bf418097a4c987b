"""`StaticMembersGroup`: a group whose members may be static: they have an instance id, and another
member id may take their place (KIP-345).
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import Generic
from embedlog.coordinator.group.modern_group import ModernGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeVar

    class Member(Protocol):
        """As much of a member as its place in the group needs."""

        @property
        def member_id(self) -> str: ...

        @property
        def instance_id(self) -> str | None: ...

    M = TypeVar("M", bound=Member)
    A = TypeVar("A")
else:
    M = A = None


class StaticMembersGroup(ModernGroup["M", "A"], Generic[M, A]):
    """One group of members `M`, some of them static, with target assignments `A`."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.static_members: dict[str, str] = {}
        """Instance id -> member id."""

    def static_member(self, instance_id: str) -> M | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def identified(self, member_id: str, instance_id: str | None) -> M:
        """Return the member with this member id and, unless that is None, this instance id.

        Raises:
            UnknownMemberId: the instance id is unknown, or the member id.
            FencedInstanceId: the instance id belongs to another member id.
        """
        if instance_id is None:
            return self.member(member_id)
        found = self.static_member(instance_id)
        if found is None:
            raise errors.UnknownMemberId(f"Instance id {instance_id} is unknown.")
        if found.member_id != member_id:
            raise errors.FencedInstanceId(
                f"Static member {member_id} with instance id {instance_id} was fenced by member"
                f" {found.member_id}.",
            )
        return found

    def stored_target(self, member: M) -> A | None:
        """Return the member's target, or None; a new static member has its predecessor's."""
        found = self.target.get(member.member_id)
        if found is None and member.instance_id is not None:
            found = self.target.get(self.static_members.get(member.instance_id, ""))
        return found


def unreleased(instance_id: str, member_id: str, owner_id: str) -> errors.KafkaError:
    """Return the error of a member that joins under an instance id that another member has."""
    return errors.UnreleasedInstanceId(
        f"Static member {member_id} with instance id {instance_id} cannot join the group"
        f" because the instance id is owned by {owner_id} member.",
    )
