"""What an assignor is given and what it gives: it decides which member reads which partition.

The leader of a classic group calls the assignor that all members know; the broker only carries
what it says. An assignor of your own is an object with the methods of `Assignor`, given in
partition.assignment.strategy beside or instead of the names range, roundrobin, sticky and
cooperative-sticky.
"""

from __future__ import annotations

from embedlog.common import TopicPartition

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Racks = Mapping[TopicPartition, frozenset[str]]

EAGER = 0
"""Every member gives up all partitions before it joins again."""
COOPERATIVE = 1
"""Members give up only what goes to another member, and join once more then (KIP-429)."""


class MemberSubscription:
    """What one member asks for, and what it holds. Read only."""

    __slots__ = (
        "generation_id",
        "group_instance_id",
        "owned_partitions",
        "rack_id",
        "topics",
        "user_data",
    )

    def __init__(
        self,
        topics: Iterable[str],
        *,
        user_data: bytes | None = None,
        owned_partitions: Iterable[TopicPartition] = (),
        generation_id: int = -1,
        rack_id: str | None = None,
        group_instance_id: str | None = None,
    ) -> None:
        self.topics = list(topics)
        self.user_data = user_data
        self.owned_partitions = list(owned_partitions)
        self.generation_id = generation_id
        """The generation that the owned partitions are of; -1 when unknown."""
        self.rack_id = rack_id
        self.group_instance_id = group_instance_id

    def __repr__(self) -> str:
        return f"MemberSubscription({self.topics}, owned {self.owned_partitions})"


class Assignment:
    """The partitions of one member, and a word of the assignor to itself over there."""

    __slots__ = ("partitions", "user_data")

    def __init__(
        self, partitions: Iterable[TopicPartition] = (), user_data: bytes | None = None
    ) -> None:
        self.partitions = list(partitions)
        self.user_data = user_data

    def __repr__(self) -> str:
        return f"Assignment({', '.join(map(str, self.partitions))})"


class GroupTopics:
    """The topics that members of the group ask for, as far as they exist."""

    __slots__ = ("partition_counts", "racks")

    def __init__(self, partition_counts: Mapping[str, int], racks: Racks | None = None) -> None:
        self.partition_counts = dict(partition_counts)
        self.racks: Racks = racks or {}
        """The racks of the replicas of a partition; empty when brokers tell none."""

    def partitions_of(self, topics: Iterable[str]) -> list[TopicPartition]:
        """All partitions of those of the topics that exist, by topic and number."""
        counts = self.partition_counts
        return [
            TopicPartition(topic, number)
            for topic in sorted(set(topics))
            for number in range(counts.get(topic, 0))
        ]


class Assignor:
    """Base of the assignors; what it does is what one of your own may leave out."""

    name = ""
    """How the members call it; they must have one name in common."""
    protocols: tuple[int, ...] = (EAGER,)
    """The ways to rebalance it works with. A consumer uses the highest that all of its know."""

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """What this member tells the assignor of the leader."""
        return None

    def assign(
        self, topics: GroupTopics, members: Mapping[str, MemberSubscription]
    ) -> dict[str, Assignment]:
        """The partitions of every member, by member id. Only the leader's assignor is asked."""
        raise AssertionError(f"{type(self).__name__} does not say who gets what")

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """This member was given `assignment`."""


def members_by_topic(members: Mapping[str, MemberSubscription]) -> dict[str, list[str]]:
    """The members that ask for each topic, in the order in which partitions are dealt.

    Static members come first, by instance id, so that their share outlives a restart; then the
    others by member id.
    """
    by_topic: dict[str, list[str]] = {}
    for member_id in in_order(members):
        for topic in dict.fromkeys(members[member_id].topics):
            by_topic.setdefault(topic, []).append(member_id)
    return by_topic


def in_order(members: Mapping[str, MemberSubscription]) -> list[str]:
    """The member ids, static members first."""

    def rank(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].group_instance_id
        return (instance_id is None, member_id if instance_id is None else instance_id)

    return sorted(members, key=rank)
