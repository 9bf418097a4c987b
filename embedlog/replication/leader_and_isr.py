"""The controller's decision about the leader and the replicas of one partition."""

from __future__ import annotations

from embedlog.common import Value

NOBODY = -1
"""The `leader` of a partition that has none."""


class LeaderAndIsr(Value):
    """One decision about a partition, which raises its `partition_epoch`.

    A decision for a new leader also raises `leader_epoch`.
    """

    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    min_insync_replicas: int
    is_recovering: bool = False
    """Whether the leader was elected although it may lack committed records."""
    offline_replicas: tuple[int, ...] = ()
    """The replicas in log directories that are offline; their brokers may be running."""

    @property
    def min_isr(self) -> int:
        """The number of in-sync replicas that acks=all needs, at most the number of replicas."""
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
