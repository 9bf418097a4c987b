"""Sticky balance for members with equal subscriptions: keep partitions that fit, deal the rest.

The quota is the number of partitions divided by the number of members, rounded down. Each member
gets the quota, and some members get one more. A partition goes to a member near it if possible. The
steps are Kafka's, so that the result does not depend on which client is the leader.
"""

from __future__ import annotations

from embedlog.common import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from embedlog.client.assignors.racks import Nearness
    from embedlog.common import TopicPartition

    Shares = dict[str, list[TopicPartition]]


def share_equally(
    partitions: Iterable[TopicPartition],
    held: Mapping[str, Iterable[TopicPartition]],
    near: Nearness,
) -> Shares:
    """Return the new partitions of each member. `held` has each member's present partitions."""
    free = list(partitions)
    dealing = _Dealing(len(free), sorted(held))
    for member_id in sorted(held):
        dealing.keep(
            member_id, [each for each in held[member_id] if near.may_keep(member_id, each)]
        )
    kept = {partition for mine in dealing.shares.values() for partition in mine}
    free = near.hardest_first(each for each in free if each not in kept)
    if near.matters:
        free = dealing.deal_near(free, near)
    dealing.deal(free)
    return dealing.shares


class _Dealing:
    """Deals partitions to members. Has the shares so far, and the members that can get more."""

    def __init__(self, partition_count: int, member_ids: list[str]) -> None:
        self.shares: Shares = {member_id: [] for member_id in member_ids}
        self._quota, self._larger_left = divmod(partition_count, len(member_ids))
        self._hungry: list[str] = []
        """Members below the quota."""
        self._full: deque[str] = deque()
        """Members with exactly the quota; empty once none of them can get one more partition."""

    def keep(self, member_id: str, mine: list[TopicPartition]) -> None:
        """Let a member keep as many of `mine` as fit. Call it for members in order of their ids."""
        mine.sort(key=lambda each: (each.partition, each.topic))
        size = self._quota
        if len(mine) < size:
            self._hungry.append(member_id)
        elif self._larger_left and len(mine) > size:
            self._count_larger()
            size += 1
        elif self._larger_left:
            self._full.append(member_id)
        self.shares[member_id] = mine[:size]

    def deal_near(self, free: Iterable[TopicPartition], near: Nearness) -> list[TopicPartition]:
        """Give partitions to members near them, in turn; return the partitions that are left."""
        left: list[TopicPartition] = []
        turn = 0
        for partition in free:
            index = near.next_near(partition, self._hungry, turn)
            if index is not None:
                turn = self._feed(index, partition)
            elif (index := near.next_near(partition, list(self._full))) is not None:
                self.shares[self._full[index]].append(partition)
                del self._full[index]
                self._count_larger()
            else:
                left.append(partition)
        return left

    def deal(self, free: Iterable[TopicPartition]) -> None:
        """Give every partition to a member. Members below the quota come first, in turn.

        The rest goes to members with exactly the quota, one partition each.
        """
        turn = 0
        for partition in free:
            if self._hungry:
                turn = self._feed(turn, partition)
            else:
                self.shares[self._full.popleft()].append(partition)

    def _feed(self, index: int, partition: TopicPartition) -> int:
        """Give a partition to member `index` of `_hungry`; return the next member's index."""
        member_id = self._hungry[index]
        self.shares[member_id].append(partition)
        if len(self.shares[member_id]) < self._quota:
            index += 1
        else:
            del self._hungry[index]
            if self._larger_left:
                self._full.append(member_id)
        return index % len(self._hungry) if self._hungry else 0

    def _count_larger(self) -> None:
        self._larger_left -= 1
        if not self._larger_left:
            self._full.clear()
