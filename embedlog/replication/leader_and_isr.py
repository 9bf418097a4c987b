"""What the controller decided of one partition, as a broker is told it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

NOBODY = -1
"""The leader of a partition that has none."""


class LeaderAndIsr:
    """Never changed: each decision is a new one, with a `partition_epoch` of its own.

    `leader_epoch` rises when the leader changes, `partition_epoch` with every change.
    """

    __slots__ = (
        "is_recovering",
        "isr",
        "leader",
        "leader_epoch",
        "lost",
        "min_insync_replicas",
        "partition_epoch",
        "replicas",
    )

    def __init__(
        self,
        *,
        leader: int,
        leader_epoch: int,
        partition_epoch: int,
        replicas: Sequence[int],
        isr: Sequence[int],
        min_insync_replicas: int,
        is_recovering: bool = False,
        lost: Sequence[int] = (),
    ) -> None:
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.replicas = tuple(replicas)
        self.isr = tuple(isr)
        self.min_insync_replicas = min_insync_replicas
        self.is_recovering = is_recovering
        """Was the leader elected although it may lack committed records?"""
        self.lost = tuple(lost)
        """The replicas in log directories that are offline, of brokers that may be there."""

    @property
    def min_isr(self) -> int:
        """How many replicas must be in sync: no more than there are."""
        return min(self.min_insync_replicas, max(1, len(self.replicas)))

    def replaced(self, **changes: Any) -> LeaderAndIsr:
        """The same with other values."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return LeaderAndIsr(**{**values, **changes})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LeaderAndIsr) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"LeaderAndIsr(leader={self.leader}@{self.leader_epoch}, replicas={self.replicas},"
            f" isr={self.isr}, partition_epoch={self.partition_epoch})"
        )


NOTHING_DECIDED = LeaderAndIsr(
    leader=NOBODY,
    leader_epoch=-1,
    partition_epoch=-1,
    replicas=(),
    isr=(),
    min_insync_replicas=1,
)
"""Of a partition that was not told anything yet."""
