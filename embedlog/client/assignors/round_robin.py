"""roundrobin: deals all partitions to the members one by one, in turn."""

from __future__ import annotations

from embedlog.client.assignors.assignor import Assignment, Assignor, in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.client.assignors.assignor import GroupTopics, MemberSubscription
    from embedlog.common import TopicPartition


class RoundRobinAssignor(Assignor):
    """Deals in turn. With equal subscriptions, the shares differ by one partition at most."""

    name = "roundrobin"

    def assign(
        self, topics: GroupTopics, members: Mapping[str, MemberSubscription]
    ) -> dict[str, Assignment]:
        dealt = assign_round_robin(topics, members)
        return {member_id: Assignment(partitions) for member_id, partitions in dealt.items()}


def assign_round_robin(
    topics: GroupTopics, members: Mapping[str, MemberSubscription]
) -> dict[str, list[TopicPartition]]:
    """Deal the partitions in turn, and skip members that do not subscribe to the topic."""
    dealt: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
    order = in_order(members)
    asked = {member_id: frozenset(members[member_id].topics) for member_id in order}
    turn = 0
    for partition in topics.partitions_of(topic for each in asked.values() for topic in each):
        while partition.topic not in asked[order[turn % len(order)]]:
            turn += 1
        dealt[order[turn % len(order)]].append(partition)
        turn += 1
    return dealt
