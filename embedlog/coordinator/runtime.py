"""`CoordinatorRuntime`: operations on the shards of one internal topic.

    the shard's lock is taken               the shard is loaded first, by replaying its log
    operation(shard) -> records, response
    records appended as one batch           refused: nothing happened, and the client is told
    records replayed into the shard
    the lock is released
    what was deferred is done               answers, purgatories
    the answer is given                     once the records are committed

A shard is what one partition of the topic says, and only the broker that leads the partition has
it. Everything runs in the caller's thread; timers run in whichever thread drives the scheduler.

Nobody is told of anything that is not committed: an answer waits for every record that the
operation could have seen. At the levels `memory` and `os` that is no wait at all.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import Generic
from embedlog.coordinator.answers import failed
from embedlog.coordinator.append_errors import as_coordinator_error
from embedlog.coordinator.loading import NO_PRODUCER_ID, replay_log
from embedlog.coordinator.openings import Openings
from embedlog.coordinator.pending_write import PendingWrite
from embedlog.coordinator.result import Result
from embedlog.coordinator.shard_context import ShardContext
from embedlog.errors import CorruptRecord, EmbedlogError, KafkaError
from embedlog.logger import Logger
from embedlog.runtime.locks import Rank, ranked_lock, ranked_rlock
from embedlog.runtime.pending import Pending
from embedlog.storage.validation.origin import AppendOrigin
from wire.error_codes import ErrorCode
from wire.records.encode.builder import build_batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, Protocol, TypeVar

    from embedlog.coordinator.loading import Replayable
    from embedlog.coordinator.records import RecordFormat
    from embedlog.coordinator.result import CoordinatorRecord
    from embedlog.coordinator.shard_context import CoordinatorWorld
    from embedlog.replication.partition import Partition
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.storage.producers.entry import VerificationState
    from wire.records.control import BuiltMarker

    class Shard(Replayable, Protocol):
        """The state of one partition."""

        def loaded(self) -> None:
            """The log was replayed: begin what runs by the clock."""

        def unloaded(self, error: KafkaError) -> None:
            """The shard ends here: whoever is parked is told `error`."""

    S = TypeVar("S", bound=Shard)
    T = TypeVar("T")
    R = TypeVar("R")
else:
    S = T = R = None

_log = Logger("coordinator")

_ACKS_ALL = -1
_MAGIC_LIMITS = (2, 2)
_BATCH_SIZE = 256 << 10
"""Of keys and values, where there may be several batches: well below what a log takes."""


class CoordinatorRuntime(Generic[S]):
    """The shards of `topic`. Every method may be called from any thread that holds no shard's lock.

    `make_shard(context)` makes an empty shard. `partitions_with_log` names the partitions that have
    a log on this broker, loaded or not. `when_opened(shard)` is called after the first load of each
    since the broker started; every result of it is appended before the next is asked for.
    """

    def __init__(
        self,
        world: CoordinatorWorld,
        replica_manager: ReplicaManager,
        *,
        topic: str,
        record_format: RecordFormat,
        make_shard: Callable[[ShardContext], S],
        partitions_with_log: Callable[[], Iterable[int]],
        commit_timeout_ms: int,
        codec: int = 0,
        when_opened: Callable[[S], Iterable[Result[Any]]] | None = None,
    ) -> None:
        self.topic = topic
        self._world = world
        self._replica_manager = replica_manager
        self._record_format = record_format
        self._make_shard = make_shard
        self._partitions_with_log = partitions_with_log
        self._commit_timeout_ms = commit_timeout_ms
        self._codec = codec
        self._when_opened = when_opened
        self._lock = ranked_lock(Rank.SHARDS)
        self._slots: dict[int, _Slot[S]] = {}
        self.openings = Openings()
        self._is_closed = False

    # Operations

    def write(self, partition: int, operation: Callable[[S], Result[T]]) -> Pending[T]:
        """Run an operation that may append; complete with its response once that is committed.

        The pending fails with the KafkaError that the operation raised (then nothing is appended),
        or with what clients are told when the log cannot be loaded or appended to.
        """
        try:
            slot = self._slot(partition)
        except EmbedlogError as error:
            return failed(as_coordinator_error(error))
        return self._write(slot, operation)

    def read(self, partition: int, operation: Callable[[S], R]) -> Pending[R]:
        """Run an operation that appends nothing; complete once all it could see is committed."""
        return self.write(partition, lambda shard: Result((), operation(shard)))

    def read_all(self, operation: Callable[[S], R]) -> list[Pending[R]]:
        """`read` on every partition that can hold any state."""
        return [self.read(partition, operation) for partition in self._all_partitions()]

    def write_all(self, operation: Callable[[S], Result[R]]) -> list[Pending[R]]:
        """`write` on every partition that can hold any state."""
        return [self.write(partition, operation) for partition in self._all_partitions()]

    def loaded(self) -> list[S]:
        """The shards that are loaded, without their locks."""
        return [slot.shard for slot in list(self._slots.values()) if slot.shard is not None]

    # Shards that come and go

    def follow_leader(self, index: int) -> None:
        """The leader of a partition may be another one now: load its shard here, or unload it.

        Whoever is parked at a shard that has gone is told to look elsewhere. Requires: no lock.
        """
        slot = self._slots.get(index)
        if slot is not None:
            self._locked(slot, _unload_if_led_elsewhere)
        try:
            partition = self._replica_manager.partition(self.topic, index)
        except EmbedlogError:
            return  # it is nobody's here, or cannot be opened: whoever asks for it is told
        if partition.is_leader:
            self.read(index, _nothing)

    def unload_all(self) -> None:
        """Drop every shard: the topic is gone. Whoever is parked there must look elsewhere."""
        for slot in self._take_slots():
            self._locked(slot, lambda slot: slot.unload(errors.NotCoordinator()))

    def close(self) -> None:
        """End: whoever is parked, and whoever comes after this, is told that there is nobody."""
        with self._lock:
            self._is_closed = True
        for slot in self._take_slots():
            self._locked(slot, lambda slot: slot.unload(errors.CoordinatorNotAvailable()))

    def _take_slots(self) -> list[_Slot[S]]:
        with self._lock:
            slots = list(self._slots.values())
            self._slots.clear()
        return slots

    def _all_partitions(self) -> list[int]:
        loaded = [index for index, slot in list(self._slots.items()) if slot.partition.is_leader]
        return sorted({*loaded, *self._partitions_with_log()})

    def _slot(self, index: int) -> _Slot[S]:
        """The place of a partition's shard. Requires: no lock, as the log may have to be opened.

        Raises:
            CoordinatorNotAvailable: the coordinator is closed.
            NotCoordinator: the partition does not exist here.
            KafkaError: its log cannot be opened.
        """
        if self._is_closed:
            raise errors.CoordinatorNotAvailable()
        slot = self._slots.get(index)
        if slot is not None and not slot.partition.gone:
            return slot
        try:
            partition = self._replica_manager.partition(self.topic, index)
        except KafkaError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise errors.NotCoordinator() from error
            raise
        with self._lock:
            former = self._slots.get(index)
            if former is not None and former.partition is partition:
                return former
            slot = self._slots[index] = _Slot(index, partition)
        if former is not None:
            # The topic was deleted and made again.
            self._locked(former, lambda slot: slot.unload(errors.NotCoordinator()))
        return slot

    # How an operation runs

    def _write(
        self,
        slot: _Slot[S],
        operation: Callable[[S], Result[T]],
        context: ShardContext | None = None,
    ) -> Pending[T]:
        """`context`: that of the shard which wants this, and none that was loaded after it."""
        write = PendingWrite(operation, context)
        try:
            self._locked(slot, lambda slot: self._operate(slot, write), context)
        except KafkaError as error:
            write.answer_error(error)
            return write.pending
        if write.is_committed:
            write.answer()
        else:
            self._await_commit(slot, write)
        return write.pending

    def _locked(
        self,
        slot: _Slot[S],
        work: Callable[[_Slot[S]], None],
        former: ShardContext | None = None,
    ) -> None:
        """Do `work` under the shard's lock; after its release, what was deferred meanwhile.

        `former` is the context of a shard that may have been unloaded since it wanted the work.
        """
        deferred: list[Callable[[], None]] = []
        try:
            with slot.lock:
                assert not slot.is_busy, "an operation within an operation: defer it"
                slot.is_busy = True
                present = slot.context
                try:
                    work(slot)
                finally:
                    slot.is_busy = False
                    for context in (former, present, slot.context):
                        if context is not None:
                            deferred += context.take_deferred()
        finally:
            for action in deferred:
                action()

    def _operate(self, slot: _Slot[S], write: PendingWrite[S, T]) -> None:
        """Requires: the shard's lock.

        Raises:
            KafkaError: what the operation raised, or what clients are told of a log's refusal.
        """
        if write.context is not None and write.context is not slot.context:
            raise errors.NotCoordinator()
        shard = self._load(slot)
        write.context = slot.context
        try:
            write.result = result = write.operation(shard)
        except BaseException as error:
            if not isinstance(error, Exception):
                # Ctrl-C: nobody knows how far it came. The next request loads the shard anew.
                slot.unload(errors.NotCoordinator())
            raise
        try:
            if result.records or result.marker is not None:
                self._append(slot, shard, result)
            write.end_offset = slot.end_offset
            if slot.partition.log.offsets.high_watermark >= slot.end_offset:
                write.is_committed = True
                write.appended(None)
        except EmbedlogError as error:
            told = as_coordinator_error(error)
            write.appended(told)
            raise told from error
        except BaseException:
            # Ctrl-C, too: what was appended is in the log, and who waits to hear of it is not.
            if result.on_append is not None:
                slot.unload(errors.NotCoordinator())
            raise

    def _append(self, slot: _Slot[S], shard: S, result: Result[T]) -> None:
        partition = slot.partition
        assert slot.context is not None, partition
        slot.context.defer(lambda: self._replica_manager.appended(partition))
        wall_ms = self._world.runtime.clock.wall_ms()
        marker = result.marker
        if marker is not None:
            _write_batch(slot, marker.batch, wall_ms, marker.transaction_version)
            shard.end_transaction(marker.producer_id, is_committed=marker.is_committed)
        if not result.records:
            return
        producer = result.producer
        producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
        verification = None if producer is None else producer.verification
        for batch, records in self._batches(result, wall_ms):
            first_offset = _write_batch(slot, batch, wall_ms, verification=verification)
            if result.is_replayed:
                for offset, record in enumerate(records, first_offset):
                    shard.replay(record, offset=offset, producer_id=producer_id)

    def _batches(
        self, result: Result[T], wall_ms: int
    ) -> Iterator[tuple[bytes, Sequence[CoordinatorRecord]]]:
        """Yield (batch, its records): one, unless the result need not be atomic and is large."""
        keys: list[bytes] = []
        values: list[bytes | None] = []
        size = first = 0
        for index, record in enumerate(result.records):
            key, value = self._record_format.encode(record)
            size += len(key) + (0 if value is None else len(value))
            if size > _BATCH_SIZE and keys and not result.is_atomic:
                batch = build_batch(values, keys=keys, timestamps=wall_ms, codec=self._codec)
                yield batch, result.records[first:index]
                keys, values, size, first = [], [], 0, index
            keys.append(key)
            values.append(value)
        producer = result.producer
        batch = build_batch(
            values,
            keys=keys,
            timestamps=wall_ms,
            codec=self._codec,
            producer_id=NO_PRODUCER_ID if producer is None else producer.producer_id,
            producer_epoch=-1 if producer is None else producer.producer_epoch,
            transactional=producer is not None,
        )
        yield batch, result.records[first:]

    def _await_commit(self, slot: _Slot[S], write: PendingWrite[S, T]) -> None:
        from embedlog.coordinator.delayed_commit import DelayedCommit

        def when_decided(error: KafkaError | None) -> None:
            self._locked(slot, lambda _slot: write.appended(error), write.context)
            if error is None:
                write.answer()
            else:
                write.answer_error(error)

        operation = DelayedCommit(
            self._commit_timeout_ms, slot.partition, write.end_offset, when_decided
        )
        self._replica_manager.produce_purgatory.try_complete_else_watch(
            operation, [slot.partition.topic_partition]
        )

    def _load(self, slot: _Slot[S]) -> S:
        """The slot's shard, loaded if need be. Requires: its lock.

        Raises:
            NotCoordinator: another broker leads the partition, or its log cannot be read.
            UnknownServerError: the log is damaged.
        """
        if slot.damage is not None:
            raise as_coordinator_error(slot.damage)
        partition = slot.partition
        shard = slot.shard
        if shard is not None:
            if partition.is_leader and partition.leader_epoch == slot.leader_epoch:
                return shard
            # Another leader may have appended since this shard was loaded.
            slot.unload(errors.NotCoordinator())
        if self._is_closed:
            raise errors.CoordinatorNotAvailable()
        try:
            leader_epoch = partition.leader_epoch
            partition.check_leader()
            context = ShardContext(
                slot.index,
                self._world,
                lambda context, operation: self._write(slot, operation, context),
                leader_epoch=leader_epoch,
            )
            shard = self._make_shard(context)
            end_offset = replay_log(partition.log, self._record_format, shard)
        except CorruptRecord as error:
            slot.damage = error
            _log.error("what is in %s is refused: %s", partition.topic_partition, error)
            raise as_coordinator_error(error) from error
        except EmbedlogError as error:
            raise as_coordinator_error(error) from error
        slot.fill(shard, context, leader_epoch=leader_epoch, end_offset=end_offset)
        shard.loaded()
        if self._when_opened is not None and self.openings.is_first(slot.index):
            self._append_all(slot, shard, self._when_opened(shard))
        return shard

    def _append_all(self, slot: _Slot[S], shard: S, results: Iterable[Result[Any]]) -> None:
        """Requires: the shard's lock."""
        try:
            for result in results:
                if result.records:
                    self._append(slot, shard, result)
        except EmbedlogError:
            # The log cannot be written. It can be read, and whoever writes is told why.
            return


def _write_batch(
    slot: _Slot[Any],
    batch: bytes | BuiltMarker,
    wall_ms: int,
    transaction_version: int = -1,
    verification: VerificationState | None = None,
) -> int:
    """Append to the shard's log; the offset of the first record."""
    info = slot.partition.append(
        batch,
        acks=_ACKS_ALL,
        origin=AppendOrigin.COORDINATOR,
        magic_limits=_MAGIC_LIMITS,
        now_ms=wall_ms,
        current_leader_epoch=slot.leader_epoch,
        verification=verification,
        transaction_version=transaction_version,
    )
    slot.end_offset = info.last_offset + 1
    return info.first_offset


def _unload_if_led_elsewhere(slot: _Slot[Any]) -> None:
    partition = slot.partition
    if not partition.is_leader or partition.leader_epoch != slot.leader_epoch:
        slot.unload(errors.NotCoordinator())


def _nothing(_shard: object) -> None:
    """Loading is all that is wanted."""


class _Slot(Generic[S]):
    """The place of one shard. `lock` guards everything that changes."""

    __slots__ = (
        "context",
        "damage",
        "end_offset",
        "index",
        "is_busy",
        "leader_epoch",
        "lock",
        "partition",
        "shard",
    )

    def __init__(self, index: int, partition: Partition) -> None:
        self.index = index
        self.partition = partition
        self.lock = ranked_rlock(Rank.SHARD)
        self.is_busy = False
        self.shard: S | None = None
        self.context: ShardContext | None = None
        self.leader_epoch = -1
        """The epoch in which the shard was loaded; in a later one the log may hold more."""
        self.end_offset = 0
        """The offset after the last record that the shard has seen."""
        self.damage: CorruptRecord | None = None
        """Why the log cannot be replayed: found once, and for as long as the log is open."""

    def fill(self, shard: S, context: ShardContext, *, leader_epoch: int, end_offset: int) -> None:
        self.shard = shard
        self.context = context
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset

    def unload(self, error: KafkaError) -> None:
        shard, context = self.shard, self.context
        if shard is None:
            return
        assert context is not None, self.index
        context.timer.cancel_all()
        shard.unloaded(error)
        self.shard = self.context = None
