"""`ModernGroup`: the base class of the groups whose partitions the coordinator assigns.

    consumer/    ConsumerGroup   each partition has one member (KIP-848)
    share/       ShareGroup      members share partitions (KIP-932)
    streams/     StreamsGroup    each task of an application has one member (KIP-1071)

group epoch     rises with every change that may change the assignment
target epoch    the group epoch of the target assignment
member epoch    the target epoch that a member has reached; each member has its own
"""

from __future__ import annotations

from abc import abstractmethod

from embedlog import errors
from embedlog.common import Generic
from embedlog.coordinator.group.group import Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from embedlog.controller.metadata import MetadataImage

    M = TypeVar("M")
    A = TypeVar("A")
else:
    M = A = None

FIRST_EPOCH = 1
"""Group and target epoch of a new group."""


class ModernGroup(Group, Generic[M, A]):
    """One group of members `M` with target assignments `A`. Only replay changes it, except for the
    attributes that are not stored.
    """

    counted_from: tuple[int, int] | None = None
    """(target epoch, monotonic time of its assignment) if an update had to wait for the next. Not
    stored."""

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = FIRST_EPOCH
        self.target_made_ms = 0
        """Wall time of the last assignment; 0 if the next one may come at once."""
        self.members: dict[str, M] = {}
        self.target: dict[str, A] = {}
        """Member id -> its target partitions or tasks."""
        self.metadata_seen: MetadataImage | None = None
        """The metadata that `metadata_hash` stands for. Not stored."""

    @abstractmethod
    def put_member(self, member: M) -> None:
        """Add a member, or replace the member with its id. Replay calls it."""

    @abstractmethod
    def drop_member(self, member_id: str) -> None:
        """Remove a member and its target. Replay calls it."""

    def is_empty(self) -> bool:
        return not self.members

    def member(self, member_id: str) -> M:
        """Return the member. Raise UnknownMemberId if there is none."""
        found = self.members.get(member_id)
        if found is None:
            raise errors.UnknownMemberId(
                f"Member {member_id} is not a member of group {self.group_id}."
            )
        return found
