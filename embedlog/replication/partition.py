"""One partition as this broker holds it: its log, who leads it, and how far readers may go.

    appended      log end offset          everything written here
    synced        synced offset           what power loss cannot take (fsync topics only)
    committed     high watermark          what every in-sync replica has, and fsync topics synced
                                          (see `replicas`; a follower is told it by its leader)
    stable        last stable offset      what no undecided transaction can touch

Writers hold the partition lock; readers hold nothing, as the log publishes by assignment. Delayed
operations are completed after the lock is released: they take locks of their own, and answer
clients.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import ZERO_UUID
from embedlog.replication.partition_state import NOBODY, NOTHING_DECIDED
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import Protocol

    from embedlog.common import Buffer, TopicPartition
    from embedlog.replication.partition_state import PartitionState
    from embedlog.replication.replicas import Replicas
    from embedlog.replication.throttles import Throttles
    from embedlog.storage.log.log import Log
    from embedlog.storage.log_values import LogAppendInfo
    from embedlog.storage.producers.entry import ProducerStateEntry, VerificationState
    from wire.records.encode.built import BuiltBatch

    class Follower(Protocol):
        """A partition of a fetch session, which wants to know when this one has changed."""

        def source_changed(self) -> Hashable | None:
            """Look again. What a parked fetch waits for; None when the session has ended."""

    class Joined(Protocol):
        """What this broker has where there are others."""

        def begin_term(self, partition: Partition, state: PartitionState) -> Replicas:
            """The other replicas, of a partition that this broker leads from here on."""

        def applied(self, partition: Partition) -> None:
            """Follow the partition's leader, or nobody. Requires: no partition lock."""

        @property
        def throttles(self) -> Throttles:
            """How fast replicas may be moved."""


NO_LEADER = NOBODY
NO_EPOCH = -1

_TOLD_WITH_LOG_START = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
)
"""A producer that missed records may find by the log start that they were deleted."""


class Isolation:
    """How far a reader may read. The first two are the `isolation_level` of requests."""

    HIGH_WATERMARK = 0
    LAST_STABLE = 1
    LOG_END = 2


class Partition:
    """A hosted partition. `lock` guards the log and every attribute; one writer at a time."""

    __slots__ = (
        "followers",
        "gone",
        "is_leader",
        "isr",
        "joined",
        "leader_epoch",
        "lock",
        "log",
        "min_isr",
        "others",
        "state",
        "syncs",
        "topic",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        log: Log,
        *,
        topic_id: bytes = ZERO_UUID,
        joined: Joined | None = None,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic = topic_partition.topic
        self.topic_id = topic_id
        self.log = log
        self.lock = log.lock
        self.state = NOTHING_DECIDED
        """What the controller decided last."""
        self.leader_epoch = NO_EPOCH
        self.is_leader = False
        self.joined = joined
        """None where this broker is the only one."""
        self.others: Replicas | None = None
        """The other replicas; None on a follower, and where there are none."""
        self.isr: tuple[int, ...] = ()
        """The replicas in sync, as the controller has decided."""
        self.min_isr = 1
        """min.insync.replicas, at most the number of replicas."""
        self.syncs = log.config.durability == "fsync"
        """Does the high watermark wait for the disk?"""
        self.gone: type[errors.KafkaError] | None = None
        """Why nobody is served any more: it was deleted, or its directory is offline."""
        self.followers: dict[Follower, None] = {}
        """The partitions of fetch sessions that want to know of changes. Any thread adds its own;
        iterate over a copy."""

    # Leadership

    def apply(self, state: PartitionState, node_id: int) -> None:
        """Take over what the controller decided: become leader or follower.

        A new term of this broker's begins at the log's end. What is older than the present state is
        left alone: the answer to a proposal may overtake the metadata. `node_id` is this broker's
        own. Requires: no partition lock.

        Raises:
            KafkaStorageError: the disk has failed at the beginning of a term; nothing was taken
                over.
        """
        with self.lock:
            if self.gone or state.partition_epoch < self.state.partition_epoch:
                return
            self._take(state, node_id)
        if self.joined is not None:
            self.joined.applied(self)

    def _take(self, state: PartitionState, node_id: int) -> None:
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
            self.others = None
            return
        if self.joined is None or len(state.replicas) < 2:
            self.others = None
        elif self.others is None or is_new_term:
            self.others = self.joined.begin_term(self, state)
        else:
            self.others.take(state)
        self.commit()

    def _begin_epoch(self, epoch: int) -> None:
        """Note the beginning of a term, before anything else is taken over."""
        try:
            self.log.epochs.assign(epoch)
        except errors.KafkaStorageError:
            if self.log.failure is not None:
                raise
            # A full disk: the first append of the term notes it, or is refused.

    def commit(self) -> None:
        """Raise the high watermark to what counts as committed now. Requires: the lock."""
        offsets, others = self.log.offsets, self.others
        if others is None:
            offsets.commit(self.syncs)
            return
        end = own = self.log.log_end_offset
        if self.syncs:
            own = min(own, self.log.durability.synced_offset)
        offsets.commit_to(others.committed_offset(own, end))

    def configure(self, *, min_insync_replicas: int) -> None:
        """Obey other settings from the next append on; the log has them already."""
        with self.lock:
            self.state = self.state.replaced(min_insync_replicas=min_insync_replicas)
            self.min_isr = self.state.min_isr
            self.syncs = self.log.config.durability == "fsync"
            if self.others is not None:
                self.others.state = self.state
            if self.is_leader:
                self.commit()

    def retire(self, reason: type[errors.KafkaError] = errors.UnknownTopicOrPartition) -> None:
        """Nothing is appended or read from here on: the topic is gone, or what `reason` says."""
        with self.lock:
            self.gone = reason
            self.is_leader = False
            self.others = None
            self.state = self.state.replaced(leader=NO_LEADER)
        if self.joined is not None:
            self.joined.applied(self)

    @property
    def index(self) -> int:
        """Its number in the topic."""
        return self.topic_partition.partition

    @property
    def leader(self) -> int:
        """The broker that leads it, -1 when nobody does."""
        return self.state.leader

    @property
    def replicas(self) -> tuple[int, ...]:
        """The brokers that hold it, the preferred leader first."""
        return self.state.replicas

    def check_leader(
        self, current_leader_epoch: int = NO_EPOCH, *, may_follow: bool = False
    ) -> None:
        """Raise unless this broker leads the partition in the epoch that the client knows.

        `may_follow`: it is enough that it has a replica.

        Raises:
            UnknownTopicOrPartition: it was deleted meanwhile.
            KafkaStorageError: its directory is offline.
            NotLeaderOrFollower: another broker leads it, or none.
            FencedLeaderEpoch: the client knows an older leader; it must refresh its metadata.
            UnknownLeaderEpoch: the client knows a newer leader than this broker does.
        """
        if self.gone:
            raise self.gone()
        if current_leader_epoch not in (self.leader_epoch, NO_EPOCH):
            if current_leader_epoch < self.leader_epoch:
                raise errors.FencedLeaderEpoch()
            raise errors.UnknownLeaderEpoch()
        if not self.is_leader and (self.joined is None or not may_follow):
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
        """Append one record set as the leader; offsets and epoch are stamped by the log.

        `records` are not modified. `now_ms` is wall time. `verification` guards what belongs to a
        transaction, see `begin_verification`; `transaction_version` is told of a marker. The caller
        completes delayed operations afterwards.

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
            try:
                info = log.append_as_leader(
                    records,
                    leader_epoch=self.leader_epoch,
                    origin=origin,
                    now_ms=now_ms,
                    magic_limits=magic_limits,
                    verification=verification,
                    transaction_version=transaction_version,
                )
            except errors.KafkaError as error:
                if error.code in _TOLD_WITH_LOG_START:
                    error.log_start_offset = log.offsets.log_start_offset
                raise
            if self.others is None:
                log.offsets.commit(self.syncs)
            else:
                if not info.duplicate:
                    self.others.appended(info.first_offset)
                self.commit()
        return info

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, *, supports_epoch_bump: bool
    ) -> VerificationState:
        """What guards the append of a transactional batch while its coordinator is asked.

        Raises as `check_leader` and `ProducerStateManager.begin_verification` do.
        """
        with self.lock:
            self.check_leader()
            return self.log.transactions.producers.begin_verification(
                producer_id, producer_epoch, sequence, supports_epoch_bump=supports_epoch_bump
            )

    def sync(self) -> None:
        """Make everything appended so far survive power loss, and let readers see it.

        The disk is waited for without the lock: appends go on and share the next sync.

        Raises:
            KafkaStorageError: the disk refused; the log is read-only from here on.
        """
        self.log.durability.sync(self.log.log_end_offset)
        with self.lock:
            if self.is_leader:
                self.commit()

    def delete_records(self, offset: int) -> int:
        """Give up the records below `offset` (-1: the high watermark); return that offset.

        Raises:
            OffsetOutOfRange: a negative offset, or one that is not committed.
            PolicyViolation: the topic is compacted only.
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
                # A full disk: what is given up makes the room that it takes to say so.
                from embedlog.storage.log.retention import free_below

                if log.failure is not None or not free_below(log, offset):
                    raise
                log.offsets.increment_log_start_offset(offset)
        return offset

    # Reading

    @property
    def low_watermark(self) -> int:
        """The offset below which no live replica holds records; -1 while that is not known."""
        start = self.log.offsets.log_start_offset
        others = self.others
        if others is None:
            return start
        with self.lock:
            return others.low_watermark(start)

    def end_offset(self, isolation: int) -> int:
        """The offset that a reader of this isolation may not reach; see `Isolation`."""
        log = self.log
        if isolation == Isolation.HIGH_WATERMARK:
            return log.offsets.high_watermark
        if isolation == Isolation.LAST_STABLE:
            return log.offsets.last_stable_offset
        return log.log_end_offset

    def end_offset_for_epoch(
        self, epoch: int, current_leader_epoch: int = NO_EPOCH
    ) -> tuple[int, int]:
        """(largest known epoch not above `epoch`, where it ended); (-1, -1) when unknown."""
        self.check_leader(current_leader_epoch)
        return self.log.epochs.end_offset_for(epoch)

    def active_producers(self) -> list[ProducerStateEntry]:
        """What is remembered of each producer, also by a follower.

        Raises:
            UnknownTopicOrPartition: it was deleted meanwhile.
        """
        with self.lock:
            if self.gone:
                raise self.gone()
            return list(self.log.transactions.producers)
