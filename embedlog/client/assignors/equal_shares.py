"""Sticky balance for members that all ask for the same: keep what fits, near before far, then deal.

Everybody gets `quota` partitions, and some get one more. This follows Kafka step by step, so that
it does not matter which client is the leader.
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
    """The partitions of each member in `held`, which says what they have now."""
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
    """The shares so far, and who gets more."""

    def __init__(self, partition_count: int, member_ids: list[str]) -> None:
        self.shares: Shares = {member_id: [] for member_id in member_ids}
        self._quota, self._larger_left = divmod(partition_count, len(member_ids))
        self._hungry: list[str] = []
        """Those below the quota."""
        self._full: deque[str] = deque()
        """Those with just the quota, of whom some get one more."""

    def keep(self, member_id: str, mine: list[TopicPartition]) -> None:
        """The member keeps what fits into its share. Requires: in the order of the member ids."""
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
        """Give partitions to members near them, in turn; those left over."""
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
        """Give every partition to somebody: round after round to those below the quota."""
        turn = 0
        for partition in free:
            if self._hungry:
                turn = self._feed(turn, partition)
            else:
                self.shares[self._full.popleft()].append(partition)

    def _feed(self, index: int, partition: TopicPartition) -> int:
        """Give to a hungry member; the index of the one whose turn is next."""
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
