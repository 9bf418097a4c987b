"""`CoordinatorRuntime`: operations on the shards of one internal topic.

    take the shard's lock                   load the shard first, by replaying its log
    operation(shard) -> records, response
    append the records as one batch         if refused, nothing happened: answer the error
    replay the records into the shard
    release the lock
    run the deferred actions                answers, purgatories
    answer                                  once the records are committed

A shard is the state of one partition. Only the partition's leader loads it. Everything runs in the
caller's thread; timers run in the thread that drives the scheduler.

An answer reports only committed state: it waits for every record that the operation could have
seen. At the durability levels `memory` and `os` this takes no time.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.common import Generic
from embedlog.coordinator.answers import failed
from embedlog.coordinator.append_errors import as_coordinator_error
from embedlog.coordinator.loading import NO_PRODUCER_ID, replay_log
from embedlog.coordinator.result import CoordinatorRecord, Result
from embedlog.coordinator.shard_context import ShardContext
from embedlog.errors import CorruptRecord, EmbedlogError, KafkaError
from embedlog.logger import Logger
from embedlog.runtime.locks import Rank, ranked_lock, ranked_rlock
from embedlog.runtime.outer_call import ANYWHERE
from embedlog.runtime.pending import Pending
from embedlog.storage.validation.origin import AppendOrigin
from wire.error_codes import ErrorCode
from wire.records.encode.builder import build_batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from embedlog.coordinator.records import RecordFormat
    from embedlog.coordinator.shard_context import CoordinatorWorld, Shard
    from embedlog.replication.partition import Partition
    from embedlog.replication.replica_manager import ReplicaManager
    from embedlog.runtime.scheduler import Scheduler
    from embedlog.storage.data_directories import DataDirectories
    from embedlog.storage.producers.entry import VerificationState
    from wire.records.control import BuiltMarker

    S = TypeVar("S", bound=Shard)
    T = TypeVar("T")
    R = TypeVar("R")
else:
    S = T = R = None

_log = Logger("coordinator")

_ACKS_ALL = -1
_MAGIC_LIMITS = (2, 2)
_BATCH_SIZE = 256 << 10
"""Largest size of the records in a batch, if a result may span several batches. It is far below the
default of the log's limit."""
_BATCH_OVERHEAD = 100
_RECORD_OVERHEAD = 32
"""Upper bounds for the header of a batch, and for the parts of a record beside key and value."""


class CoordinatorRuntime(Generic[S]):
    """The shards of `topic`. Every method may be called from any thread that holds no shard's lock.

    `make_shard(context)` makes an empty shard. `when_opened(shard)` is called after the first load
    of each shard since the broker started; every result that it yields is appended before it
    continues.
    """

    def __init__(
        self,
        world: CoordinatorWorld,
        replica_manager: ReplicaManager,
        log_manager: DataDirectories,
        *,
        topic: str,
        record_format: RecordFormat,
        make_shard: Callable[[ShardContext], S],
        commit_timeout_ms: int,
        codec: int = 0,
        when_opened: Callable[[S], Iterable[Result[Any]]] | None = None,
    ) -> None:
        self.topic = topic
        self._world = world
        self._replica_manager = replica_manager
        self._log_manager = log_manager
        self._record_format = record_format
        self._make_shard = make_shard
        self._commit_timeout_ms = commit_timeout_ms
        self._codec = codec
        self._when_opened = when_opened
        self._watchers = world.runtime.watchers
        self._lock = ranked_lock(Rank.SHARDS)
        self._slots: dict[int, _Slot[S]] = {}
        self.leader_changes = LeaderChanges(world.runtime.scheduler, self.follow_leader)
        self.first_loads = FirstLoads()
        self._is_closed = False

    # Operations

    def write(self, partition: int, operation: Callable[[S], Result[T]]) -> Pending[T]:
        """Run an operation that may append; complete with its response once its records are
        committed.

        The pending fails with the KafkaError that the operation raised (then nothing is appended),
        or with the error for clients when the log cannot be loaded or appended to.
        """
        try:
            slot = self._slot(partition)
        except EmbedlogError as error:
            return failed(as_coordinator_error(error))
        return self._write(slot, operation)

    def read(self, partition: int, operation: Callable[[S], R]) -> Pending[R]:
        """Run an operation that appends nothing; complete once the state it saw is committed."""
        return self.write(partition, lambda shard: Result((), operation(shard)))

    def read_all(self, operation: Callable[[S], R]) -> list[Pending[R]]:
        return [self.read(partition, operation) for partition in self._all_partitions()]

    def write_all(self, operation: Callable[[S], Result[R]]) -> list[Pending[R]]:
        return [self.write(partition, operation) for partition in self._all_partitions()]

    def loaded(self) -> list[S]:
        """Return the loaded shards, without their locks."""
        return [slot.shard for slot in list(self._slots.values()) if slot.shard is not None]

    # Shards that come and go

    def follow_leader(self, index: int) -> None:
        """Load or unload the shard of a partition after its leader may have changed.

        Parked requests of an unloaded shard fail with NotCoordinator. Requires: no lock.
        """
        slot = self._slots.get(index)
        if slot is not None:
            self._locked(slot, _unload_if_led_elsewhere)
        try:
            partition = self._replica_manager.partition(self.topic, index)
        except EmbedlogError:
            return  # no such partition here, or an unreadable log: later requests get the error
        if partition.is_leader:
            self.read(index, lambda _shard: None)  # loads it

    def unload_all(self) -> None:
        """Drop every shard when the topic is deleted; parked requests fail with NotCoordinator."""
        for slot in self._take_slots():
            self._locked(slot, lambda slot: slot.unload(errors.NotCoordinator()))

    def close(self) -> None:
        """Close: parked and later requests fail with CoordinatorNotAvailable."""
        self.leader_changes.close()
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
        topic = self._world.metadata().topics_by_name.get(self.topic)
        if topic is None:
            return sorted(loaded)
        # Include partitions whose log exists but is not open yet, if this broker leads them.
        with_log = {index for name, index in self._log_manager.partitions() if name == self.topic}
        node_id = self._replica_manager.node_id
        led = {each.partition for each in topic.partitions if each.leader == node_id}
        return sorted({*loaded, *(led & with_log)})

    def _slot(self, index: int) -> _Slot[S]:
        """Return the slot of a partition. Requires: no lock, because this may open the log.

        Raises:
            CoordinatorNotAvailable: the coordinator is closed.
            NotCoordinator: the partition does not exist here.
            KafkaError: its log cannot be opened.
        """
        if self._is_closed:
            raise errors.CoordinatorNotAvailable()
        slot = self._slots.get(index)
        if slot is not None and not slot.partition.retired_with:
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
            # The topic was deleted and created again.
            self._locked(former, lambda slot: slot.unload(errors.NotCoordinator()))
        return slot

    # How an operation runs

    def _write(
        self,
        slot: _Slot[S],
        operation: Callable[[S], Result[T]],
        context: ShardContext | None = None,
    ) -> Pending[T]:
        """Run a write. If a shard requested it, fail unless the slot still has its `context`."""
        write = _PendingWrite(operation, context)
        try:
            self._locked(slot, lambda slot: self._operate(slot, write), context)
        except KafkaError as error:
            write.answer_error(error)
            return write.pending
        except BaseException as error:
            if type(error) in ANYWHERE or not isinstance(error, Exception):
                # Load the shard anew, also if no request asks for it: time-outs are its own.
                self.leader_changes.note([slot.index])
            raise
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
        """Do `work` under the shard's lock; run the deferred actions after its release.

        These include the actions of `former`, the context that requested the work: its shard may
        have been unloaded since.
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
                            context.move_deferred(deferred)
        finally:
            _run_all(deferred)
            if self._watchers:
                for changed in list(self._watchers):
                    changed()

    def _operate(self, slot: _Slot[S], write: _PendingWrite[S, T]) -> None:
        """Run the operation and append its records. Requires: the shard's lock.

        Raises:
            KafkaError: the operation raised it, or the log cannot be loaded or appended to.
        """
        if write.context is not None and write.context is not slot.context:
            raise errors.NotCoordinator()
        shard = self._load(slot)
        write.context = slot.context
        try:
            write.result = result = write.operation(shard)
        except BaseException as error:
            if type(error) in ANYWHERE or not isinstance(error, Exception):
                # After Ctrl-C the shard's state is unknown. The next request loads the shard anew.
                slot.is_doubtful = True
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
            if isinstance(error, KafkaError) and error.code == ErrorCode.MESSAGE_TOO_LARGE:
                count, partition = len(result.records), slot.partition.topic_partition
                _log.warning("%s: an operation has %d records: %s", partition, count, error)
            refusal = as_coordinator_error(error)
            write.appended(refusal)
            raise refusal from error
        except BaseException:
            # On Ctrl-C the records are already in the log, but nobody waits for them: unload the
            # shard. A state to which records add up must not lack one.
            if result.on_append is not None or self._record_format.is_cumulative:
                slot.is_doubtful = True
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
        for batch, records in self._batches(result, wall_ms, partition.log.config.batch_size_max):
            first_offset = _write_batch(slot, batch, wall_ms, verification=verification)
            if result.is_replayed:
                for offset, record in enumerate(records, first_offset):
                    shard.replay(record, offset=offset, producer_id=producer_id)

    def _batches(
        self, result: Result[T], wall_ms: int, size_max: int
    ) -> Iterator[tuple[bytes, Sequence[CoordinatorRecord]]]:
        """Yield (batch, its records): one batch, or several if the result need not be atomic.

        `size_max` is the largest batch that the log takes.
        """
        size_max = min(_BATCH_SIZE, size_max - _BATCH_OVERHEAD)
        keys: list[bytes] = []
        values: list[bytes | None] = []
        parts = [(0, keys, values)]
        size = 0
        for index, record in enumerate(result.records):
            key, value = self._record_format.encode(record)
            size_of_one = _RECORD_OVERHEAD + len(key) + (0 if value is None else len(value))
            size += size_of_one
            if size > size_max and keys and not result.is_atomic:
                keys, values, size = [], [], size_of_one
                parts.append((index, keys, values))
            keys.append(key)
            values.append(value)
        producer = result.producer
        for first, keys, values in parts:
            batch = build_batch(
                values,
                keys=keys,
                timestamps=wall_ms,
                codec=self._codec,
                producer_id=NO_PRODUCER_ID if producer is None else producer.producer_id,
                producer_epoch=-1 if producer is None else producer.producer_epoch,
                transactional=producer is not None,
            )
            yield batch, result.records[first : first + len(keys)]

    def _await_commit(self, slot: _Slot[S], write: _PendingWrite[S, T]) -> None:
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
        """Return the slot's shard; load it first if necessary. Requires: its lock.

        Raises:
            NotCoordinator: another broker leads the partition, or its log cannot be read.
            UnknownServerError: the log is damaged.
        """
        if slot.damage is not None:
            raise as_coordinator_error(slot.damage)
        partition = slot.partition
        shard = slot.shard
        if shard is not None:
            is_led = partition.is_leader and partition.leader_epoch == slot.leader_epoch
            if is_led and not slot.is_doubtful:
                return shard
            # Another leader may have appended since this shard was loaded.
            slot.unload(errors.NotCoordinator())
        if self._is_closed:
            raise errors.CoordinatorNotAvailable()
        try:
            leader_epoch = partition.leader_epoch
            partition.check_leader()
            _commit_written(partition)
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
            _log.error("cannot load the coordinator of %s: %s", partition.topic_partition, error)
            raise as_coordinator_error(error) from error
        except EmbedlogError as error:
            raise as_coordinator_error(error) from error
        slot.shard, slot.context = shard, context
        slot.leader_epoch, slot.end_offset = leader_epoch, end_offset
        shard.loaded()
        if self._when_opened is not None and self.first_loads.is_first(slot.index):
            self._append_all(slot, shard, self._when_opened(shard))
        return shard

    def _append_all(self, slot: _Slot[S], shard: S, results: Iterable[Result[Any]]) -> None:
        try:
            for result in results:
                if result.records:
                    self._append(slot, shard, result)
        except EmbedlogError:
            # The log can be read but not written: later writes fail with the reason.
            return


def _run_all(actions: list[Callable[[], None]], *, was_interrupted: bool = False) -> None:
    """Run deferred actions, all of them: other callers wait for their effects.

    Ctrl-C ends one of them. It runs once more, which is harmless, and then the rest.
    `was_interrupted`: this has happened to the first one.
    """
    while actions:
        try:
            actions[0]()
        except BaseException as error:
            is_last_try = was_interrupted or isinstance(error, Exception)
            if is_last_try:
                del actions[0]
            _run_all(actions, was_interrupted=not is_last_try)
            raise
        del actions[0]
        was_interrupted = False


def _write_batch(
    slot: _Slot[Any],
    batch: bytes | BuiltMarker,
    wall_ms: int,
    transaction_version: int = -1,
    verification: VerificationState | None = None,
) -> int:
    """Append to the shard's log; return the offset of the first record."""
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


def _commit_written(partition: Partition) -> None:
    """Commit the records of an append that Ctrl-C ended before it could: the only replica has them.

    Otherwise reads of the shard that replays them would wait for the next append.
    """
    with partition.lock:
        if partition.remote_replicas is None and not partition.log.health.failure:
            partition.log.check_usable()
            partition.log.offsets.commit(partition.syncs)


def _unload_if_led_elsewhere(slot: _Slot[Any]) -> None:
    partition = slot.partition
    if not partition.is_leader or partition.leader_epoch != slot.leader_epoch:
        slot.unload(errors.NotCoordinator())


class _PendingWrite(Generic[S, T]):
    """An operation from its start to its answer. Requires: the shard's lock, except to answer."""

    def __init__(self, operation: Callable[[S], Result[T]], context: ShardContext | None) -> None:
        self.operation = operation
        self.context = context
        self.pending: Pending[T] = Pending()
        self.result: Result[T] | None = None
        self.end_offset = 0
        self.is_committed = False

    def appended(self, error: KafkaError | None) -> None:
        """Call the operation's `on_append`, if it has one. Requires: the shard's lock."""
        assert self.result is not None, self.operation
        if self.result.on_append is not None:
            self.result.on_append(error)

    def answer(self) -> None:
        assert self.result is not None, self.operation
        response: Any = self.result.response
        self.pending.follow(response)

    def answer_error(self, error: KafkaError) -> None:
        """Answer with `error`, unless `on_append` has already completed the response."""
        response = None if self.result is None else self.result.response
        if isinstance(response, Pending) and response.done():
            self.pending.follow(response)
        else:
            self.pending.fail(error)


class LeaderChanges:
    """A duty: for each partition passed to `note` it soon calls `follow(index)` without locks.

    Metadata changes arrive under locks under which no shard's lock may be taken.
    """

    def __init__(self, scheduler: Scheduler, follow: Callable[[int], None]) -> None:
        self._scheduler = scheduler
        self._follow = follow
        self._noted: dict[int, None] = {}

    def note(self, indexes: Iterable[int]) -> None:
        """Note partitions whose leader may have changed. Callable with any lock held."""
        self._noted.update(dict.fromkeys(indexes))
        self._scheduler.add(self)

    def run_once(self, _now_ms: int) -> int | None:
        while self._noted:
            # Remove the partition before the call: if it is noted meanwhile, follow it once more.
            index = next(iter(self._noted), None)
            if index is None:
                break
            # By an instruction next to the `try`: no Ctrl-C can come in between.
            del self._noted[index]
            try:
                self._follow(index)
            except BaseException as error:
                if not isinstance(error, Exception):
                    self._noted[index] = None
                raise
        return None

    def close(self) -> None:
        self._scheduler.remove(self)
        self._noted.clear()


class FirstLoads:
    """Recognises the first load of each partition's shard since the process began.

    The first load removes the members that ran in an earlier process. A shard that moves here from
    another broker of this process was loaded there before, so its load here is not the first.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._expected: set[int] | None = None

    def expect(self, indexes: Iterable[int]) -> None:
        """Count only loads of these partitions as first: no broker has loaded them before."""
        self._expected = set(indexes)

    def is_first(self, index: int) -> bool:
        """Return True for a partition's first load; call this once at each load."""
        if index in self._seen or (self._expected is not None and index not in self._expected):
            return False
        self._seen.add(index)
        return True


class _Slot(Generic[S]):
    """The slot of one shard. `lock` guards everything that changes."""

    def __init__(self, index: int, partition: Partition) -> None:
        self.index = index
        self.partition = partition
        self.lock = ranked_rlock(Rank.SHARD)
        self.is_busy = False
        self.is_doubtful = False
        """True from an interrupt inside an operation to the end of the `unload` that follows it,
        which may be interrupted as well."""
        self.shard: S | None = None
        self.context: ShardContext | None = None
        self.leader_epoch = -1
        """The leader epoch in which the shard was loaded. In a later epoch the log may hold records
        that the shard lacks."""
        self.end_offset = 0
        """The offset after the last record that the shard has applied."""
        self.damage: CorruptRecord | None = None
        """The damage that keeps the log from being replayed; None without damage. It is kept as
        long as the log is open."""

    def unload(self, error: KafkaError) -> None:
        shard, context = self.shard, self.context
        if shard is None:
            return
        assert context is not None, self.index
        context.timer.cancel_all()
        shard.unloaded(error)
        self.shard = self.context = None
        self.is_doubtful = False
