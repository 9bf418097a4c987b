"""Sticky balance for members that ask for different topics: keep, deal, then even out."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from embedlog.common import TopicPartition

    Shares = dict[str, list[TopicPartition]]


def balance(
    partitions: list[TopicPartition], asked: Mapping[str, frozenset[str]], held: Shares
) -> Shares:
    """Deal `partitions` so that no single move makes the shares more even.

    What is in `held` stays where it is unless moving it makes them more even; what a member got
    only now is moved first.
    """
    shares = {member_id: list(mine) for member_id, mine in held.items()}
    readers: dict[str, list[str]] = {}
    for member_id in sorted(asked):
        for topic in asked[member_id]:
            readers.setdefault(topic, []).append(member_id)
    kept = {partition for mine in shares.values() for partition in mine}
    # A partition that few may read has little choice: it is dealt while the shares are small.
    free = [partition for partition in partitions if partition not in kept]
    free.sort(key=lambda partition: (len(readers[partition.topic]), partition))
    for partition in free:
        chosen = min(readers[partition.topic], key=lambda each: (len(shares[each]), each))
        shares[chosen].append(partition)
    _even_out(shares, readers, kept)
    return shares


def _even_out(shares: Shares, readers: Mapping[str, list[str]], kept: set[TopicPartition]) -> None:
    """Move partitions to members with at least two less, until there are none.

    Every move lowers the sum of the squares of the shares' sizes, so it ends.
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
