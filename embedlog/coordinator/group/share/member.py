"""`ShareMember`: one member of a share group, as an immutable value."""

from __future__ import annotations

from embedlog.common import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.group.assignors.spec import Partitions

JOIN_EPOCH = 0
LEAVE_EPOCH = -1

NO_PARTITIONS: Partitions = {}


class ShareMember(Value):
    """One member. `replace` makes its next state; replay stores it in the group.

    A member takes its target assignment in one step: members share partitions, so nobody has to
    give one up first.
    """

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    """Names of the topics that the member subscribes to; they need not exist."""
    epoch: int = 0
    previous_epoch: int = 0
    """The epoch before `epoch`. A member that missed the last answer still names it."""
    assigned: Partitions = NO_PARTITIONS
