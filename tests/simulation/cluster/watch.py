"""The brokers, watched from above: what no client sees, and what must hold at every moment.

while a broker leads       each running replica in sync has all below its high watermark
when one takes over        what it has by then is a term's beginning: its `Election`
what was committed         stays, byte for byte, through every election that is not unclean
an unclean election        only where it is allowed, or nobody was left who had everything
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
    """One term: who leads, and what its log held when it began."""

    leader: int
    epoch: int
    is_unclean: bool
    """Was it, or one just before it that was over before anybody had seen its leader?"""
    began_with: list[Batch] | None = None
    """None while nobody has seen it lead."""


@dataclass
class Watched:
    """One partition."""

    elections: dict[int, Election] = field(default_factory=dict)
    """By leader epoch."""
    committed: list[Batch] = field(default_factory=list)
    replicas: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()


class Watch:
    """Looks at every partition of these topics."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.partitions = {place: Watched() for place in places}
        self.may_lose = False
        """Did anything happen by which committed records may be lost?"""
        self.broken: list[str] = []
        self.epochs: dict[int, int] = {}
        """Of the leaders that answered these requests, by their ids."""
        self._cluster: Cluster
        self._image: MetadataImage
        self._seen: set[str] = set()

    def opened(self, cluster: Cluster) -> None:
        """Watch a cluster from here on."""
        self._cluster = cluster
        self.controller_started()

    def controller_started(self) -> None:
        """Be told of what the controller decides."""
        controller = self._cluster.controller.core
        assert controller is not None
        tell = controller.on_change

        def changed(delta: Any) -> None:
            self._decided(delta.image)
            tell(delta)

        controller.on_change = changed
        self._decided(controller.image)

    def node(self, node_id: int, place: Place) -> Partition | None:
        """A broker's replica; None where it has none, or does not run."""
        node = self._cluster.broker(node_id)
        return node.core.replica_manager.partitions.get(place) if node.is_running else None

    def image(self, place: Place) -> PartitionImage | None:
        """What the controller decided last."""
        return self._image.partition(*place)

    def answered(self, node_id: int, request: Any, answer: Any) -> None:
        """Note under which epoch a broker answers a producer; who asked for all got no less."""
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
            self.break_(f"{place}: {found.base_offset} was acknowledged, and too few have it")

    def _is_safe(self, place: Place, offset: int) -> bool:
        """Do two replicas have that record, or did some that are down?"""
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
        """Note a promise that was not kept, once."""
        if what not in self._seen:
            self._seen.add(what)
            self.broken.append(what)

    # What the controller decides

    def _decided(self, image: MetadataImage) -> None:
        self._image = image
        for place, watched in self.partitions.items():
            found = image.partition(*place)
            if found is None:
                continue
            is_smaller = not set(watched.replicas) <= set(found.replicas)
            added = (set(watched.adding) & set(found.replicas)) - set(found.adding_replicas)
            # As in Kafka it may end with one in sync, if only those that it added are.
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

    # What the brokers do

    def look(self) -> None:
        """See whether everything holds at this moment."""
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
                        raise  # else its disk has just failed

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
    """How many batches both begin with."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))
