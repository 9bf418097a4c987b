"""The controller's decision about the leader and the replicas of one partition."""

from __future__ import annotations

from embedlog.value import Value

NOBODY = -1
"""The leader of a partition without one."""


class LeaderAndIsr(Value):
    """One decision. Each raises `partition_epoch`; each new leader raises `leader_epoch`."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_insync_replicas: int
    is_recovering: bool = False
    """Was the leader elected although it may lack committed records?"""
    offline_replicas: tuple[int, ...] = ()
    """The replicas in log directories that are offline; their brokers may be running."""

    @property
    def min_isr(self) -> int:
        """How many replicas must be in sync for acks=all: at most the number of replicas."""
        return min(self.min_insync_replicas, max(1, len(self.replicas)))


NOTHING_DECIDED = LeaderAndIsr(
    leader=NOBODY,
    leader_epoch=-1,
    partition_epoch=-1,
    replicas=(),
    isr=(),
    min_insync_replicas=1,
)
"""The state of a partition before the first decision."""
