"""Racks: which member of a group is near which partition (KIP-881)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from embedlog.client.assignors.assignor import MemberSubscription, Racks
    from embedlog.common import TopicPartition


def racks_matter(
    member_racks: Collection[str], partition_racks: Collection[Collection[str]]
) -> bool:
    """Is a member in the rack of some replica, while some partition is not in all racks?"""
    everywhere = {rack for racks in partition_racks for rack in racks}
    if everywhere.isdisjoint(member_racks):
        return False
    return any(set(racks) != everywhere for racks in partition_racks)


def member_racks(members: Mapping[str, MemberSubscription]) -> dict[str, str]:
    """The racks of those members that say one."""
    return {member_id: each.rack_id for member_id, each in members.items() if each.rack_id}


class Nearness:
    """The distances between all members and all partitions; where they do not matter, none."""

    def __init__(
        self,
        members: Mapping[str, MemberSubscription],
        partitions: Iterable[TopicPartition],
        racks: Racks,
    ) -> None:
        self._of_member = member_racks(members)
        self._of_partition = {each: racks.get(each, frozenset()) for each in partitions}
        self.matters = racks_matter(self._of_member.values(), self._of_partition.values())
        """Is there any use in asking the other questions?"""

    def is_near(self, member_id: str, partition: TopicPartition) -> bool:
        """Is a replica in the member's own rack?"""
        return self._of_member.get(member_id) in self._of_partition[partition]

    def may_keep(self, member_id: str, partition: TopicPartition) -> bool:
        """Is the member near, or at home nowhere?"""
        return (
            not self.matters
            or member_id not in self._of_member
            or self.is_near(member_id, partition)
        )

    def hardest_first(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those that few members are near come first; otherwise the order stays."""
        if not self.matters:
            return list(partitions)
        counts: dict[str, int] = {}
        for rack in self._of_member.values():
            counts[rack] = counts.get(rack, 0) + 1
        return sorted(
            partitions,
            key=lambda each: sum(counts.get(rack, 0) for rack in self._of_partition[each]),
        )

    def next_near(
        self, partition: TopicPartition, member_ids: Sequence[str], first: int = 0
    ) -> int | None:
        """The index of the first member that is near, looking round from index `first` on."""
        for step in range(len(member_ids)):
            index = (first + step) % len(member_ids)
            if self.is_near(member_ids[index], partition):
                return index
        return None
