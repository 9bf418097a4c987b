"""Placement of replicas: checks of a client's choice, and the controller's own choice.

Kafka's striped placement. Replicas of a partition go to different racks first, to different brokers
always; partitions take turns over racks and over the brokers of each rack:

    racks A B C of three brokers each    partition 0    A0 B0 C0
                                                   1    B1 C1 A1
                                                   2    C2 A2 B2

The turns begin at a random place, so that many topics of one partition do not all land on one
broker. Fenced brokers come last, and never first in a partition, because they cannot lead.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import T
from embedlog.controller.metadata import BrokerImage, PartitionImage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from embedlog.runtime import Random

    Assignment = tuple[int, ...]


def validate_counts(partition_count: int, replication_factor: int) -> None:
    """Raise Kafka's error for counts that are neither positive nor -1 (the default)."""
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
    random: Random,
) -> list[Assignment]:
    """Choose the brokers for the replicas of each partition.

    Raises:
        InvalidReplicationFactor: there are fewer brokers than replicas, or all are fenced. Brokers
            whose directories are all cordoned do not count (KIP-1066).
    """
    if any(broker.cordoned for broker in brokers.values()):
        brokers = {node: each for node, each in brokers.items() if not each.is_cordoned}
    if all(broker.is_fenced for broker in brokers.values()):
        raise errors.InvalidReplicationFactor(
            "All brokers are currently fenced, or have all their log directories cordoned."
        )
    if replication_factor > len(brokers):
        raise errors.InvalidReplicationFactor(
            f"The target replication factor of {replication_factor} cannot be reached because only"
            f" {len(brokers)} broker(s) are registered or some brokers have all their log"
            " directories cordoned.",
        )
    if len(brokers) == 1:
        return [tuple(brokers)] * partition_count
    racks = _Racks(brokers, random)
    return [racks.next_assignment(replication_factor) for _ in range(partition_count)]


class _Turns:
    """The brokers of one rack, in order. Each partition (a turn) begins one broker further on."""

    def __init__(self) -> None:
        self.nodes: list[int] = []
        self._start = 0
        self._turn = 0
        self._given = 0
        """Number of these brokers that the present partition has got."""

    def begin(self, random: Random) -> None:
        """Choose the first broker. Requires: every broker is in `nodes`."""
        self.nodes.sort()
        if self.nodes:
            self._start = random.below(len(self.nodes))

    def next_node(self, turn: int) -> int | None:
        """Return the next broker for the partition of this `turn`; None after the last broker."""
        count = len(self.nodes)
        if count and turn != self._turn:
            self._turn = turn
            self._given = 0
            self._start = (self._start + 1) % count
        if self._given >= count:
            return None
        node = self.nodes[(self._start + self._given) % count]
        self._given += 1
        return node


class _Rack:
    def __init__(self) -> None:
        self.fenced = _Turns()
        self.unfenced = _Turns()

    def next_node(self, turn: int) -> int | None:
        """Return the next broker for the partition of this `turn`, fenced brokers last."""
        node = self.unfenced.next_node(turn)
        return self.fenced.next_node(turn) if node is None else node


class _Racks:
    """All brokers by rack; each partition is a turn. Requires: a broker that is not fenced."""

    def __init__(self, brokers: Mapping[int, BrokerImage], random: Random) -> None:
        by_name: dict[str | None, _Rack] = {}
        for broker in brokers.values():
            rack = by_name.setdefault(broker.rack, _Rack())
            turns = rack.fenced if broker.is_fenced else rack.unfenced
            turns.nodes.append(broker.node_id)
        names = sorted(by_name, key=lambda name: (name is not None, name or ""))
        self._racks = [by_name[name] for name in names]
        self._unfenced_count = sum(len(rack.unfenced.nodes) for rack in self._racks)
        self._random = random
        for rack in self._racks:
            rack.fenced.begin(random)
            rack.unfenced.begin(random)
        self._first = random.below(len(self._racks))
        """Index of the rack that begins the next partition."""
        self._turn = 0

    def next_assignment(self, replication_factor: int) -> Assignment:
        """Return the replicas of the next partition, the leader first. Requires: enough brokers."""
        if self._turn == self._unfenced_count > 1:
            # After one turn for each unfenced broker the assignments would repeat: shuffle.
            self._shuffle()
            self._turn = 0
        count = len(self._racks)
        position = self._first
        while (leader := self._racks[position % count].unfenced.next_node(self._turn)) is None:
            position += 1
        leader_rack: int | None = position % count
        nodes = [leader]
        position = self._first
        while len(nodes) < replication_factor:
            rack = position % count
            position += 1
            if rack == leader_rack:
                # In the first round skip the leader's rack, which already has a replica.
                leader_rack = None
                continue
            node = self._racks[rack].next_node(self._turn)
            if node is not None:
                nodes.append(node)
        self._turn += 1
        self._first = (self._first + 1) % count
        return tuple(nodes)

    def _shuffle(self) -> None:
        _shuffle(self._racks, self._random)
        for rack in self._racks:
            _shuffle(rack.fenced.nodes, self._random)
            _shuffle(rack.unfenced.nodes, self._random)


def _shuffle(items: list[T], random: Random) -> None:
    for count in range(len(items), 1, -1):
        chosen = random.below(count)
        items[count - 1], items[chosen] = items[chosen], items[count - 1]


def manual_assignments(
    brokers: Mapping[int, BrokerImage],
    assignments: Sequence[tuple[int, Sequence[int]]],
    *,
    partition_count: int,
    replication_factor: int,
) -> list[Assignment]:
    """Check and order a client's assignments for a new topic: (partition, node ids) in any order.

    Raises:
        InvalidRequest: the request also has counts.
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
        refuse_inactive(brokers, nodes, partition)
        size = len(nodes)
        by_partition[partition] = tuple(nodes)
    if sorted(by_partition) != list(range(len(by_partition))):
        raise errors.InvalidReplicaAssignment(
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [by_partition[number] for number in range(len(by_partition))]


def refuse_inactive(
    brokers: Mapping[int, BrokerImage], nodes: Sequence[int], partition: int
) -> None:
    """Raise InvalidReplicaAssignment if none of `nodes` could lead the partition."""
    if not any(brokers[node].is_active for node in nodes):
        raise _refuse(
            "All brokers specified in the manual partition assignment for partition"
            f" {partition} are fenced or in controlled shutdown."
        )


def new_partition(
    brokers: Mapping[int, BrokerImage], number: int, nodes: Sequence[int]
) -> PartitionImage:
    """Return a new partition, in sync on active brokers. Raises InvalidReplicationFactor."""
    isr = tuple(node for node in nodes if brokers[node].is_active)
    if not isr:
        raise errors.InvalidReplicationFactor(
            f"Unable to replicate the partition {len(nodes)} time(s): All brokers are currently"
            " fenced or in controlled shutdown."
        )
    return PartitionImage(
        partition=number, leader=isr[0], leader_epoch=0, replicas=tuple(nodes), isr=isr
    )


def validate_assignment(
    brokers: Mapping[int, BrokerImage], nodes: Sequence[int], *, replication_factor: int | None
) -> None:
    """Raise InvalidReplicaAssignment unless `nodes` can hold the replicas of one partition.

    `replication_factor` is the factor of the topic's other partitions; None if there are none.
    """
    if not nodes:
        raise _refuse("The manual partition assignment includes an empty replica list.")
    previous = None
    for node in sorted(nodes):
        if node not in brokers:
            raise _refuse(
                f"The manual partition assignment includes broker {node}, but no such broker is"
                " registered."
            )
        if brokers[node].is_cordoned:
            raise _refuse(
                f"The manual partition assignment includes broker {node}, but all its log"
                " directories are cordoned."
            )
        if node == previous:
            raise _refuse(
                f"The manual partition assignment includes the broker {node} more than once."
            )
        previous = node
    if replication_factor is not None and len(nodes) != replication_factor:
        raise _refuse(
            f"The manual partition assignment includes a partition with {len(nodes)} replica(s),"
            f" but this is not consistent with previous partitions, which have"
            f" {replication_factor} replica(s)."
        )


def _refuse(message: str) -> Exception:
    return errors.InvalidReplicaAssignment(message)
