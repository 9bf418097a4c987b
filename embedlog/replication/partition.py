"""One partition on this broker: its log, its leader, and the offsets up to which readers may read.

    appended      log end offset          all records in the log
    synced        synced offset           records that survive a loss of power (fsync topics only)
    committed     high watermark          records that every in-sync replica has, and has synced on
                                          fsync topics. The leader computes the offset, see
                                          `remote_replicas`; followers get it in fetches.
                                          `storage/log/offsets.py` keeps it
    stable        last stable offset      committed records before the first open transaction

Writers hold the partition lock. Readers hold no lock: the log publishes each new state by one
assignment. Delayed operations are completed after the lock is released, because they take their own
locks and answer clients.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import ZERO_UUID, Value
from embedlog.replication.leader_and_isr import NOBODY, NOTHING_DECIDED, LeaderAndIsr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from embedlog.common import Buffer, TopicPartition
    from embedlog.replication.remote_replicas import RemoteReplicas
    from embedlog.storage.log.log import Log
    from embedlog.storage.log_values import LogAppendInfo
    from embedlog.storage.producers.entry import ProducerStateEntry, VerificationState
    from wire.records.encode.built import BuiltBatch

NO_LEADER = NOBODY
NO_EPOCH = -1


class Isolation:
    """The offset at which a reader stops: high watermark, last stable offset, or log end offset.

    The first two numbers are the values of `isolation_level` in requests.
    """

    HIGH_WATERMARK = 0
    LAST_STABLE = 1
    LOG_END = 2


class ClusterHooks(Value):
    """Functions that a partition calls if the cluster has several brokers."""

    begin_term: Callable[[Partition, LeaderAndIsr], RemoteReplicas]
    """Called under the partition lock when this broker begins to lead. Returns other replicas."""
    on_change: Callable[[Partition], None]
    """Called after a change of the leader or the ISR. No lock is held."""


class Partition:
    """A hosted partition. `lock` guards the writes to the log and to all attributes."""

    __slots__ = (
        "_hooks",
        "is_leader",
        "isr",
        "leader_epoch",
        "lock",
        "log",
        "min_isr",
        "remote_replicas",
        "retired_with",
        "state",
        "syncs",
        "topic",
        "topic_id",
        "topic_partition",
        "watchers",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        log: Log,
        *,
        topic_id: bytes = ZERO_UUID,
        hooks: ClusterHooks | None = None,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic = topic_partition.topic
        self.topic_id = topic_id
        self.log = log
        self.lock = log.lock
        self.state = NOTHING_DECIDED
        self.leader_epoch = NO_EPOCH
        self.is_leader = False
        self._hooks = hooks
        self.remote_replicas: RemoteReplicas | None = None
        """The other replicas; None on a follower and for a partition of one replica."""
        self.isr: tuple[int, ...] = ()
        self.min_isr = 1
        """min.insync.replicas, at most the number of replicas."""
        self.syncs = log.config.durability == "fsync"
        """Whether the high watermark waits for the disk, as on `fsync` topics."""
        self.retired_with: type[errors.KafkaError] | None = None
        """The error for all requests after the topic was deleted or its directory went offline."""
        self.watchers: dict[Callable[[], Hashable | None], None] = {}
        """Functions of fetch sessions, to call when the partition has changed. Each returns the
        purgatory key of the session's fetch, or None if the session has ended. Any thread may add
        a function, so iterate over a copy."""

    # Leadership

    def apply(self, state: LeaderAndIsr, node_id: int) -> None:
        """Take over a decision of the controller: become leader or follower.

        If this broker begins a term as leader, the term begins at the end of the log. A decision
        older than the present one is ignored: the answer to a proposal may overtake the metadata.
        `node_id` is the id of this broker. Requires: no partition lock.

        Raises:
            KafkaStorageError: the disk failed at the beginning of a term; the old state stays.
        """
        with self.lock:
            if self.retired_with or state.partition_epoch < self.state.partition_epoch:
                return
            self._take(state, node_id)
        if self._hooks is not None:
            self._hooks.on_change(self)

    def _take(self, state: LeaderAndIsr, node_id: int) -> None:
        is_leader = state.leader == node_id
        is_new_term = state.leader_epoch > self.leader_epoch
        if is_new_term and is_leader and state.leader_epoch > self.log.epochs.latest:
            self._begin_epoch(state.leader_epoch)
        self.state = state
        self.isr = state.isr
        self.min_isr = state.min_isr
        self.is_leader = is_leader
        if is_new_term:
            self.leader_epoch = state.leader_epoch
        if not self.is_leader:
            self.remote_replicas = None
            return
        if self._hooks is None or len(state.replicas) < 2:
            self.remote_replicas = None
        elif self.remote_replicas is None or is_new_term:
            self.remote_replicas = self._hooks.begin_term(self, state)
        else:
            self.remote_replicas.take(state)
        self.commit()

    def _begin_epoch(self, epoch: int) -> None:
        """Record the first offset of a new leader epoch before the rest of the decision applies."""
        try:
            self.log.epochs.assign(epoch)
        except errors.KafkaStorageError:
            if self.log.failure is not None:
                raise
            # The disk is full, so go on: the term's first append records the epoch, or is refused.

    def commit(self) -> None:
        """Raise the high watermark to the offset that is committed now. Requires: the lock."""
        offsets, remote = self.log.offsets, self.remote_replicas
        if remote is None:
            offsets.commit(self.syncs)
            return
        end = own = self.log.log_end_offset
        if self.syncs:
            own = min(own, self.log.durability.synced_offset)
        offsets.commit_to(remote.committed_offset(own, end))

    def configure(self, *, min_insync_replicas: int) -> None:
        """Apply new topic settings to the next append. Requires: the log has its new settings."""
        with self.lock:
            self.state = self.state.replace(min_insync_replicas=min_insync_replicas)
            self.min_isr = self.state.min_isr
            self.syncs = self.log.config.durability == "fsync"
            if self.remote_replicas is not None:
                self.remote_replicas.state = self.state
            if self.is_leader:
                self.commit()

    def retire(self, reason: type[errors.KafkaError] = errors.UnknownTopicOrPartition) -> None:
        """Refuse all appends and reads from now on, with the error `reason`."""
        with self.lock:
            self.retired_with = reason
            self.is_leader = False
            self.remote_replicas = None
            self.state = self.state.replace(leader=NO_LEADER)
        if self._hooks is not None:
            self._hooks.on_change(self)

    @property
    def index(self) -> int:
        return self.topic_partition.partition

    @property
    def leader(self) -> int:
        """The broker that leads the partition; -1 without a leader."""
        return self.state.leader

    @property
    def replicas(self) -> tuple[int, ...]:
        """The brokers that have a replica, the preferred leader first."""
        return self.state.replicas

    def check_leader(
        self, current_leader_epoch: int = NO_EPOCH, *, may_follow: bool = False
    ) -> None:
        """Raise unless this broker leads the partition in the epoch that the client knows.

        With `may_follow` a follower is enough.

        Raises:
            UnknownTopicOrPartition: the topic has been deleted.
            KafkaStorageError: the log directory is offline.
            NotLeaderOrFollower: another broker is the leader, or no broker is.
            FencedLeaderEpoch: the client knows an older leader; it must refresh its metadata.
            UnknownLeaderEpoch: the client knows a newer leader than this broker does.
        """
        if self.retired_with:
            raise self.retired_with()
        if current_leader_epoch not in (self.leader_epoch, NO_EPOCH):
            if current_leader_epoch < self.leader_epoch:
                raise errors.FencedLeaderEpoch()
            raise errors.UnknownLeaderEpoch()
        if not self.is_leader and (self._hooks is None or not may_follow):
            raise errors.NotLeaderOrFollower()

    def _too_few_in_sync(self) -> errors.KafkaError:
        error = errors.NotEnoughReplicas()
        error.log_start_offset = self.log.offsets.log_start_offset
        return error

    # Writing

    def append(
        self,
        records: Buffer | BuiltBatch,
        *,
        acks: int,
        origin: int,
        magic_limits: tuple[int, int],
        now_ms: int,
        current_leader_epoch: int = NO_EPOCH,
        verification: VerificationState | None = None,
        transaction_version: int = -1,
    ) -> LogAppendInfo:
        """Append one record set as the leader; the log assigns offsets and stamps the epoch.

        `records` are not modified. `now_ms` is wall time. A transactional batch needs
        `verification`, see `begin_verification`. A transaction marker needs `transaction_version`.
        The caller must complete delayed operations afterwards.

        Raises:
            NotLeaderOrFollower, UnknownTopicOrPartition, FencedLeaderEpoch, UnknownLeaderEpoch:
                see `check_leader`.
            NotEnoughReplicas: acks is -1 and too few replicas are in sync; nothing was written.
            KafkaError: the log refused the records; nothing was written.
        """
        log = self.log
        with self.lock:
            if not self.is_leader or current_leader_epoch != NO_EPOCH:
                self.check_leader(current_leader_epoch)
            if acks == -1 and len(self.isr) < self.min_isr:
                raise self._too_few_in_sync()
            info = log.append_as_leader(
                records,
                leader_epoch=self.leader_epoch,
                origin=origin,
                now_ms=now_ms,
                magic_limits=magic_limits,
                verification=verification,
                transaction_version=transaction_version,
            )
            if self.remote_replicas is None:
                log.offsets.commit(self.syncs)
            else:
                if not info.duplicate:
                    self.remote_replicas.appended(info.first_offset)
                self.commit()
        return info

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, supports_epoch_bump: bool
    ) -> VerificationState:
        """Begin to verify that a transactional batch belongs to an open transaction.

        Call it before you ask the transaction coordinator, and pass the returned state to `append`.
        `append` refuses the batch if a marker has ended the transaction in between.

        Raises:
            KafkaError: an error of `check_leader` or of `ProducerStateManager.begin_verification`.
        """
        with self.lock:
            self.check_leader()
            return self.log.transactions.producers.begin_verification(
                producer_id, producer_epoch, sequence, supports_epoch_bump=supports_epoch_bump
            )

    def sync(self) -> None:
        """Make all appended records survive a loss of power, and let readers see them.

        The thread waits for the disk without the lock. Other appends go on meanwhile, and share the
        next sync.

        Raises:
            KafkaStorageError: the disk refused; the log is read-only from here on.
        """
        self.log.durability.sync(self.log.log_end_offset)
        with self.lock:
            if self.is_leader:
                self.commit()

    def delete_records(self, offset: int) -> int:
        """Delete the records below `offset` (-1: the high watermark) and return that offset.

        Raises:
            OffsetOutOfRange: the offset is negative or not committed.
            PolicyViolation: the topic's cleanup.policy does not contain delete.
            KafkaStorageError: the disk refuses; at most whole segments were removed.
        """
        with self.lock:
            self.check_leader()
            log = self.log
            if not log.config.delete:
                raise errors.PolicyViolation(
                    f"Records of partition {self.topic_partition} can not be deleted due to the "
                    "configured policy"
                )
            if offset == -1:
                offset = log.offsets.high_watermark
            if not 0 <= offset <= log.offsets.high_watermark:
                raise errors.OffsetOutOfRange(
                    f"The specified offset {offset} is not in the range "
                    f"[0, {log.offsets.high_watermark}]"
                )
            try:
                log.offsets.increment_log_start_offset(offset)
            except errors.KafkaStorageError:
                # The disk is full and cannot store the new start: first free the space of the
                # deleted records.
                from embedlog.storage.log.retention import free_below

                if log.failure is not None or not free_below(log, offset):
                    raise
                log.offsets.increment_log_start_offset(offset)
        return offset

    # Reading

    @property
    def low_watermark(self) -> int:
        """The offset below which no live replica has records; -1 until all of them have fetched."""
        start = self.log.offsets.log_start_offset
        remote = self.remote_replicas
        if remote is None:
            return start
        with self.lock:
            return remote.low_watermark(start)

    def end_offset(self, isolation: int) -> int:
        """Return the offset at which a reader with this isolation must stop."""
        log = self.log
        if isolation == Isolation.HIGH_WATERMARK:
            return log.offsets.high_watermark
        if isolation == Isolation.LAST_STABLE:
            return log.offsets.last_stable_offset
        return log.log_end_offset

    def end_offset_for_epoch(
        self, epoch: int, current_leader_epoch: int = NO_EPOCH
    ) -> tuple[int, int]:
        """Return (largest known epoch up to `epoch`, its end offset), or (-1, -1) if unknown."""
        self.check_leader(current_leader_epoch)
        return self.log.epochs.end_offset_for(epoch)

    def active_producers(self) -> list[ProducerStateEntry]:
        """Return the state of each producer that the log remembers, on a leader or a follower.

        Raises:
            UnknownTopicOrPartition: the topic has been deleted.
        """
        with self.lock:
            if self.retired_with:
                raise self.retired_with()
            return list(self.log.transactions.producers)
