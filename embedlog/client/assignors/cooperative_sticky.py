"""cooperative-sticky: assigns like sticky, but with cooperative rebalances (KIP-429).

Subscriptions list the owned partitions, so the user data has only the generation:

    generation   int32
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError

from embedlog.client.assignors.assignor import COOPERATIVE, EAGER, Assignment, Assignor
from embedlog.client.assignors.sticky import Claim, assign_sticky

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embedlog.client.assignors.assignor import GroupTopics, MemberSubscription
    from embedlog.common import TopicPartition

_GENERATION = Struct(">i")


class CooperativeStickyAssignor(Assignor):
    """Moves a partition in two rebalances: the first takes it away, the second assigns it."""

    name = "cooperative-sticky"
    protocols = (COOPERATIVE, EAGER)

    def __init__(self) -> None:
        self._generation_id = -1

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        return _GENERATION.pack(self._generation_id)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        self._generation_id = generation_id

    def assign(
        self, topics: GroupTopics, members: Mapping[str, MemberSubscription]
    ) -> dict[str, Assignment]:
        claims = {
            member_id: Claim(member.owned_partitions, _generation_of(member))
            for member_id, member in members.items()
        }
        target = assign_sticky(topics, members, claims)
        handed_out = without_transfers(target, claims)
        return {member_id: Assignment(parts) for member_id, parts in handed_out.items()}


def without_transfers(
    target: Mapping[str, Sequence[TopicPartition]], claims: Mapping[str, Claim]
) -> dict[str, list[TopicPartition]]:
    """Return `target` without the partitions that still belong to another member.

    The other member gives them up and joins again. Then they belong to no member, and the next
    rebalance can assign them.
    """
    held: dict[TopicPartition, set[str]] = {}
    for member_id, claim in claims.items():
        for partition in claim.partitions:
            held.setdefault(partition, set()).add(member_id)
    return {
        member_id: [
            partition
            for partition in partitions
            if partition not in held or member_id in held[partition]
        ]
        for member_id, partitions in target.items()
    }


def _generation_of(member: MemberSubscription) -> int:
    """Return the generation of the owned partitions. Older clients send it as user data."""
    if member.generation_id >= 0 or member.user_data is None:
        return member.generation_id
    try:
        return int(_GENERATION.unpack_from(member.user_data)[0])
    except StructError:
        return -1
