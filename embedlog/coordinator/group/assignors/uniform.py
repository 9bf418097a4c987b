"""The uniform assignor: equal numbers of partitions, and as few moves as possible.

With equal subscriptions, numbers differ by at most one. Otherwise the result is balanced in this
sense: no partition could move to a subscriber that has at least two partitions less.

    1. every member keeps its partitions of topics that it still subscribes to
    2. members above their share give the rest up             (equal subscriptions)
    3. free partitions go to the members with the fewest
    4. partitions move from the most to the least loaded      (different subscriptions)
"""

from __future__ import annotations

from heapq import heapify, heapreplace
from itertools import islice

from embedlog.coordinator.group.assignors.spec import MemberSpec, Partitions, is_homogeneous

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    TopicIdPartition = tuple[bytes, int]
    Holdings = dict[str, list[TopicIdPartition]]
    """Member id -> its partitions, oldest first: the newest are given up first."""


def assign(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> dict[str, Partitions]:
    """Assign partitions evenly; see the module."""
    if not members:
        return {}
    holdings = _kept(members, partition_counts)
    if is_homogeneous(members):
        _deal_equal_shares(members, partition_counts, holdings)
    else:
        _deal_to_subscribers(members, partition_counts, holdings)
    return {member_id: _by_topic(held) for member_id, held in holdings.items()}


def _kept(members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]) -> Holdings:
    """Return the partitions that members keep; if two members claim one, the first keeps it."""
    order = {topic_id: index for index, topic_id in enumerate(partition_counts)}
    taken: set[TopicIdPartition] = set()
    holdings: Holdings = {}
    for member_id, member in members.items():
        held: list[TopicIdPartition] = []
        topics = [topic_id for topic_id in member.assigned if topic_id in member.topics]
        topics = [topic_id for topic_id in topics if topic_id in order]
        for topic_id in sorted(topics, key=order.__getitem__):
            count = partition_counts[topic_id]
            held += [(topic_id, p) for p in sorted(member.assigned[topic_id]) if p < count]
        if not taken.isdisjoint(held):
            held = [partition for partition in held if partition not in taken]
        taken.update(held)
        holdings[member_id] = held
    return holdings


def _deal_equal_shares(
    members: Mapping[str, MemberSpec],
    partition_counts: Mapping[bytes, int],
    holdings: Holdings,
) -> None:
    subscribed = next(iter(members.values())).topics
    everything = [
        (topic_id, partition)
        for topic_id, count in partition_counts.items()
        if topic_id in subscribed
        for partition in range(count)
    ]
    share, larger_count = divmod(len(everything), len(members))
    # Some members get one partition more than `share`: first the members that hold more than
    # `share`, because each of them then loses one partition less.
    by_size = sorted(holdings.values(), key=lambda held: len(held) <= share)
    shares = [share + (index < larger_count) for index in range(len(by_size))]
    for held, quota in zip(by_size, shares, strict=True):
        del held[quota:]
    taken = _taken(holdings)
    free = (partition for partition in everything if partition not in taken)
    for held, quota in zip(by_size, shares, strict=True):
        held.extend(islice(free, quota - len(held)))


def _deal_to_subscribers(
    members: Mapping[str, MemberSpec],
    partition_counts: Mapping[bytes, int],
    holdings: Holdings,
) -> None:
    readers: dict[bytes, list[str]] = {}
    for member_id, member in members.items():
        for topic_id in member.topics:
            if topic_id in partition_counts:
                readers.setdefault(topic_id, []).append(member_id)
    # Deal topics with few subscribers first: topics with many subscribers leave more members to
    # choose from.
    topics = [topic_id for topic_id in partition_counts if topic_id in readers]
    topics.sort(key=lambda topic_id: len(readers[topic_id]))
    taken = _taken(holdings)
    for topic_id in topics:
        everything = [(topic_id, partition) for partition in range(partition_counts[topic_id])]
        free = [partition for partition in everything if partition not in taken]
        _give_to_least_loaded(free, readers[topic_id], holdings)
    # Each move lowers the sum of the squared loads by at least 2, so this loop ends.
    moved = True
    while moved:
        moved = False
        for topic_id in topics:
            moved = _level(topic_id, readers[topic_id], holdings) or moved


def _give_to_least_loaded(
    free: Sequence[TopicIdPartition], readers: Sequence[str], holdings: Holdings
) -> None:
    if not free:
        return
    loads = [(len(holdings[name]), rank, name) for rank, name in enumerate(readers)]
    heapify(loads)
    for partition in free:
        load, rank, name = loads[0]
        holdings[name].append(partition)
        heapreplace(loads, (load + 1, rank, name))


def _level(topic_id: bytes, readers: Sequence[str], holdings: Holdings) -> bool:
    """Move partitions of one topic from more to less loaded members; return True if any moved."""
    least = min(readers, key=lambda name: len(holdings[name]))
    if all(len(holdings[name]) <= len(holdings[least]) + 1 for name in readers):
        return False
    moved = False
    owned = {
        name: [partition for partition in holdings[name] if partition[0] == topic_id]
        for name in readers
    }
    while True:
        owners = [name for name in readers if owned[name]]
        most = max(owners, key=lambda name: len(holdings[name]), default=None)
        least = min(readers, key=lambda name: len(holdings[name]))
        if most is None or len(holdings[most]) <= len(holdings[least]) + 1:
            return moved
        partition = owned[most].pop()
        holdings[most].remove(partition)
        holdings[least].append(partition)
        owned[least].append(partition)
        moved = True


def _taken(holdings: Holdings) -> set[TopicIdPartition]:
    return {partition for held in holdings.values() for partition in held}


def _by_topic(held: Sequence[TopicIdPartition]) -> Partitions:
    topics: dict[bytes, set[int]] = {}
    for topic_id, partition in held:
        topics.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in topics.items()}
