"""`StreamsMember`: one member of a streams group, as an immutable value.

state               the member ...                              leaves it when
STABLE              has its target tasks of its epoch           the target changes
UNREVOKED_TASKS     must first give up tasks                    it owns none of them
UNRELEASED_TASKS    waits for tasks that others still hold      all of them are free
UNKNOWN             was written by a later version              it joins again
"""

from __future__ import annotations

from collections.abc import Mapping

from embedlog.common import Value
from embedlog.coordinator.group.streams.tasks import NOTHING_HELD, HeldTasks

STABLE = 1
UNREVOKED_TASKS = 2
UNRELEASED_TASKS = 3
UNKNOWN = 127

STATES = frozenset((STABLE, UNREVOKED_TASKS, UNRELEASED_TASKS))

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2

Endpoint = tuple[str, int]
"""Host and port at which other instances of the application reach the member."""


class StreamsMember(Value):
    """One member. `replace` makes its next state; replay stores it in the group."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    """The process of the application; its members share state directories."""
    endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = {}
    epoch: int = 0
    previous_epoch: int = 0
    """The epoch before `epoch`. A member that missed the last answer still names it."""
    state: int = STABLE
    assigned: HeldTasks = NOTHING_HELD
    revoking: HeldTasks = NOTHING_HELD
    """Tasks that the member must give up. It holds them until it reports that it gave them up."""

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Return whether the member has reached `target_epoch` and has its target tasks."""
        return self.state == STABLE and self.epoch == target_epoch
