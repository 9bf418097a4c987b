"""Partitions of a cluster of several brokers: in-sync sets, elections, reassignments."""

from __future__ import annotations

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.config import topic_config
from embedlog.controller import elections, features, placement, reassignments
from embedlog.controller.config_changes import MIN_ISR, UNCLEAN_ELECTIONS
from embedlog.controller.elections import (
    NO_LEADER,
    ONLINE,
    PREFERRED,
    UNCLEAN,
    ElectionRules,
    PartitionTarget,
)
from embedlog.controller.metadata_records import PartitionsRecord
from embedlog.controller.replay import partition_registration
from embedlog.errors import KafkaError
from embedlog.logger import Logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from embedlog.controller.metadata import MetadataImage, PartitionImage, TopicImage
    from embedlog.controller.state import ControllerState

_log = Logger("controller")

PREFERRED_ELECTION = 0
UNCLEAN_ELECTION = 1
_ELECTIONS = {PREFERRED_ELECTION: PREFERRED, UNCLEAN_ELECTION: UNCLEAN}


class PartitionChanges:
    """Changed partitions of one batch, in the order of their topics."""

    def __init__(self) -> None:
        self._by_topic: dict[bytes, list[PartitionImage]] = {}
        self.partitions: list[TopicPartition] = []

    def put(self, topic: TopicImage, before: PartitionImage, after: PartitionImage) -> None:
        if after is not before:
            self._by_topic.setdefault(topic.topic_id, []).append(after)
            self.partitions.append(TopicPartition(topic.name, after.partition))
            _log.debug(
                "partition %s-%d: leader %d in epoch %d, in sync %s; it was %d in epoch %d, %s",
                topic.name,
                after.partition,
                after.leader,
                after.leader_epoch,
                after.isr,
                before.leader,
                before.leader_epoch,
                before.isr,
            )

    def and_others(self, others: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the changed partitions, then `others`, whose replicas brokers must check again."""
        return list(dict.fromkeys((*self.partitions, *others)))

    def records(self) -> list[Any]:
        return [
            PartitionsRecord(
                topic_id=topic_id, partitions=[partition_registration(image) for image in images]
            )
            for topic_id, images in self._by_topic.items()
        ]


class Partitions:
    """The calls about partitions, callable from any thread.

    Errors are `KafkaError`s with Kafka's codes and messages.
    """

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self.leader_duties = LeaderDuties(state, self.rebalance_leaders, self.elect_unclean)
        """The duty of periodic elections, to be added to the scheduler."""

    # In-sync sets

    def alter(
        self,
        node_id: int,
        broker_epoch: int,
        topic_id: bytes,
        partition: int,
        *,
        leader_epoch: int,
        partition_epoch: int,
        isr: Sequence[tuple[int, int]],
        is_recovering: bool = False,
    ) -> PartitionImage:
        """Set the in-sync set to `isr`, pairs of (node id, broker epoch): AlterPartition.

        A broker epoch of -1 is not compared. If this puts a reassignment's target in sync, the
        reassignment ends.

        Raises:
            StaleBrokerEpoch, UnknownTopicId, UnknownTopicOrPartition
            NotController: the leader knows later epochs than this controller.
            FencedLeaderEpoch, InvalidUpdateVersion: the leader knows earlier epochs.
            InvalidRequest: the sender does not lead, or the set is impossible.
            IneligibleReplica: a broker in the set is not active, or was restarted.
            NewLeaderElected: the change was made, and elected another leader.
        """
        state = self._state
        with state.lock:
            check_broker_epoch(state.image, node_id, broker_epoch)
            topic = state.image.topics_by_id.get(topic_id)
            if topic is None:
                raise errors.UnknownTopicId()
            if not 0 <= partition < len(topic.partitions):
                raise errors.UnknownTopicOrPartition()
            before = topic.partitions[partition]
            _check_epochs(before, node_id, leader_epoch, partition_epoch)
            nodes = tuple(node for node, _ in isr)
            _check_isr(before, nodes, is_recovering=is_recovering)
            _check_eligible(state.image, before, isr)
            target = PartitionTarget(before, isr=nodes, is_recovering=is_recovering)
            after = elections.changed(before, self._rules(topic), target)
            changes = PartitionChanges()
            changes.put(topic, before, after)
            self.publish(changes)
        if after.leader != node_id:
            raise errors.NewLeaderElected()
        return after

    # Elections

    def elect_leaders(
        self, kind: int, partitions: Sequence[TopicPartition] | None
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect preferred leaders (kind 0), or any available ones (1), for these partitions or all.

        Return the outcome of each election. Without `partitions` the result has only the partitions
        that needed an election.

        Raises:
            InvalidRequest: the kind is neither 0 nor 1.
        """
        if kind not in _ELECTIONS:
            raise errors.InvalidRequest(f"Unknown election type {kind}")
        state = self._state
        results: dict[TopicPartition, KafkaError | None] = {}
        with state.lock:
            changes = PartitionChanges()
            for wanted in self._all() if partitions is None else partitions:
                if wanted in results:
                    continue
                results[wanted] = None
                try:
                    self._elect(kind, wanted, changes)
                except errors.ElectionNotNeeded as error:
                    results[wanted] = error
                    if partitions is None:
                        del results[wanted]
                except KafkaError as error:
                    results[wanted] = error
            self.publish(changes)
        return results

    def rebalance_leaders(self) -> int:
        """Elect preferred leaders where possible; return the number of changed partitions."""
        with self._state.lock:
            changes = self.updates(
                lambda partition: partition.leader != partition.replicas[0], election=PREFERRED
            )
            self.publish(changes)
        return len(changes.partitions)

    def elect_unclean(self) -> int:
        """Elect leaders that may lack records, if settings allow it; return how many."""
        with self._state.lock:
            changes = self.updates(lambda partition: partition.leader == elections.NO_LEADER)
            self.publish(changes)
        if changes.partitions:
            _log.warning("%d partitions got a leader uncleanly", len(changes.partitions))
        return len(changes.partitions)

    # Reassignments

    def reassign(
        self,
        topic: str,
        partition: int,
        replicas: Sequence[int] | None,
        *,
        allow_replication_factor_change: bool = True,
    ) -> None:
        """Move a partition to these brokers; None reverts the reassignment under way.

        Raises:
            UnknownTopicOrPartition
            InvalidReplicaAssignment: brokers that do not exist, repeated ones, or none; or
                reverting would leave no in-sync replica.
            InvalidReplicationFactor: the number of replicas would change, which was not allowed.
            NoReassignmentInProgress: there is nothing to revert.
        """
        state = self._state
        with state.lock:
            image = state.image.topics_by_name.get(topic)
            if image is None:
                raise errors.UnknownTopicOrPartition(f"Unable to find a topic named {topic}.")
            if not 0 <= partition < len(image.partitions):
                raise errors.UnknownTopicOrPartition(
                    f"Unable to find partition {topic}:{partition}."
                )
            before = image.partitions[partition]
            if replicas is None:
                after = self._revert(image, before)
            else:
                placement.validate_assignment(
                    state.image.brokers, replicas, replication_factor=None
                )
                if not allow_replication_factor_change:
                    reassignments.check_factor(before, replicas)
                target = reassignments.begun(before, replicas)
                after = elections.changed(before, self._rules(image, election=ONLINE), target)
            changes = PartitionChanges()
            changes.put(image, before, after)
            self.publish(changes)

    def reassignments(
        self, topics: Mapping[str, Sequence[int]] | None = None
    ) -> dict[str, list[PartitionImage]]:
        """Return the partitions under reassignment of some topics, or all for None, by topic."""
        found: dict[str, list[PartitionImage]] = {}
        image = self._state.image
        for name in image.topics_by_name if topics is None else topics:
            topic = image.topics_by_name.get(name)
            if topic is None:
                continue
            numbers = range(len(topic.partitions)) if topics is None else topics[name]
            moved = [
                partition
                for number in numbers
                if (partition := image.partition(name, number)) and partition.is_reassigning
            ]
            if moved:
                found[name] = moved
        return found

    # Effects of changes of brokers

    def updates(
        self,
        select: Callable[[PartitionImage], bool],
        *,
        removed: int | None = None,
        added: int | None = None,
        unclean: int | None = None,
        election: int | None = None,
    ) -> PartitionChanges:
        """Return the changes of the partitions that `select` accepts. Requires: the controller
        lock.

        The broker `removed` leaves every in-sync set and leads nothing. The broker `unclean` does
        the same, and may have lost records. The broker `added` may lead though it is still fenced
        in the image.
        """
        image = self._state.image
        gone = (removed, unclean)

        def is_acceptable(partition: PartitionImage, node: int) -> bool:
            if node in gone or image.is_lost(partition, node):
                return False
            return node == added or image.is_active(node)

        changes = PartitionChanges()
        for topic in image.topics_by_name.values():
            rules = None
            for before in topic.partitions:
                if not select(before):
                    continue
                rules = rules or self._rules(topic, is_acceptable, election=election)
                target = PartitionTarget(
                    before,
                    isr=tuple(node for node in before.isr if node not in gone),
                    unclean=() if unclean is None else (unclean,),
                )
                changes.put(topic, before, elections.changed(before, rules, target))
        return changes

    def without_eligible(self, topics: Iterable[TopicImage]) -> PartitionChanges:
        """Return the changes that leave only in-sync replicas eligible. Requires: the lock."""
        changes = PartitionChanges()
        for topic in topics:
            for before in topic.partitions:
                if before.elr or before.last_known_elr:
                    after = before.replace(
                        elr=(), last_known_elr=(), partition_epoch=before.partition_epoch + 1
                    )
                    changes.put(topic, before, after)
        return changes

    def lying_in(self, node_id: int, directories: Collection[bytes]) -> list[TopicPartition]:
        """Return the partitions with a replica of the broker in these directories."""
        if not directories:
            return []
        return [
            TopicPartition(topic.name, partition.partition)
            for topic in self._state.image.topics_by_name.values()
            for partition in topic.partitions
            if partition.directories.get(node_id) in directories
        ]

    def publish(self, changes: PartitionChanges) -> None:
        """Write and publish the changes, if there are any. Requires: the lock."""
        if changes.partitions:
            self._state.change(changes.records(), partitions_changed=changes.partitions)

    # Rules

    def _all(self) -> Iterator[TopicPartition]:
        for topic in self._state.image.topics_by_name.values():
            for number in range(len(topic.partitions)):
                yield TopicPartition(topic.name, number)

    def _rules(
        self,
        topic: TopicImage,
        is_acceptable: Callable[[PartitionImage, int], bool] | None = None,
        *,
        election: int | None = None,
    ) -> ElectionRules:
        """`election` defaults to the kind that the topic's settings allow."""
        image = self._state.image
        if election is None:
            election = UNCLEAN if self._setting(topic, UNCLEAN_ELECTIONS) else ONLINE
        min_insync_replicas = self._setting(topic, MIN_ISR)
        assert isinstance(min_insync_replicas, int), min_insync_replicas
        return ElectionRules(
            is_acceptable or image.may_lead,
            min_insync_replicas=min(min_insync_replicas, topic.replication_factor),
            keeps_eligible=image.feature_level(features.ELIGIBLE_LEADER_REPLICAS) > 0,
            election=election,
        )

    def _setting(self, topic: TopicImage, name: str) -> Any:
        texts = self._state.image.topic_configs.get(topic.name, {})
        return topic_config.effective(name, texts, self._state.config)

    def _elect(self, kind: int, wanted: TopicPartition, changes: PartitionChanges) -> None:
        topic = self._state.image.topics_by_name.get(wanted.topic)
        if topic is None:
            raise errors.UnknownTopicOrPartition(f"No such topic as {wanted.topic}")
        if not 0 <= wanted.partition < len(topic.partitions):
            raise errors.UnknownTopicOrPartition(
                f"No such partition as {wanted.topic}-{wanted.partition}"
            )
        before = topic.partitions[wanted.partition]
        if kind == PREFERRED_ELECTION:
            is_needed = before.leader != before.replicas[0]
        else:
            is_needed = before.leader == elections.NO_LEADER
        if not is_needed:
            raise errors.ElectionNotNeeded()
        rules = self._rules(topic, election=_ELECTIONS[kind])
        after = elections.changed(before, rules, PartitionTarget(before))
        if after is before and kind == PREFERRED_ELECTION:
            raise errors.PreferredLeaderNotAvailable()
        if after is before:
            raise errors.EligibleLeadersNotAvailable()
        changes.put(topic, before, after)

    def _revert(self, topic: TopicImage, before: PartitionImage) -> PartitionImage:
        if not before.is_reassigning:
            raise errors.NoReassignmentInProgress()
        target, is_unclean = reassignments.reverted(before)
        rules = self._rules(topic)
        if is_unclean and rules.election != UNCLEAN:
            raise errors.InvalidReplicaAssignment(
                f"Unable to revert partition assignment for {topic.name}:{before.partition}"
                " because it would require an unclean leader election."
            )
        return elections.changed(before, rules, target)


class LeaderDuties:
    """A duty of the scheduler, for a cluster of several.

    It moves leaders to preferred replicas every leader.imbalance.check.interval.seconds, if
    auto.leader.rebalance.enable is true. Every unclean.leader.election.interval.ms it elects
    leaders for partitions without a leader. Both begin after one interval.
    """

    def __init__(
        self,
        state: ControllerState,
        rebalance_leaders: Callable[[], int],
        elect_unclean: Callable[[], int],
    ) -> None:
        self._state = state
        self._rebalance_leaders = rebalance_leaders
        self._elect_unclean = elect_unclean
        now_ms = state.clock.monotonic_ms()
        self._balanced_ms = now_ms
        self._elected_ms = now_ms

    def run_once(self, now_ms: int) -> int:
        """Run the due elections; return the time to the next."""
        config = self._state.config
        balance_ms: int = config.leader_imbalance_check_interval_seconds * 1000
        election_ms: int = config.unclean_leader_election_interval_ms
        if now_ms - self._balanced_ms >= balance_ms:
            self._balanced_ms = now_ms
            if config.auto_leader_rebalance_enable:
                self._rebalance_leaders()
        if now_ms - self._elected_ms >= election_ms:
            self._elected_ms = now_ms
            self._elect_unclean()
        next_ms = min(self._balanced_ms + balance_ms, self._elected_ms + election_ms)
        return max(next_ms - now_ms, 1)


def in_directories(
    node_id: int, directories: Collection[bytes]
) -> Callable[[PartitionImage], bool]:
    """Return a predicate for partitions with an in-sync replica of the broker in `directories`."""
    return lambda partition: (
        node_id in partition.isr and partition.directories.get(node_id) in directories
    )


def leaderless(node_id: int) -> Callable[[PartitionImage], bool]:
    """Return a predicate for partitions without a leader that have a replica at the broker."""
    return lambda partition: partition.leader == NO_LEADER and node_id in partition.replicas


def check_broker_epoch(image: MetadataImage, node_id: int, epoch: int) -> None:
    """Raise StaleBrokerEpoch unless the broker is registered under this epoch."""
    broker = image.brokers.get(node_id)
    if broker is None:
        raise errors.StaleBrokerEpoch(f"No broker registration found for broker id {node_id}")
    if broker.epoch != epoch:
        raise errors.StaleBrokerEpoch(
            f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}"
        )


def _check_epochs(
    before: PartitionImage, node_id: int, leader_epoch: int, partition_epoch: int
) -> None:
    if leader_epoch > before.leader_epoch or partition_epoch > before.partition_epoch:
        raise errors.NotController()
    if leader_epoch < before.leader_epoch:
        raise errors.FencedLeaderEpoch()
    if node_id != before.leader:
        raise errors.InvalidRequest()
    if partition_epoch < before.partition_epoch:
        raise errors.InvalidUpdateVersion()


def _check_isr(before: PartitionImage, nodes: tuple[int, ...], *, is_recovering: bool) -> None:
    is_possible = (
        len(set(nodes)) == len(nodes)
        and set(nodes) <= set(before.replicas)
        and before.leader in nodes
        and not (is_recovering and len(nodes) > 1)
        and not (is_recovering and not before.is_recovering)
    )
    if not is_possible:
        raise errors.InvalidRequest()


def _check_eligible(
    image: MetadataImage, partition: PartitionImage, isr: Sequence[tuple[int, int]]
) -> None:
    for node, epoch in isr:
        if not image.may_lead(partition, node) or epoch not in (-1, image.brokers[node].epoch):
            raise errors.IneligibleReplica()
