"""`TransactionCoordinator`: the transactional ids of a broker.

An id belongs to the partition of `__transaction_state` that its hash selects. FindCoordinator
creates the topic; until then every request fails with NotCoordinator. The operations on an id are
in `initialize`, `registration` and `ending`.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.answers import failed
from embedlog.coordinator.placement import Placement
from embedlog.coordinator.records import TRANSACTION_RECORD_TYPES, RecordFormat
from embedlog.coordinator.result import Result
from embedlog.coordinator.runtime import CoordinatorRuntime
from embedlog.coordinator.shard_context import CoordinatorWorld
from embedlog.coordinator.transaction.markers import TransactionMarkers
from embedlog.coordinator.transaction.registration import (
    DelayedRegistration,
    add_partitions,
    missing_partitions,
)
from embedlog.coordinator.transaction.transaction_shard import TransactionShard
from embedlog.errors import ConcurrentTransactions, KafkaError
from embedlog.purgatory.purgatory import DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer
from embedlog.runtime.pending import Pending, completed
from embedlog.topic_names import TRANSACTIONS_TOPIC
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import TypeVar

    from embedlog.config import BrokerConfig
    from embedlog.controller.metadata import MetadataImage
    from embedlog.coordinator.transaction.markers import Send
    from embedlog.coordinator.transaction.transaction_metadata import TopicIndex
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime import Runtime
    from embedlog.storage.data_directories import DataDirectories

    R = TypeVar("R")


_COMMIT_TIMEOUT_MS = 5000
_CLIENT_WITH_EPOCH_BUMP = 2


class TransactionCoordinator:
    """The transactional ids of this broker. Every method may be called from any thread.

    `send_markers` asks the leaders of partitions to write markers; `transaction_version()` returns
    the level of the cluster's feature of that name.
    """

    def __init__(
        self,
        runtime: Runtime,
        config: BrokerConfig,
        replica_manager: ReplicaManager,
        log_manager: DataDirectories,
        metadata: Callable[[], MetadataImage],
        *,
        send_markers: Send,
        transaction_version: Callable[[], int],
    ) -> None:
        scheduler = runtime.scheduler
        self._clock = runtime.clock
        self._config = config
        self._metadata = metadata
        self._scheduler = scheduler
        self._timer = Timer(runtime.clock, scheduler.notify)
        scheduler.add(self._timer, is_timer=True)
        purgatory = DelayedOperationPurgatory("Transaction", self._timer)
        self._registrations = purgatory
        self._markers = TransactionMarkers(scheduler, send_markers, self._exists)
        self._placement = Placement(TRANSACTIONS_TOPIC, metadata)
        world = CoordinatorWorld(
            runtime,
            config,
            metadata,
            timer=self._timer,
            join_purgatory=purgatory,
            heartbeat_purgatory=purgatory,
        )
        self.runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            world,
            replica_manager,
            log_manager,
            topic=TRANSACTIONS_TOPIC,
            record_format=RecordFormat(TRANSACTION_RECORD_TYPES),
            make_shard=lambda context: TransactionShard(
                context,
                transaction_version=transaction_version,
                when_decided=self._markers.tell,
                when_many_decided=self._markers.tell_later,
                when_free=purgatory.check_and_complete,
                id_count=self._id_count,
            ),
            commit_timeout_ms=_COMMIT_TIMEOUT_MS,
        )

    def load(self) -> None:
        """Load all shards, which resume decided transactions and abort overdue ones."""
        self.runtime.read_all(lambda _shard: None)

    def expire(self) -> None:
        """Abort overdue transactions and delete expired ids now, not at the next check."""
        self.runtime.write_all(TransactionShard.abort_timed_out)
        self.runtime.write_all(TransactionShard.expire)

    def abort_open(self, is_chosen: Callable[[str], bool]) -> list[Pending[list[str]]]:
        """Abort the chosen open transactions now, as a time-out does.

        Each result has the ids of some of them.
        """
        return self.runtime.write_all(lambda shard: shard.abort_open(is_chosen))

    def close(self) -> None:
        """Close; the next start resumes decided transactions."""
        self._markers.close()
        self.runtime.close()
        self._registrations.force_complete_all()
        self._scheduler.remove(self._timer)

    def _id_count(self) -> int:
        """Count the ids of all loaded shards. Needs no lock."""
        return sum(len(shard.transactions) for shard in self.runtime.loaded())

    def _exists(self, topic: str, index: int) -> bool:
        image = self._metadata().topics_by_name.get(topic)
        return image is not None and index < len(image.partitions)

    # Operations

    def write(
        self, transactional_id: str, operation: Callable[[TransactionShard], Result[R]]
    ) -> Pending[R]:
        """Run `operation` on the id's shard, as `CoordinatorRuntime.write` does.

        Also fails with NotCoordinator while the topic does not exist.
        """
        try:
            partition = self._placement.partition_of(transactional_id)
        except errors.NotCoordinator as error:
            return failed(error)
        return self.runtime.write(partition, operation)

    def read(self, transactional_id: str, operation: Callable[[TransactionShard], R]) -> Pending[R]:
        return self.write(transactional_id, lambda shard: Result((), operation(shard)))

    def read_all(self, operation: Callable[[TransactionShard], R]) -> list[Pending[R]]:
        return self.runtime.read_all(operation)

    def register(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicIndex],
        *,
        is_verified_only: bool,
        is_patient: bool = False,
    ) -> Pending[dict[TopicIndex, int]]:
        """Return an error code for each partition; 0 if the producer may write to it.

        Partitions that the transaction lacks are added: clients of version 2 leave that to the
        broker. With `is_verified_only` a missing partition gets TRANSACTION_ABORTABLE instead. With
        `is_patient` the answer waits a moment for the end of the id's last transaction.
        """
        if not transactional_id:
            return completed(dict.fromkeys(partitions, int(ErrorCode.INVALID_REQUEST)))

        seen: list[TransactionShard] = []

        def is_free() -> bool:
            return seen[-1].is_free(transactional_id)

        def operation(shard: TransactionShard) -> Result[dict[TopicIndex, int]]:
            seen.append(shard)
            of_id = shard, transactional_id, producer_id, producer_epoch
            answer = dict.fromkeys(partitions, int(ErrorCode.NONE))
            if not is_verified_only:
                added = add_partitions(*of_id, partitions, client_version=_CLIENT_WITH_EPOCH_BUMP)
                added.response = answer
                return added
            for place in missing_partitions(*of_id, partitions):
                answer[place] = ErrorCode.TRANSACTION_ABORTABLE
            return Result((), answer)

        answer: Pending[dict[TopicIndex, int]] = Pending()
        clock, config = self._clock, self._config
        wait_ms = config.add_partitions_to_txn_retry_backoff_max_ms if is_patient else 0
        give_up_ms = clock.monotonic_ms() + wait_ms

        def ask() -> None:
            self.write(transactional_id, operation).add_callback(settled)

        def settled(done: Pending[dict[TopicIndex, int]]) -> None:
            error = done.error()
            is_early = isinstance(error, ConcurrentTransactions)
            if is_early and clock.monotonic_ms() < give_up_ms:
                delay_ms = config.add_partitions_to_txn_retry_backoff_ms
                waiting = DelayedRegistration(delay_ms, is_free, ask)
                self._registrations.try_complete_else_watch(waiting, [transactional_id])
            elif isinstance(error, KafkaError):
                answer.complete(dict.fromkeys(partitions, error.code))
            elif error is None:
                answer.complete(done.result())
            else:
                answer.fail(error)

        ask()
        return answer
