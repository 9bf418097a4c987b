"""`Assignor`: decides which member of a classic group reads which partition.

The leader of the group calls the assignor that all members know; the broker only forwards the
result. To use an assignor of your own, put an object with the methods of `Assignor` into
partition.assignment.strategy, beside or instead of the names range, roundrobin, sticky and
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
"""Members give up only partitions that another member gets, and then join again (KIP-429)."""


class MemberSubscription:
    """The subscribed topics and owned partitions of one member. An assignor must not change it."""

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
        """The generation in which the partitions were assigned; -1 if unknown."""
        self.rack_id = rack_id
        self.group_instance_id = group_instance_id

    def __repr__(self) -> str:
        return f"MemberSubscription({self.topics}, owned {self.owned_partitions})"


class Assignment:
    """The partitions of one member, with user data for the member's own assignor."""

    __slots__ = ("partitions", "user_data")

    def __init__(
        self, partitions: Iterable[TopicPartition] = (), user_data: bytes | None = None
    ) -> None:
        self.partitions = list(partitions)
        self.user_data = user_data

    def __repr__(self) -> str:
        return f"Assignment({', '.join(map(str, self.partitions))})"


class GroupTopics:
    """The topics that the group subscribes to and that exist."""

    __slots__ = ("partition_counts", "racks")

    def __init__(self, partition_counts: Mapping[str, int], racks: Racks | None = None) -> None:
        self.partition_counts = dict(partition_counts)
        self.racks: Racks = racks or {}
        """The racks of each partition's replicas; empty if the brokers have no racks."""

    def partitions_of(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Return all partitions of `topics` that exist, sorted by topic and number."""
        counts = self.partition_counts
        return [
            TopicPartition(topic, number)
            for topic in sorted(set(topics))
            for number in range(counts.get(topic, 0))
        ]


class Assignor:
    """Base of the assignors. An assignor of your own needs only `name` and `assign`."""

    name = ""
    """The assignor's name in JoinGroup. All members must offer at least one common assignor."""
    protocols: tuple[int, ...] = (EAGER,)
    """The rebalance protocols that the assignor supports.

    A consumer uses the highest protocol that all its assignors support."""

    def user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return bytes for the leader's assignor, which gets them in this member's subscription."""
        return None

    def assign(
        self, topics: GroupTopics, members: Mapping[str, MemberSubscription]
    ) -> dict[str, Assignment]:
        """Return every member's partitions, by member id. Only the leader's assignor is called."""
        raise AssertionError(f"{type(self).__name__} has no assign()")

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Called when this member has got its new `assignment`. An assignor may remember it."""


def members_by_topic(members: Mapping[str, MemberSubscription]) -> dict[str, list[str]]:
    """Return the subscribed members of each topic, in the order that assignors use.

    Static members come first, by instance id, so that a restart does not change their share. The
    others follow by member id.
    """
    by_topic: dict[str, list[str]] = {}
    for member_id in in_order(members):
        for topic in dict.fromkeys(members[member_id].topics):
            by_topic.setdefault(topic, []).append(member_id)
    return by_topic


def in_order(members: Mapping[str, MemberSubscription]) -> list[str]:
    """Return the member ids: static members by instance id, then the others by member id."""

    def rank(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].group_instance_id
        return (instance_id is None, member_id if instance_id is None else instance_id)

    return sorted(members, key=rank)
