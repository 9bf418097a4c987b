"""`Nearness`: which members of a group have a replica of a partition in their rack (KIP-881)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from embedlog.client.assignors.assignor import MemberSubscription, Racks
    from embedlog.common import TopicPartition


def racks_matter(
    member_racks: Collection[str], partition_racks: Collection[Collection[str]]
) -> bool:
    """Whether racks can influence the assignment.

    They can if some member shares a rack with a replica, and some partition is not in all racks.
    """
    everywhere = {rack for racks in partition_racks for rack in racks}
    if everywhere.isdisjoint(member_racks):
        return False
    return any(set(racks) != everywhere for racks in partition_racks)


def member_racks(members: Mapping[str, MemberSubscription]) -> dict[str, str]:
    """Return the racks of the members that have one."""
    return {member_id: each.rack_id for member_id, each in members.items() if each.rack_id}


class Nearness:
    """Finds the members near a partition: members in the rack of one of its replicas."""

    def __init__(
        self,
        members: Mapping[str, MemberSubscription],
        partitions: Iterable[TopicPartition],
        racks: Racks,
    ) -> None:
        self._of_member = member_racks(members)
        self._of_partition = {each: racks.get(each, frozenset()) for each in partitions}
        self.matters = racks_matter(self._of_member.values(), self._of_partition.values())
        """False if all members are equally near. Then callers need not call the other methods."""

    def is_near(self, member_id: str, partition: TopicPartition) -> bool:
        return self._of_member.get(member_id) in self._of_partition[partition]

    def may_keep(self, member_id: str, partition: TopicPartition) -> bool:
        """True if the member is near the partition or has no rack, or if racks do not matter."""
        return (
            not self.matters
            or member_id not in self._of_member
            or self.is_near(member_id, partition)
        )

    def hardest_first(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Sort the partitions by the number of members near them, lowest number first."""
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
        """Return the index of the next member near the partition, cyclically from `first` on."""
        for step in range(len(member_ids)):
            index = (first + step) % len(member_ids)
            if self.is_near(member_ids[index], partition):
                return index
        return None
