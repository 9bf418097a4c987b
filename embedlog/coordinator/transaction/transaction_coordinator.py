"""`TransactionCoordinator`: where the transactional ids of a broker live.

An id lives in the partition of `__transaction_state` that it hashes to. FindCoordinator makes the
topic; until then nobody coordinates anything. What is done to an id: `initialize`, `registration`,
`ending`.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.coordinator.answers import failed
from embedlog.coordinator.leadership import Leadership
from embedlog.coordinator.placement import Hashes
from embedlog.coordinator.records import TRANSACTION_RECORD_TYPES, RecordFormat
from embedlog.coordinator.result import Result
from embedlog.coordinator.runtime import CoordinatorRuntime
from embedlog.coordinator.shard_context import CoordinatorWorld
from embedlog.coordinator.transaction.delayed_registration import DelayedRegistration
from embedlog.coordinator.transaction.markers import TransactionMarkers
from embedlog.coordinator.transaction.registration import add_partitions, missing_partitions
from embedlog.coordinator.transaction.transaction_shard import TransactionShard
from embedlog.errors import ConcurrentTransactions, KafkaError
from embedlog.purgatory.purgatory import DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer
from embedlog.runtime.pending import Pending, completed
from embedlog.topic_names import TRANSACTIONS_TOPIC
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Protocol, TypeVar

    from embedlog.config import BrokerConfig
    from embedlog.coordinator.broker_view import Metadata
    from embedlog.coordinator.transaction.markers import Send
    from embedlog.coordinator.transaction.transaction import TopicIndex
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime import Runtime

    R = TypeVar("R")

    class Broker(Protocol):
        """What the coordinator needs of the broker that it is part of."""

        runtime: Runtime
        config: BrokerConfig
        replica_manager: ReplicaManager

        def metadata(self) -> Metadata:
            """The present state of the cluster."""

        def partitions_with_log(self, topic: str) -> Iterable[int]:
            """The partitions that have a log here, opened or not."""


_COMMIT_TIMEOUT_MS = 5000
_CLIENT_WITH_EPOCH_BUMP = 2


class TransactionCoordinator:
    """The transactional ids of this broker. Every method may be called from any thread.

    `send_markers` asks the leaders of partitions to write markers; `transaction_version()` is the
    level of the cluster's feature of that name.
    """

    def __init__(
        self, broker: Broker, *, send_markers: Send, transaction_version: Callable[[], int]
    ) -> None:
        scheduler = broker.runtime.scheduler
        self._broker = broker
        self._scheduler = scheduler
        self._timer = Timer(broker.runtime.clock, scheduler.notify)
        scheduler.add(self._timer)
        purgatory = DelayedOperationPurgatory("Transaction", self._timer)
        self._registrations = purgatory
        self._markers = TransactionMarkers(scheduler, send_markers, self._exists)
        self._hashes = Hashes()
        world = CoordinatorWorld(
            broker.runtime,
            broker.config,
            broker.metadata,
            timer=self._timer,
            join_purgatory=purgatory,
            heartbeat_purgatory=purgatory,
        )
        self.runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            world,
            broker.replica_manager,
            topic=TRANSACTIONS_TOPIC,
            record_format=RecordFormat(TRANSACTION_RECORD_TYPES),
            make_shard=lambda context: TransactionShard(
                context,
                transaction_version=transaction_version,
                when_decided=self._markers.tell,
                when_free=purgatory.check_and_complete,
                id_count=self._id_count,
            ),
            partitions_with_log=lambda: broker.partitions_with_log(TRANSACTIONS_TOPIC),
            commit_timeout_ms=_COMMIT_TIMEOUT_MS,
        )
        self.leadership = Leadership(scheduler, self.runtime.follow_leader)

    def load(self) -> None:
        """Load what the broker left behind: tell what was decided, abort what takes too long."""
        self.runtime.read_all(_nothing)

    def close(self) -> None:
        """Requests after this find no coordinator. What is decided is told after the next start."""
        self.leadership.close()
        self._markers.close()
        self.runtime.close()
        self._registrations.force_complete_all()
        self._scheduler.remove(self._timer)

    def _id_count(self) -> int:
        """Of all shards that are loaded. Needs no lock."""
        return sum(len(shard.transactions) for shard in self.runtime.loaded())

    def _exists(self, topic: str, index: int) -> bool:
        image = self._broker.metadata().topics_by_name.get(topic)
        return image is not None and index < len(image.partitions)

    # Operations

    def write(
        self, transactional_id: str, operation: Callable[[TransactionShard], Result[R]]
    ) -> Pending[R]:
        """Do `operation` on the shard of an id: see `CoordinatorRuntime.write`.

        Fails with NotCoordinator, too, as long as there is no topic for the id to live in.
        """
        topic = self._broker.metadata().topics_by_name.get(TRANSACTIONS_TOPIC)
        if topic is None:
            return failed(errors.NotCoordinator())
        index = self._hashes.partition_of(transactional_id, len(topic.partitions))
        return self.runtime.write(index, operation)

    def read(self, transactional_id: str, operation: Callable[[TransactionShard], R]) -> Pending[R]:
        """The same for an operation that appends nothing."""
        return self.write(transactional_id, lambda shard: Result((), operation(shard)))

    def read_all(self, operation: Callable[[TransactionShard], R]) -> list[Pending[R]]:
        """`read` on every shard that may hold an id."""
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
        """May a producer write to these partitions in its transaction? An error code for each.

        Adds those that are not part of it yet, as clients of version 2 leave that to the broker; or
        only looks (`is_verified_only`), then a missing one is TRANSACTION_ABORTABLE. `is_patient`:
        the answer waits a moment for the end of the last transaction.
        """

        if not transactional_id:
            return completed(dict.fromkeys(partitions, int(ErrorCode.INVALID_REQUEST)))

        asked: list[TransactionShard] = []

        def is_free() -> bool:
            return asked[-1].is_free(transactional_id)

        def operation(shard: TransactionShard) -> Result[dict[TopicIndex, int]]:
            asked.append(shard)
            who = shard, transactional_id, producer_id, producer_epoch
            answer = dict.fromkeys(partitions, int(ErrorCode.NONE))
            if not is_verified_only:
                added = add_partitions(*who, partitions, client_version=_CLIENT_WITH_EPOCH_BUMP)
                return added.answering(answer)
            for place in missing_partitions(*who, partitions):
                answer[place] = ErrorCode.TRANSACTION_ABORTABLE
            return Result((), answer)

        answer: Pending[dict[TopicIndex, int]] = Pending()
        clock, config = self._broker.runtime.clock, self._broker.config
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


def _nothing(_shard: TransactionShard) -> None:
    """Loading is all that is wanted."""
