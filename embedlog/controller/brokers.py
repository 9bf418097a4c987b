"""The brokers of a cluster of several: they register, are fenced when they are away, and leave.

    registered, fenced -> unfenced -> in controlled shutdown -> fenced -> registered anew
                              ^  \\___________________________________^

A fenced broker leads nothing and is in no in-sync set. If its replica of a partition was the last
in sync, the partition has no leader until the broker comes back. Each registration has an epoch, so
that requests of an earlier start of the broker are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.controller import features
from embedlog.controller.elections import NO_LEADER
from embedlog.controller.metadata import BrokerImage, PartitionImage
from embedlog.controller.metadata_records import BrokerStateRecord, UnregisterBrokerRecord
from embedlog.controller.partitions import (
    PartitionChanges,
    Partitions,
    check_broker_epoch,
    in_directories,
    leaderless,
)
from embedlog.controller.replay import broker_record
from embedlog.controller.sessions import BrokerSessions
from embedlog.controller.state import ControllerState
from embedlog.logger import Logger

_log = Logger("controller")


class Brokers:
    """The calls about brokers, callable from any thread.

    Errors are `KafkaError`s with Kafka's codes and messages.
    """

    def __init__(self, state: ControllerState, partitions: Partitions) -> None:
        self._state = state
        self._partitions = partitions
        self._sessions: BrokerSessions | None = None

    @property
    def sessions(self) -> BrokerSessions:
        """The brokers' sessions, made on first use. Add them to the scheduler: they are a duty."""
        with self._state.lock:
            if self._sessions is None:
                self._sessions = BrokerSessions(self._state, self.fence)
            return self._sessions

    def register(
        self,
        node_id: int,
        *,
        rack: str | None,
        incarnation: bytes,
        directories: Sequence[bytes] = (),
        previous_epoch: int = -1,
    ) -> int:
        """Register the broker, fenced at first; return its epoch.

        Each start of a broker has its own `incarnation`. If the last registration has the same
        incarnation, only the properties change. `previous_epoch` is the epoch that the broker
        stored at a clean shutdown. If it differs from the last registration's, the broker may have
        lost records, and is no longer eligible to lead (KIP-966).

        Raises:
            DuplicateBrokerRegistration: another incarnation has a session that has not ended.
            InvalidRegistration: a directory belongs to another broker.
        """
        state = self._state
        with state.lock:
            existing = state.image.brokers.get(node_id)
            self._refuse_duplicate(node_id, incarnation)
            self._check_directories(node_id, directories)
            if existing is not None and existing.incarnation == incarnation:
                broker = existing.replace(rack=rack, directories=tuple(directories), cordoned=())
                gone = set(existing.directories).difference(directories)
                changes = self._partitions.updates(in_directories(node_id, gone), removed=node_id)
            else:
                is_clean = existing is not None and previous_epoch == existing.epoch
                changes = self._ended(node_id, is_clean=is_clean)
                broker = BrokerImage(
                    node_id,
                    rack,
                    epoch=state.next_offset + len(changes.records()),
                    is_fenced=True,
                    incarnation=incarnation,
                    directories=tuple(directories),
                )
            known = () if existing is None else existing.directories
            others = self._partitions.lying_in(
                node_id, set(known).symmetric_difference(directories)
            )
            self._write(changes, broker_record(broker), others)
            if not broker.is_fenced:
                # A lost directory may be back: elect leaders for partitions without a leader.
                self._partitions.publish(self._partitions.updates(leaderless(node_id)))
        _log.info("broker %d registered with epoch %d", node_id, broker.epoch)
        return broker.epoch

    def unfence(self, node_id: int, epoch: int) -> None:
        """Let the broker lead again. It may be elected at once for partitions without a leader.

        A broker in controlled shutdown stays fenced: this request may be older than the shutdown.

        Raises StaleBrokerEpoch.
        """
        state = self._state
        with state.lock:
            check_broker_epoch(state.image, node_id, epoch)
            broker = state.image.brokers[node_id]
            if not broker.is_fenced or broker.in_controlled_shutdown:
                return
            changes = self._partitions.updates(
                lambda partition: partition.leader == NO_LEADER, added=node_id
            )
            self._write(changes, _state_record(broker.replace(is_fenced=False)))
            if self._sessions is not None:
                self._sessions.touch(node_id, epoch)
        _log.info("broker %d is unfenced", node_id)

    def fence(self, node_id: int) -> None:
        """Remove the broker from the in-sync sets, and let others lead.

        Raises BrokerIdNotRegistered.
        """
        state = self._state
        with state.lock:
            broker = self._registered(node_id)
            if broker.is_fenced:
                return
            changes = self._partitions.updates(_in_sync(node_id), removed=node_id)
            self._write(changes, _state_record(broker.replace(is_fenced=True)))
        _log.info("broker %d is fenced", node_id)

    def begin_controlled_shutdown(self, node_id: int, epoch: int) -> int:
        """Let others lead the broker's partitions; return how many it still leads.

        Raises StaleBrokerEpoch.
        """
        state = self._state
        with state.lock:
            check_broker_epoch(state.image, node_id, epoch)
            broker = state.image.brokers[node_id]
            changes = self._partitions.updates(_in_sync(node_id), removed=node_id)
            if not broker.in_controlled_shutdown:
                leaving = broker.replace(in_controlled_shutdown=True)
                self._write(changes, _state_record(leaving))
            else:
                self._partitions.publish(changes)
            return sum(
                partition.leader == node_id
                for topic in state.image.topics_by_name.values()
                for partition in topic.partitions
            )

    def unregister(self, node_id: int) -> None:
        """Remove the broker. Its replicas stay assigned to it.

        Raises:
            BrokerIdNotRegistered
            InvalidRequest: it is the only broker of the cluster.
        """
        with self._state.lock:
            if self._registered(node_id).epoch < 0:
                raise errors.InvalidRequest("The only broker of a cluster cannot be unregistered.")
            changes = self._partitions.updates(
                lambda partition: node_id in partition.isr or node_id in partition.elr,
                removed=node_id,
            )
            self._write(changes, UnregisterBrokerRecord(broker_id=node_id))
        _log.info("broker %d is unregistered", node_id)

    def _ended(self, node_id: int, *, is_clean: bool) -> PartitionChanges:
        """Return the changes for a broker whose last incarnation has ended unnoticed."""
        level = self._state.image.feature_level(features.ELIGIBLE_LEADER_REPLICAS)
        if is_clean or not level:
            return self._partitions.updates(_in_sync(node_id), removed=node_id)
        return self._partitions.updates(
            lambda partition: node_id in partition.isr or node_id in partition.elr,
            unclean=node_id,
        )

    def _registered(self, node_id: int) -> BrokerImage:
        broker = self._state.image.brokers.get(node_id)
        if broker is None:
            raise errors.BrokerIdNotRegistered(f"Broker ID {node_id} is not currently registered")
        return broker

    def _refuse_duplicate(self, node_id: int, incarnation: bytes) -> None:
        if self._sessions is None or not self._sessions.is_valid(node_id):
            return
        if self._state.image.brokers[node_id].incarnation != incarnation:
            raise errors.DuplicateBrokerRegistration(
                "Another broker is registered with that broker id. If the broker was recently"
                " restarted this should self-resolve once the heartbeat manager expires the"
                " broker's session."
            )

    def _check_directories(self, node_id: int, directories: Sequence[bytes]) -> None:
        for other in self._state.image.brokers.values():
            shared = set(directories).intersection(other.directories)
            if shared and other.node_id != node_id:
                from embedlog.common import uuid_to_text

                raise errors.InvalidRegistration(
                    f"Broker {other.node_id} is already registered with directory"
                    f" {uuid_to_text(min(shared))}"
                )

    def _write(
        self, changes: PartitionChanges, record: object, others: Sequence[TopicPartition] = ()
    ) -> None:
        """`others`: see `PartitionChanges.and_others`."""
        self._state.change(
            [*changes.records(), record],
            partitions_changed=changes.and_others(others),
            brokers_changed=True,
        )


def _in_sync(node_id: int) -> Callable[[PartitionImage], bool]:
    return lambda partition: node_id in partition.isr


def _state_record(broker: BrokerImage) -> BrokerStateRecord:
    return BrokerStateRecord(
        broker_id=broker.node_id,
        is_fenced=broker.is_fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
    )
