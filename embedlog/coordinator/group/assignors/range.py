"""The range assignor: every subscriber gets one contiguous range of each topic, in member order.

Members with an instance id come first, ordered by it; the others follow, ordered by member id. With
equal subscriptions and partition counts, a member gets the same numbers of each topic
(co-partitioning). As in Kafka the assignor ignores the members' last assignment: only the order of
members keeps partitions with their members.

    t0, t1 with 3 partitions, members a, b:    a: t0-0 t0-1 t1-0 t1-1    b: t0-2 t1-2
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.coordinator.group.assignors.spec import MemberSpec, Partitions


def assign(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> dict[str, Partitions]:
    """Assign ranges. O(members * log(members) + subscriptions + partitions)."""
    target: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in members}
    subscribers: dict[bytes, list[str]] = {}
    for member_id in sorted(members, key=lambda member_id: _rank(member_id, members[member_id])):
        for topic_id in members[member_id].topics:
            subscribers.setdefault(topic_id, []).append(member_id)
    for topic_id, count in partition_counts.items():
        readers = subscribers.get(topic_id)
        if readers is None:
            continue
        quota, extra = divmod(count, len(readers))
        start = 0
        for index, member_id in enumerate(readers):
            end = start + quota + (index < extra)
            if start == end:
                break
            target[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return dict(target)


def _rank(member_id: str, member: MemberSpec) -> tuple[bool, str]:
    if member.instance_id is not None:
        return False, member.instance_id
    return True, member_id
