"""`GroupValue`: one group at one moment, for groups of both protocols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from embedlog.common import TopicPartition

STATES = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "Dead",
)
"""The states of groups of both protocols, as Kafka spells them."""
DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member of a group at one moment."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None = None
    """A static member's instance id; None for a dynamic member."""
    assignment: tuple[TopicPartition, ...] = ()
    """The partitions that the coordinator has given to the member."""
    subscription: tuple[str, ...] = ()
    """The topics that the member subscribes to by name."""
    pattern: str = ""
    """The pattern that the member subscribes to; "" for none."""
    epoch: int = -1
    """The epoch that the member has reached; in a classic group the group's generation."""
    target: tuple[TopicPartition, ...] = ()
    """The partitions that the member is to have; in a classic group the same as `assignment`."""
    is_leader: bool = False
    """Whether the member assigns the partitions of a classic group."""

    def names(self) -> tuple[str, ...]:
        """Return the ids by which a test may name the member."""
        static = () if self.instance_id is None else (self.instance_id,)
        return (self.member_id, *static, self.client_id)

    def __str__(self) -> str:
        static = "" if self.instance_id is None else f", static {self.instance_id!r}"
        has = ", ".join(map(shown, self.assignment)) or "nothing"
        lacks = [each for each in self.target if each not in self.assignment]
        missing = f", is to get {', '.join(map(shown, lacks))}" if lacks else ""
        return (
            f"{self.member_id!r} (client {self.client_id!r} at {self.host}{static}): "
            f"has {has}{missing}"
        )


@dataclass(frozen=True, slots=True)
class GroupValue:
    """One group at one moment. A group that does not exist is in the state "Dead"."""

    group_id: str
    state: str = DEAD
    protocol: str = ""
    """"classic", "consumer" (KIP-848), "share" (KIP-932) or "streams" (KIP-1071); "" if the group
    does not exist."""
    assignor: str = ""
    """The assignor in use; "" if there is none yet."""
    epoch: int = -1
    """The generation of a classic group, or the group epoch; -1 if the group does not exist."""
    target_epoch: int = -1
    """The epoch of the target assignment; in a classic group the generation."""
    members: tuple[GroupMember, ...] = ()
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    lags: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The lag of each partition that the group has committed or that a member has."""

    @property
    def exists(self) -> bool:
        return self.state != DEAD

    @property
    def generation(self) -> int:
        """The same as `epoch`."""
        return self.epoch

    @property
    def assigned(self) -> dict[TopicPartition, str]:
        """Each assigned partition, and the id of its member."""
        return {each: member.member_id for member in self.members for each in member.assignment}

    @property
    def lag(self) -> int:
        """The number of records that the group has not committed, in all partitions together."""
        return sum(self.lags.values())

    def __str__(self) -> str:
        if not self.exists:
            return f"group {self.group_id!r} does not exist"
        lines = [f"group {self.group_id!r}: {self.summary()}"]
        lines += [f"  {member}" for member in self.members]
        for place, offset in self.committed.items():
            lag = self.lags.get(place)
            lines.append(f"  {shown(place)}: committed {offset}, lag {lag}")
        lines += [
            f"  {shown(place)}: nothing committed, lag {lag}"
            for place, lag in self.lags.items()
            if place not in self.committed
        ]
        return "\n".join(lines)

    def summary(self) -> str:
        """Return the state in one line."""
        if not self.exists:
            return "it does not exist"
        word = "generation" if self.protocol == "classic" else "epoch"
        return (
            f"{self.state}, {self.protocol}, {word} {self.epoch}, "
            f"{counted(len(self.members), 'member')}, {len(self.assigned)} partitions assigned"
        )


def shown(place: tuple[str, int]) -> str:
    """Return a partition as text: `orders-0`."""
    return f"{place[0]}-{place[1]}"


def counted(count: int, noun: str) -> str:
    """Return a number and its noun: `2 members`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
