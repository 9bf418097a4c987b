"""Observes the brokers beyond the view of clients, and checks the rules of every moment.

while a broker leads     each running in-sync replica has all records below its high watermark
when a broker takes over  its log of that moment is recorded as the term's `Election`
committed records        stay, byte for byte, through every clean election
an unclean election      happens only if it is allowed, or no replica with all records was left
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from embedlog.cluster.cluster import Cluster
from embedlog.controller.metadata import MetadataImage, PartitionImage
from embedlog.errors import KafkaStorageError
from embedlog.replication.partition import Partition
from tests.simulation.cluster.client import Place
from tests.simulation.cluster.logs import Batch, batches
from wire.schemas.produce import ProduceRequest

ALL = -1
MIN_ISR = 2


@dataclass
class Election:
    """One term: its leader, and the leader's log at its beginning."""

    leader: int
    epoch: int
    is_unclean: bool
    """Whether this election, or the unobserved one just before it, was unclean."""
    began_with: list[Batch] | None = None
    """The leader's log at its beginning; None until the leader is observed."""


@dataclass
class Watched:
    """The observed history of one partition."""

    elections: dict[int, Election] = field(default_factory=dict)
    """Elections by leader epoch."""
    committed: list[Batch] = field(default_factory=list)
    replicas: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()


class Watch:
    """Observes every partition of these topics."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.partitions = {place: Watched() for place in places}
        self.may_lose = False
        """Whether an event may have lost committed records."""
        self.broken: list[str] = []
        self.epochs: dict[int, int] = {}
        """The leader epochs that answered these requests, by request id."""
        self._cluster: Cluster
        self._image: MetadataImage
        self._seen: set[str] = set()

    def opened(self, cluster: Cluster) -> None:
        """Observe this cluster from here on."""
        self._cluster = cluster
        self.controller_started()

    def controller_started(self) -> None:
        """Subscribe to the decisions of a controller."""
        controller = self._cluster.controller.core
        assert controller is not None
        tell = controller.on_change

        def changed(delta: Any) -> None:
            self._decided(delta.image)
            tell(delta)

        controller.on_change = changed
        self._decided(controller.image)

    def node(self, node_id: int, place: Place) -> Partition | None:
        """Return a broker's replica; None if it has none, or does not run."""
        node = self._cluster.broker(node_id)
        return node.core.replica_manager.partitions.get(place) if node.is_running else None

    def image(self, place: Place) -> PartitionImage | None:
        """Return the controller's latest decision."""
        return self._image.partition(*place)

    def answered(self, node_id: int, request: Any, answer: Any) -> None:
        """Record the epoch of a broker's answer to a producer, and check that acks=all holds."""
        if not isinstance(request, ProduceRequest):
            return
        (topic,) = request.topic_data
        place = topic.name, topic.partition_data[0].index
        replica = self.node(node_id, place)
        self.epochs[id(request)] = -1 if replica is None else replica.leader_epoch
        found = answer.responses[0].partition_responses[0]
        if (
            request.acks == ALL
            and not found.error_code
            and not self._is_safe(place, found.base_offset)
        ):
            self.break_(
                f"{place}: {found.base_offset} was acknowledged, but too few replicas have it"
            )

    def _is_safe(self, place: Place, offset: int) -> bool:
        """Return whether two replicas have the record; a stopped replica counts as having it."""
        having = 0
        for node in self._cluster.brokers:
            replica = self.node(node.node_id, place)
            having += (
                not node.is_running
                or (replica is None and bool(node.core.log_manager.offline))
                or (replica is not None and replica.log.log_end_offset > offset)
            )
        return having >= MIN_ISR

    def break_(self, what: str) -> None:
        """Record a broken promise, once."""
        if what not in self._seen:
            self._seen.add(what)
            self.broken.append(what)

    # Decisions of the controller

    def _decided(self, image: MetadataImage) -> None:
        self._image = image
        for place, watched in self.partitions.items():
            found = image.partition(*place)
            if found is None:
                continue
            is_smaller = not set(watched.replicas) <= set(found.replicas)
            added = (set(watched.adding) & set(found.replicas)) - set(found.adding_replicas)
            # As in Kafka a reassignment may end with one in-sync replica if all added ones are in
            # sync.
            if is_smaller and not (found.isr and added <= set(found.isr)):
                self.break_(f"{place}: {watched.replicas} became {found}")
            watched.replicas, watched.adding = found.replicas, found.adding_replicas
            if found.leader < 0:
                continue
            known = watched.elections.get(found.leader_epoch)
            if known is not None:
                if known.leader != found.leader:
                    self.break_(f"{place}: {known.leader} and {found.leader} lead in one epoch")
                continue
            latest = watched.elections.get(max(watched.elections, default=-1))
            was_unseen = latest is not None and latest.is_unclean and latest.began_with is None
            watched.elections[found.leader_epoch] = Election(
                found.leader, found.leader_epoch, found.is_recovering or was_unseen
            )

    # Behaviour of the brokers

    def look(self) -> None:
        """Check all rules at this moment."""
        for place, watched in self.partitions.items():
            decided = self.image(place)
            if decided is None or decided.leader < 0:
                continue
            leader = self.node(decided.leader, place)
            if leader is None or not leader.is_leader:
                continue
            if leader.leader_epoch == decided.leader_epoch:
                try:
                    self._look(place, watched, leader, decided)
                except KafkaStorageError:
                    manager = self._cluster.broker(decided.leader).core.log_manager
                    if not manager.is_offline(leader.topic_partition):
                        raise  # a replica of a failed directory is no error

    def _look(
        self, place: Place, watched: Watched, leader: Partition, decided: PartitionImage
    ) -> None:
        high_watermark = leader.log.offsets.high_watermark
        for node_id in decided.isr:
            replica = self.node(node_id, place)
            if replica is not None and replica.log.log_end_offset < high_watermark:
                self.break_(
                    f"{place}: the high watermark of leader {decided.leader} is {high_watermark}"
                    f" while {node_id}, in sync, ends at {replica.log.log_end_offset}"
                )
        election = watched.elections.get(leader.leader_epoch)
        if election is not None and election.began_with is None:
            self._begin_term(place, watched, leader, election)
        known = watched.committed[-1].next_offset if watched.committed else 0
        if high_watermark > known:
            if not self._is_safe(place, high_watermark - 1):
                self.break_(f"{place}: the high watermark is {high_watermark}, and one has that")
            watched.committed += batches(leader, known, high_watermark)

    def _begin_term(
        self, place: Place, watched: Watched, leader: Partition, election: Election
    ) -> None:
        start = dict(leader.log.epochs.cache.entries).get(election.epoch)
        election.began_with = batches(leader, end=start)
        kept = common(watched.committed, election.began_with)
        if kept == len(watched.committed):
            return
        if not (election.is_unclean and self.may_lose):
            self.break_(
                f"{place}: {watched.committed[kept:]} were committed, and leader {election.leader}"
                f"@{election.epoch} has {election.began_with[kept:]} there"
            )
        del watched.committed[kept:]


def common(one: Sequence[Batch], other: Sequence[Batch]) -> int:
    """Return how many batches both have in common at the beginning."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))
