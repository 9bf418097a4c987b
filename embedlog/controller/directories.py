"""The log directories of brokers: the places of replicas, and the loss of a directory.

In Kafka this is the work of AssignReplicasToDirs, and of the lists of directories in heartbeats
(KIP-858, KIP-1066). A broker with one directory reports none. A replica in a directory that its
broker has lost is in no in-sync set, and leads nothing, until the directory is back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from embedlog.common import TopicPartition
from embedlog.controller.metadata import BrokerImage
from embedlog.controller.partitions import (
    PartitionChanges,
    Partitions,
    check_broker_epoch,
    in_directories,
    leaderless,
)
from embedlog.controller.replay import broker_record
from embedlog.controller.state import ControllerState
from embedlog.logger import Logger

_log = Logger("controller")


class Directories:
    """The calls about log directories, callable from any thread.

    Errors are `KafkaError`s with Kafka's codes and messages.
    """

    def __init__(self, state: ControllerState, partitions: Partitions) -> None:
        self._state = state
        self._partitions = partitions

    def assign(self, node_id: int, epoch: int, places: Mapping[TopicPartition, bytes]) -> None:
        """Store the directories of the broker's replicas.

        Partitions that do not exist, or have no replica on the broker, are left out.

        Raises StaleBrokerEpoch.
        """
        state = self._state
        with state.lock:
            check_broker_epoch(state.image, node_id, epoch)
            online = state.image.brokers[node_id].directories
            changes = PartitionChanges()
            for (name, number), directory in places.items():
                topic = state.image.topics_by_name.get(name)
                before = state.image.partition(name, number)
                if topic is None or before is None or node_id not in before.replicas:
                    continue
                if before.directories.get(node_id) != directory:
                    after = before.replace(
                        directories={**before.directories, node_id: directory},
                        partition_epoch=before.partition_epoch + 1,
                    )
                    changes.put(topic, before, after)
            self._partitions.publish(changes)
            lost = set(places.values()).difference(online) if online else ()
            if lost:
                self._partitions.publish(
                    self._partitions.updates(in_directories(node_id, lost), removed=node_id)
                )

    def note(
        self, node_id: int, epoch: int, online: Sequence[bytes], cordoned: Sequence[bytes]
    ) -> None:
        """Note the broker's directories; `cordoned` ones take no new replicas.

        Replicas in a lost directory leave the in-sync sets, and others lead. Replicas in a
        directory that is back may lead partitions without a leader.

        Raises StaleBrokerEpoch.
        """
        state = self._state
        with state.lock:
            check_broker_epoch(state.image, node_id, epoch)
            before = state.image.brokers[node_id]
            after = before.replace(directories=tuple(online), cordoned=tuple(cordoned))
            if (after.directories, after.cordoned) == (before.directories, before.cordoned):
                return
            gone = set(before.directories).difference(online)
            if not before.directories:
                gone = state.image.directories_of(node_id).difference(online)
            back = set(online).difference(before.directories)
            changes = self._partitions.updates(in_directories(node_id, gone), removed=node_id)
            self._replace(changes, after, self._partitions.lying_in(node_id, gone | back))
            if back:
                self._partitions.publish(self._partitions.updates(leaderless(node_id)))
        if gone:
            _log.warning("broker %d has lost %d log directories", node_id, len(gone))

    def _replace(
        self, changes: PartitionChanges, broker: BrokerImage, others: Sequence[TopicPartition]
    ) -> None:
        """`others`: see `PartitionChanges.and_others`."""
        state, records = self._state, changes.records()

        def publish() -> None:
            state.publish(partitions_changed=changes.and_others(others), brokers_changed=True)

        if broker.epoch < 0:
            state.replace_only_broker(broker, records, publish)
        else:
            state.write([*records, broker_record(broker)], publish)
