"""range: cuts the partitions of each topic into runs of successive numbers, one for each member.

If members subscribe to the same topics, a member gets the same partition numbers of each topic:
joins of topics need this. If brokers and members have racks, and not every rack has every
partition, a partition goes to a member in a rack of its replicas if possible (KIP-881).
"""

from __future__ import annotations

from embedlog.client.assignors.assignor import Assignment, Assignor, members_by_topic
from embedlog.client.assignors.racks import member_racks, racks_matter
from embedlog.common import TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from embedlog.client.assignors.assignor import GroupTopics, MemberSubscription, Racks


class RangeAssignor(Assignor):
    """Gives each member a run of each topic's partitions. First in Kafka's default list."""

    name = "range"

    def assign(
        self, topics: GroupTopics, members: Mapping[str, MemberSubscription]
    ) -> dict[str, Assignment]:
        ranges = assign_ranges(topics, members)
        return {member_id: Assignment(partitions) for member_id, partitions in ranges.items()}


def assign_ranges(
    topics: GroupTopics, members: Mapping[str, MemberSubscription]
) -> dict[str, list[TopicPartition]]:
    """Return the partitions of each member, sorted by topic and number."""
    racks = member_racks(members)
    shares = [
        _TopicShare(topic, topics.partition_counts[topic], asking)
        for topic, asking in members_by_topic(members).items()
        if topics.partition_counts.get(topic, 0)
    ]
    if racks and topics.racks:
        _assign_by_rack(shares, racks, topics.racks)
    assigned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
    for share in shares:
        share.fill(lambda _member_id, _partition: True)
        for member_id, partitions in share.assigned.items():
            assigned[member_id] += partitions
    return {member_id: sorted(partitions) for member_id, partitions in assigned.items()}


class _TopicShare:
    """One topic: the partitions assigned so far, and the room that each member has left."""

    def __init__(self, topic: str, count: int, members: list[str]) -> None:
        self.topic = topic
        self.members = members
        self.count = count
        self.left = [TopicPartition(topic, number) for number in range(count)]
        self.assigned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
        self._quota, self._larger_left = divmod(count, len(members))

    def room(self, member_id: str) -> int:
        """Return how many more partitions the member may have."""
        quota = self._quota + (self._larger_left > 0)
        return max(quota - len(self.assigned[member_id]), 0)

    def give(self, member_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Assign unassigned partitions to a member. Requires: the member has room for them."""
        mine = self.assigned[member_id]
        given = set(partitions)
        mine += sorted(given)
        self.left = [each for each in self.left if each not in given]
        self._larger_left -= len(mine) > self._quota >= len(mine) - len(given)

    def fill(self, may_have: Callable[[str, TopicPartition], bool]) -> None:
        """Give each member the first unassigned partitions that it may have, up to its room."""
        for member_id in self.members:
            suited = [each for each in self.left if may_have(member_id, each)]
            chosen = suited[: self.room(member_id)]
            if chosen:
                self.give(member_id, chosen)


def _assign_by_rack(shares: list[_TopicShare], homes: Mapping[str, str], racks: Racks) -> None:
    """Give members partitions with a replica in their rack; a member without a rack may have any.

    Topics with the same members and the same partition count are assigned together, even if racks
    matter for only one of them. Any other topic is assigned here only if racks matter for it.
    """

    def matters(share: _TopicShare) -> bool:
        partition_racks = [racks.get(each, frozenset()) for each in share.left]
        asking = {homes[each] for each in share.members if each in homes}
        return racks_matter(asking, partition_racks)

    needing = {share.topic for share in shares if matters(share)}
    if not needing:
        return

    def is_near(member_id: str, partition: TopicPartition) -> bool:
        rack = homes.get(member_id)
        return rack is None or rack in racks.get(partition, ())

    together: dict[tuple[tuple[str, ...], int], list[_TopicShare]] = {}
    for share in shares:
        together.setdefault((tuple(share.members), share.count), []).append(share)
    for (members, count), alike in together.items():
        if len(alike) == 1:
            if alike[0].topic in needing:
                alike[0].fill(is_near)
        else:
            _assign_rows(alike, members, count, is_near)


def _assign_rows(
    alike: list[_TopicShare],
    members: tuple[str, ...],
    count: int,
    is_near: Callable[[str, TopicPartition], bool],
) -> None:
    """Assign topics with the same members and partition count, `count`.

    Partition n of all these topics goes to the first member that has room in each topic and is near
    each of the partitions. Without such a member, these partitions stay unassigned.
    """
    for number in range(count):
        row = [(share, TopicPartition(share.topic, number)) for share in alike]
        for member_id in members:
            if all(share.room(member_id) and is_near(member_id, each) for share, each in row):
                for share, each in row:
                    share.give(member_id, [each])
                break
