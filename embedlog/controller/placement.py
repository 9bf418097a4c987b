"""Where replicas go: checks of what a client asks for, and the broker's own choice."""

from __future__ import annotations

from embedlog import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embedlog.controller.metadata import BrokerImage
    from embedlog.runtime import Random

    Assignment = tuple[int, ...]


def validate_counts(partition_count: int, replication_factor: int) -> None:
    """Raise what Kafka answers to counts that are neither positive nor -1 (the default)."""
    if replication_factor < -1 or replication_factor == 0:
        raise errors.InvalidReplicationFactor(
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if partition_count < -1 or partition_count == 0:
        raise errors.InvalidPartitions(
            "Number of partitions was set to an invalid non-positive value."
        )


def place(
    brokers: Mapping[int, BrokerImage],
    partition_count: int,
    replication_factor: int,
    *,
    first_partition: int = 0,
    random: Random,
) -> list[Assignment]:
    """Spread replicas over the brokers: each partition starts one broker further.

    The start is random, so that many topics of one partition do not all land on one broker.

    Raises:
        InvalidReplicationFactor: there are fewer brokers than replicas.
    """
    nodes = sorted(brokers)
    if replication_factor > len(nodes):
        raise errors.InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): The target"
            f" replication factor of {replication_factor} cannot be reached because only"
            f" {len(nodes)} broker(s) are registered or some brokers have all their log"
            " directories cordoned.",
        )
    start = random.below(len(nodes)) + first_partition if len(nodes) > 1 else 0
    return [
        tuple(nodes[(start + number + step) % len(nodes)] for step in range(replication_factor))
        for number in range(partition_count)
    ]


def manual_assignments(
    brokers: Mapping[int, BrokerImage],
    assignments: Sequence[tuple[int, Sequence[int]]],
    *,
    partition_count: int,
    replication_factor: int,
) -> list[Assignment]:
    """What a client laid down for a new topic: (partition, node ids) in any order.

    Raises:
        InvalidRequest: counts were given too.
        InvalidReplicaAssignment: partitions are not 0..n-1, or a list of replicas is wrong.
    """
    if replication_factor != -1:
        raise errors.InvalidRequest(
            "A manual partition assignment was specified, but replication factor was not set"
            " to -1.",
        )
    if partition_count != -1:
        raise errors.InvalidRequest(
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    by_partition: dict[int, Assignment] = {}
    size = None
    for partition, nodes in assignments:
        if partition in by_partition:
            raise errors.InvalidReplicaAssignment(
                f"Found multiple manual partition assignments for partition {partition}",
            )
        validate_assignment(brokers, nodes, replication_factor=size)
        size = len(nodes)
        by_partition[partition] = tuple(nodes)
    if sorted(by_partition) != list(range(len(by_partition))):
        raise errors.InvalidReplicaAssignment(
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [by_partition[number] for number in range(len(by_partition))]


def validate_assignment(
    brokers: Mapping[int, BrokerImage], nodes: Sequence[int], *, replication_factor: int | None
) -> None:
    """Raise InvalidReplicaAssignment unless `nodes` can hold the replicas of one partition.

    `replication_factor` is what the topic's other partitions have; None for the first one.
    """
    if not nodes:
        raise _refuse("The manual partition assignment includes an empty replica list.")
    for previous, node in zip(sorted(nodes), sorted(nodes)[1:], strict=False):
        if previous == node:
            raise _refuse(
                f"The manual partition assignment includes the broker {node} more than once."
            )
    for node in sorted(nodes):
        if node not in brokers:
            raise _refuse(
                f"The manual partition assignment includes broker {node}, but no such broker is"
                " registered."
            )
    if replication_factor is not None and len(nodes) != replication_factor:
        raise _refuse(
            f"The manual partition assignment includes a partition with {len(nodes)} replica(s),"
            f" but this is not consistent with previous partitions, which have"
            f" {replication_factor} replica(s)."
        )


def _refuse(message: str) -> Exception:
    return errors.InvalidReplicaAssignment(message)
