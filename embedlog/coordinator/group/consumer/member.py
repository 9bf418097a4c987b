"""`ConsumerMember`: one member of a consumer group, as an immutable value.

state                 the member ...                                   leaves it when
STABLE                has its target partitions of its epoch           the target changes
UNREVOKED_PARTITIONS  must first give up partitions                    it owns none of them
UNRELEASED_PARTITIONS waits for partitions that others still hold      all of them are free
UNKNOWN               was written by a later version                   it joins again
"""

from __future__ import annotations

from collections.abc import Mapping

from embedlog.common import Value

Epochs = Mapping[int, int]
Owned = Mapping[bytes, Epochs]
"""Topic id -> partition -> the member's epoch when it got the partition. Topics without partitions
have no entry."""

STABLE = 0
UNREVOKED_PARTITIONS = 1
UNRELEASED_PARTITIONS = 2
UNKNOWN = 127

STATES = frozenset((STABLE, UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS))

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2

NO_PARTITIONS: Owned = {}


class ClassicFacts(Value):
    """The properties that only members of the classic protocol have."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """(assignor name, subscription), in the order of the member's JoinGroup; at least one."""

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.protocols)


class ConsumerMember(Value):
    """One member. `replace` makes its next state; replay stores it in the group."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    topics: frozenset[str] = frozenset()
    """Topics subscribed by name."""
    regex: str = ""
    """The pattern of its subscription; "" for none."""
    classic: ClassicFacts | None = None
    """The properties of a member of the classic protocol; None for the consumer protocol."""
    epoch: int = 0
    previous_epoch: int = 0
    """The epoch before `epoch`. A member that missed the last answer still names it."""
    state: int = STABLE
    assigned: Owned = NO_PARTITIONS
    revoking: Owned = NO_PARTITIONS
    """Partitions that the member must give up. It holds them until it reports that it gave them
    up."""

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Return whether the member has reached `target_epoch` and has its target partitions."""
        return self.state == STABLE and self.epoch == target_epoch
