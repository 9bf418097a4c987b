"""The partitions of this broker, and the requests that wait after an append or for a fetch:

    append                                    fetch
    1. take the partition lock, append,       1. read, without a lock
       raise the high watermark               2. enough records, or no time to wait: answer
    2. release the lock                       3. otherwise park a DelayedFetch
    3. try the waiting operations
    4. not committed: park a DelayedProduce

Waiting operations are always tried after the partition lock is released, because they take their
own locks and answer clients.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import TopicPartition
from embedlog.purgatory.purgatory import PURGE_INTERVAL, DelayedOperationPurgatory
from embedlog.purgatory.timer import Timer
from embedlog.replication.partition import ClusterHooks, Partition
from embedlog.replication.partition_duty import PartitionDuty
from embedlog.storage.validation.origin import AppendOrigin
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.common import Buffer
    from embedlog.replication.cluster_replication import ClusterReplication
    from embedlog.replication.delayed_delete_records import DeletedPartition
    from embedlog.replication.delayed_produce import AppendedPartition
    from embedlog.replication.fetcher.fetchers import Fetchers
    from embedlog.replication.leader_and_isr import LeaderAndIsr
    from embedlog.replication.membership import Membership
    from embedlog.runtime import Runtime
    from embedlog.runtime.pending import Pending
    from embedlog.storage.log.log import Log
    from embedlog.storage.log_values import LogAppendInfo as LogAppendInfo
    from embedlog.storage.producers.entry import VerificationState
    from wire.records.encode.built import BuiltBatch
    from wire.schemas.delete_records import DeleteRecordsResponse
    from wire.schemas.produce import ProduceResponse

CURRENT_MAGIC = (2, 2)
"""Lowest and highest record format of an append: only batches of magic 2. Old Produce requests may
have (0, 2)."""

_CLOCKS_DIFFER_MS = 60_000
"""If the wall clocks of process and machine differ by more than this, a test has changed one."""


class ReplicaManager:
    """Owner of the hosted partitions. Every method may be called from any thread."""

    def __init__(self, runtime: Runtime, *, node_id: int) -> None:
        self.runtime = runtime
        self.node_id = node_id
        self.partitions: dict[tuple[str, int], Partition] = {}
        """The hosted partitions. The key is a `TopicPartition` or an equal pair (topic, number)."""
        self.load: Callable[[str, int], Partition | None] = nothing_to_load
        """Called with (topic, number) to host a partition that exists but is not hosted yet. It
        returns the partition, or None if it does not exist."""
        self.when_hosted: list[Callable[[Partition], None]] = []
        """Functions to call with each newly hosted partition. The caller may hold any lock."""
        self.produce_purgatory = self._purgatory("Produce")
        self.fetch_purgatory = self._purgatory("Fetch")
        self.delete_records_purgatory = self._purgatory("DeleteRecords", purge_interval=1)
        self._clock = runtime.clock
        self._wall_ms = runtime.clock.wall_ms
        self.to_sync = PartitionDuty(runtime.scheduler, self._sync)
        self._to_wake = PartitionDuty(runtime.scheduler, self._complete_all)
        self._hooks: ClusterHooks | None = None
        self.replication: ClusterReplication | None = None
        """None if the cluster has only this broker."""

    def join(self, membership: Membership) -> None:
        """Begin to replicate to and from other brokers. Requires: no partition is hosted yet."""
        from embedlog.replication.cluster_replication import ClusterReplication

        assert not self.partitions, self.partitions
        self.replication = ClusterReplication(
            self.runtime, self.node_id, membership, self.partitions, self._complete_all
        )
        self._hooks = ClusterHooks(self.replication.begin_term, self.replication.follow_leader)

    @property
    def fetchers(self) -> Fetchers:
        """The fetchers of followed partitions. Requires: a cluster of several brokers."""
        assert self.replication is not None, "this broker is the only one"
        return self.replication.fetchers

    def _purgatory(
        self, name: str, *, purge_interval: int = PURGE_INTERVAL
    ) -> DelayedOperationPurgatory:
        scheduler = self.runtime.scheduler
        timer = Timer(self.runtime.clock, scheduler.notify)
        scheduler.add(timer, is_timer=True)
        return DelayedOperationPurgatory(name, timer, purge_interval)

    def close(self, *, syncs: bool = True) -> None:
        """Retire all partitions and answer waiting operations. If `syncs` is true, sync first."""
        scheduler = self.runtime.scheduler
        if self.replication is not None:
            self.replication.close()
        self.to_sync.close(works=syncs)
        for partition in list(self.partitions.values()):
            partition.retire()
            self._complete_all(partition)
        self._to_wake.close()
        self.load = nothing_to_load
        self.partitions.clear()
        for purgatory in (
            self.produce_purgatory,
            self.fetch_purgatory,
            self.delete_records_purgatory,
        ):
            scheduler.remove(purgatory.timer)

    # Partitions

    def partition(self, topic: str, index: int) -> Partition:
        """Return the partition. Load it first if necessary. Requires: no partition lock.

        Raises:
            UnknownTopicOrPartition: this broker has no such partition.
            KafkaStorageError: its log cannot be opened.
        """
        found = self.partitions.get((topic, index)) or self.load(topic, index)
        if found is None:
            raise errors.UnknownTopicOrPartition()
        return found

    def host(
        self, topic_partition: TopicPartition, log: Log, state: LeaderAndIsr, *, topic_id: bytes
    ) -> Partition:
        """Host a partition, which leads or follows as `state` says. Requires: no partition lock.

        The partition becomes visible only after it has its state. Without a state it would refuse
        clients, as if another broker were the leader.

        Raises:
            KafkaStorageError: the disk failed at the beginning of a term; nothing is hosted.
        """
        partition = Partition(topic_partition, log, topic_id=topic_id, hooks=self._hooks)
        partition.apply(state, self.node_id)
        self.partitions[topic_partition] = partition
        for tell in self.when_hosted[:]:
            tell(partition)
        return partition

    def changed(self, partition: Partition) -> None:
        """Let the scheduler try the operations that wait for a partition.

        Call it after a change of the leader, the epoch or the settings. It does not try them
        itself: the caller may hold the controller lock, which the woken operations may need.
        """
        if partition.syncs and partition.log.offsets.high_watermark < partition.log.log_end_offset:
            self.to_sync.add(partition)
        self._to_wake.add(partition)

    def retire(
        self,
        topic_partition: TopicPartition,
        reason: type[errors.KafkaError] = errors.UnknownTopicOrPartition,
    ) -> Partition | None:
        """Stop hosting a partition. Soon its waiting operations fail with `reason`."""
        partition = self.partitions.pop(topic_partition, None)
        if partition is not None:
            partition.retire(reason)
            self._to_wake.add(partition)
        return partition

    # Writing

    def append(
        self,
        partition: Partition,
        records: Buffer | BuiltBatch,
        *,
        acks: int,
        origin: int = AppendOrigin.CLIENT,
        magic_limits: tuple[int, int] = CURRENT_MAGIC,
        is_awaited: bool = False,
        verification: VerificationState | None = None,
    ) -> LogAppendInfo:
        """Append as the leader and wake the waiting readers. See `Partition.append` for errors.

        On return the records are in the log. They are committed when the high watermark has passed
        them. On `fsync` topics this takes a sync: with `is_awaited` this call syncs, together with
        concurrent calls; otherwise the scheduler syncs later, once for many appends. On all topics
        the other in-sync replicas must fetch them. If neither is needed, they are committed now.
        """
        now_ms = self._wall_ms()
        try:
            info = partition.append(
                records,
                acks=acks,
                origin=origin,
                magic_limits=magic_limits,
                now_ms=now_ms,
                verification=verification,
            )
        except errors.InvalidTimestamp as error:
            # A test may have set the clock of this process but not a C client's clock: try both.
            machine_ms = self._clock.machine_wall_ms()
            if abs(machine_ms - now_ms) < _CLOCKS_DIFFER_MS:
                raise
            try:
                info = partition.append(
                    records,
                    acks=acks,
                    origin=origin,
                    magic_limits=magic_limits,
                    now_ms=machine_ms,
                    verification=verification,
                )
            except errors.InvalidTimestamp:
                raise _with_clocks(error, now_ms, machine_ms) from None
        if partition.syncs or partition.remote_replicas is not None:
            self.appended(partition, is_awaited=is_awaited)
        else:
            # This is `_wake_readers`, inlined to save a call for each record.
            self.fetch_purgatory.check_and_complete(partition.topic_partition)
            if partition.watchers:
                self._notify_watchers(partition)
        return info

    def append_marker(
        self, partition: Partition, marker: BuiltBatch, *, transaction_version: int
    ) -> LogAppendInfo:
        """Append the coordinator's marker, which ends a transaction in a partition."""
        info = partition.append(
            marker,
            acks=-1,
            origin=AppendOrigin.COORDINATOR,
            magic_limits=CURRENT_MAGIC,
            now_ms=self._wall_ms(),
            transaction_version=transaction_version,
        )
        self.appended(partition)
        return info

    def appended(self, partition: Partition, *, is_awaited: bool = False) -> None:
        """After `Partition.append`, wake waiting operations; sync if needed. Requires: no lock."""
        if partition.remote_replicas is not None:
            # Wake everybody: followers read uncommitted records, and without other in-sync replicas
            # the records are committed now.
            self._complete_all(partition)
        elif not partition.syncs:
            self._wake_readers(partition)
        if not partition.syncs:
            return
        if is_awaited:
            self._sync(partition)
        else:
            self.to_sync.add(partition)

    def await_commit(
        self,
        timeout_ms: int,
        appended: Sequence[AppendedPartition],
        response: ProduceResponse,
        *,
        storage_error: int = ErrorCode.KAFKA_STORAGE_ERROR,
        on_moved: Callable[[ProduceResponse], None] | None = None,
    ) -> ProduceResponse | Pending[ProduceResponse]:
        """Answer when the records of every partition in `appended` are committed or have failed.

        The answer comes after `timeout_ms` at the latest. `storage_error` is the client's error
        code if the disk refuses. `on_moved` completes a response in which partitions have
        NOT_LEADER_OR_FOLLOWER.
        """
        from embedlog.replication.delayed_produce import DelayedProduce

        operation = DelayedProduce(timeout_ms, appended, response, storage_error, on_moved)
        keys = [waiting.partition.topic_partition for waiting in appended]
        if self.produce_purgatory.try_complete_else_watch(operation, keys):
            return response
        return operation.pending

    def await_append(
        self,
        timeout_ms: int,
        partition: Partition,
        info: LogAppendInfo,
        *,
        is_local: bool = False,
    ) -> LogAppendInfo | Pending[LogAppendInfo]:
        """Like `await_commit`, for one append without a request. The pending fails with the error.

        `is_local` is for acks=1, which does not wait for other replicas.
        """
        from embedlog.replication.delayed_produce import DelayedAppend

        operation = DelayedAppend(timeout_ms, partition, info, is_local=is_local)
        self.produce_purgatory.try_complete_else_watch(operation, [partition.topic_partition])
        return operation.pending

    def _sync(self, partition: Partition) -> None:
        try:
            partition.sync()
        except errors.KafkaStorageError:
            if partition.log.failure is None:
                # The process has no free descriptor. Nothing was synced or lost: sync again later.
                # For producers the sync only takes longer.
                self.to_sync.try_again(partition)
                return
            # The log remembers the failure and refuses writes. The calls below give the error to
            # waiting producers.
        self._wake_readers(partition)
        self.produce_purgatory.check_and_complete(partition.topic_partition)

    def _wake_readers(self, partition: Partition) -> None:
        """Try the fetches that wait for the high watermark. Requires: no partition lock."""
        self.fetch_purgatory.check_and_complete(partition.topic_partition)
        if partition.watchers:
            self._notify_watchers(partition)

    def _complete_all(self, partition: Partition) -> None:
        key = partition.topic_partition
        self.fetch_purgatory.check_and_complete(key)
        self._notify_watchers(partition)
        self.produce_purgatory.check_and_complete(key)
        self.delete_records_purgatory.check_and_complete(key)

    def records_deleted(self, partition: Partition) -> None:
        """Try the operations that wait for the log start offset. Requires: no partition lock."""
        self._notify_watchers(partition)
        self.delete_records_purgatory.check_and_complete(partition.topic_partition)

    def _notify_watchers(self, partition: Partition) -> None:
        """Make the partition active in the fetch sessions that watch it, and try their fetches."""
        for source_changed in list(partition.watchers):
            session = source_changed()
            if session is None:
                partition.watchers.pop(source_changed, None)  # its session has ended
                continue
            self.fetch_purgatory.check_and_complete(session)

    def await_deletion(
        self,
        timeout_ms: int,
        deleted: Sequence[DeletedPartition],
        response: DeleteRecordsResponse,
    ) -> DeleteRecordsResponse | Pending[DeleteRecordsResponse]:
        """Answer when no live replica has the deleted records any more, or after `timeout_ms`."""
        from embedlog.replication.delayed_delete_records import DelayedDeleteRecords

        operation = DelayedDeleteRecords(timeout_ms, deleted, response)
        keys = [waiting.partition.topic_partition for waiting in deleted]
        if self.delete_records_purgatory.try_complete_else_watch(operation, keys):
            return response
        return operation.pending


def _with_clocks(error: errors.KafkaError, now_ms: int, machine_ms: int) -> errors.KafkaError:
    """Return the error for a refused timestamp, with the times of both clocks in its message."""
    told = errors.InvalidTimestamp(
        f"{error}; the broker's wall clock says {now_ms}, while its machine's says {machine_ms}: "
        "has a test frozen or moved the time of this process?"
    )
    told.record_errors = error.record_errors
    return told


def check_one_batch(records: Buffer) -> None:
    """Check that records are one batch, as Kafka does before it checks whether this broker leads.

    Raises:
        InvalidRecord, CorruptMessage: the records are not one batch of the current format.
    """
    from embedlog.storage.validation.record_set import check_rest, first_entry

    view = memoryview(records)
    _, size, _ = first_entry(view, CURRENT_MAGIC)
    check_rest(view, size)


def nothing_to_load(_topic: str, _index: int) -> Partition | None:
    """Return None.

    `ReplicaManager.load` is this function before opening and after closing. Parked fetches, which
    may not load, use it as well.
    """
    return None
