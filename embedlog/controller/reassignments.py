"""Reassignment of a partition to other brokers: beginning and reverting it. Pure functions.

replicas 1 2, target 2 3    ->  replicas 2 3 1, adding 3, removing 1
when 2 and 3 are in sync    ->  replicas 2 3          (see `elections`)
when it is cancelled before ->  replicas 2 1
"""

from __future__ import annotations

from collections.abc import Sequence

from embedlog import errors
from embedlog.controller.elections import PartitionTarget
from embedlog.controller.metadata import PartitionImage


def begun(partition: PartitionImage, replicas: Sequence[int]) -> PartitionTarget:
    """Return the start of a reassignment to `replicas`, which the caller has checked.

    It replaces a reassignment under way: replicas that were being added stay if `replicas` has
    them; if not, they are dropped.
    """
    present = set(partition.replicas).difference(partition.adding_replicas)
    removing = tuple(sorted(set(partition.replicas).difference(replicas)))
    adding = tuple(sorted(set(replicas).difference(present)))
    return PartitionTarget(
        partition, replicas=(*replicas, *removing), adding=adding, removing=removing
    )


def reverted(partition: PartitionImage) -> tuple[PartitionTarget, bool]:
    """Return the partition without its added replicas; and True if it then has no in-sync replica.

    Raises:
        InvalidReplicaAssignment: no replica would be left.
    """
    adding = partition.adding_replicas
    replicas = tuple(node for node in partition.replicas if node not in adding)
    isr = tuple(node for node in partition.isr if node not in adding)
    if not isr and not replicas:
        raise errors.InvalidReplicaAssignment(
            "Invalid replica assignment: addingReplicas contains all replicas."
        )
    is_unclean = not isr
    target = PartitionTarget(
        partition, isr=isr or replicas[:1], replicas=replicas, adding=(), removing=()
    )
    return target, is_unclean


def check_factor(partition: PartitionImage, replicas: Sequence[int]) -> None:
    """Raise InvalidReplicationFactor unless the number of replicas stays the same."""
    present = len(set(partition.replicas).difference(partition.removing_replicas))
    if len(replicas) != present:
        raise errors.InvalidReplicationFactor(
            f"The replication factor is changed from {present} to {len(replicas)}"
        )
