"""Sticky balance for members with different subscriptions.

Members keep partitions, then get the free partitions, then the shares are made more even.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from embedlog.client.assignors.racks import Nearness
    from embedlog.common import TopicPartition

    Shares = dict[str, list[TopicPartition]]


def balance(
    partitions: list[TopicPartition],
    asked: Mapping[str, frozenset[str]],
    held: Shares,
    near: Nearness,
) -> Shares:
    """Assign `partitions` so that no single move makes the shares more even.

    `asked` has the subscribed topics, and `held` the present partitions, of each member. A member
    keeps its present partitions, unless it is not near them (no replica is in its rack) or a move
    makes the shares more even. Partitions that a member has just got move first. A free partition
    goes to a subscribed member near it, or else to another subscribed member.
    """
    shares = {
        member_id: [each for each in mine if near.may_keep(member_id, each)]
        for member_id, mine in held.items()
    }
    readers: dict[str, list[str]] = {}
    for member_id in sorted(asked):
        for topic in asked[member_id]:
            readers.setdefault(topic, []).append(member_id)
    kept = {partition for mine in shares.values() for partition in mine}
    # Partitions with few subscribed members come first, while the shares are small.
    free = [partition for partition in partitions if partition not in kept]
    free.sort(key=lambda partition: (len(readers[partition.topic]), partition))
    if near.matters:
        free = _deal(near.hardest_first(free), shares, readers, near.may_keep)
    _deal(free, shares, readers, lambda _member_id, _partition: True)
    _even_out(shares, readers, kept)
    return shares


def _deal(
    free: list[TopicPartition],
    shares: Shares,
    readers: Mapping[str, list[str]],
    may_have: Callable[[str, TopicPartition], bool],
) -> list[TopicPartition]:
    """Give each partition to a member that may have it: the one with the smallest share.

    Returns the partitions that no member may have.
    """
    left: list[TopicPartition] = []
    for partition in free:
        suited = [each for each in readers[partition.topic] if may_have(each, partition)]
        if suited:
            shares[min(suited, key=lambda each: (len(shares[each]), each))].append(partition)
        else:
            left.append(partition)
    return left


def _even_out(shares: Shares, readers: Mapping[str, list[str]], kept: set[TopicPartition]) -> None:
    """Move partitions to members with at least two partitions fewer, while there are any.

    Every move lowers the sum of the squares of the shares' sizes, so the loop ends.
    """
    moved = True
    while moved:
        moved = False
        for giver in sorted(shares, key=lambda each: (-len(shares[each]), each)):
            for partition in sorted(shares[giver], key=lambda each: (each in kept, each)):
                taker = min(readers[partition.topic], key=lambda each: (len(shares[each]), each))
                if len(shares[taker]) + 1 < len(shares[giver]):
                    shares[giver].remove(partition)
                    shares[taker].append(partition)
                    moved = True
