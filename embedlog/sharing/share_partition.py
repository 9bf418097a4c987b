"""`SharePartition`: one partition for one share group, on the partition's leader.

    INITIALIZING --loaded--> ACTIVE --fenced--> FENCED
         |                                        ^
         +--failed--> FAILED     (any) -----------+

The lock guards everything. The share coordinator, timers' tasks and waiting fetches are called
without it.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.logger import Logger
from embedlog.runtime.locks import Rank, ranked_rlock
from embedlog.runtime.pending import Pending, completed
from embedlog.sharing import log_read
from embedlog.sharing.acknowledgement import Application
from embedlog.sharing.acquisition import Acquisition, Taken, countable
from embedlog.sharing.delivery import ARCHIVING, Cause
from embedlog.sharing.in_flight import AcquisitionLock
from embedlog.sharing.interrupts import whole
from embedlog.sharing.key_order import KeyOrder
from embedlog.sharing.metrics import measured
from embedlog.sharing.settlement import settle
from embedlog.sharing.start_offset import start_offset
from embedlog.sharing.state_errors import ends_partition, member_error
from embedlog.sharing.state_writer import StateWrite, StateWriter, stored_form
from embedlog.sharing.window import DeliveryWindow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final

    from embedlog.coordinator.share.state_client import Place, ShareState, StateBatch
    from embedlog.replication.partition import Partition
    from embedlog.sharing.acknowledgement import Acknowledgement
    from embedlog.sharing.acquisition import Acquired, Wish
    from embedlog.sharing.in_flight import InFlightBatch
    from embedlog.sharing.metrics import Metrics
    from embedlog.sharing.share_sessions import ShareSession
    from embedlog.sharing.sharing_context import SharingContext

INITIALIZING: Final = "initializing"
ACTIVE: Final = "active"
FAILED: Final = "failed"
FENCED: Final = "fenced"

VALID_PREVIOUS: dict[str, tuple[str, ...]] = {
    ACTIVE: (INITIALIZING,),
    FAILED: (INITIALIZING,),
    FENCED: (INITIALIZING, ACTIVE, FAILED, FENCED),
}

_log = Logger("sharing")
_ROUND_COUNT_MAX = 16
"""Reads of one fetch that find only records which nobody may have, before the fetch goes on
waiting."""


class SharePartition:
    """The deliveries of one partition to one group. Thread-safe."""

    def __init__(
        self,
        group_id: str,
        partition: Partition,
        context: SharingContext,
        removed: Callable[[SharePartition], None],
    ) -> None:
        """`removed` is called once when the object is of no more use."""
        self.group_id = group_id
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.place: Place = (partition.topic_id, partition.index)
        self.key = (group_id, *self.place)
        """The key of fetches that wait for it."""
        self.life = INITIALIZING
        self.failure: errors.KafkaError | None = None
        """The error of its loading."""
        self._context = context
        self._removed = removed
        self._lock = ranked_rlock(Rank.SHARE_PARTITION)
        self._state_epoch = 0
        self.window = DeliveryWindow(0)
        self._order = KeyOrder(self.window, partition)
        self._timeout_count = 0
        self.writer = StateWriter(self._lock, self._send, self._settle)

    # Its life

    def transition_to(self, life: str) -> None:
        assert self.life in VALID_PREVIOUS[life], (self.life, life)
        self.life = life

    def load(self) -> None:
        """Read the stored state. Fetches of the partition wait until it is there."""
        pending = self._context.state.read(self.group_id, self.place, self.leader_epoch)
        pending.add_callback(self._read)

    @whole
    def _read(self, done: Pending[ShareState]) -> None:
        error = done.error()
        with self._lock:
            if self.life != INITIALIZING:
                return
            if error is None:
                try:
                    self._begin(done.result())
                except errors.EmbedlogError as refusal:
                    error = refusal
            if error is not None:
                self.failure = member_error(error)
                self.transition_to(FAILED)
            unburied = stored_form([run for run in self.window.runs() if run.state == ARCHIVING])
        if error is not None:
            self._removed(self)
        elif unburied:
            self._bury(unburied)
        self._context.wake(self.key)

    def _begin(self, state: ShareState) -> None:
        start = state.start_offset
        if start < 0:
            reset = self._context.settings(self.group_id).offset_reset
            start = start_offset(self.partition, reset, self._context.wall_ms())
        self._state_epoch = state.state_epoch
        self.window = DeliveryWindow(start, state.batches)
        self._order = KeyOrder(self.window, self.partition)
        self.transition_to(ACTIVE)

    def fence(self) -> None:
        """End it: the leader, the topic or the state has changed. Locks and moves are forgotten."""
        with self._lock:
            if self.life == FENCED:
                return
            self.transition_to(FENCED)
            for run in self.window.runs():
                run.forget()
        self._removed(self)
        self._context.wake(self.key)

    def check_leader(self) -> None:
        """Raise unless this broker still leads the partition in the epoch of this object.

        Raises:
            UnknownTopicOrPartition, NotLeaderOrFollower, KafkaStorageError: see
                `Partition.check_leader`.
        """
        self.partition.check_leader()
        if self.partition.leader_epoch != self.leader_epoch:
            raise errors.NotLeaderOrFollower()

    def metrics(self) -> Metrics:
        """Return the present numbers: see `measured`."""
        with self._lock:
            return measured(self.window, self._timeout_count)

    # Fetching

    def readable_size(self, wish: Wish, max_bytes: int, isolation: int) -> int:
        """Return how many bytes a fetch could read now; 0 if it has to wait.

        Raises:
            KafkaError: the answer for the partition would be an error.
        """
        with self._lock:
            if not self._is_usable():
                return 0
            if wish.is_ordered:
                offset = self._order.next_offset(wish)
            else:
                found = log_read.next_offset(self.window, self.partition)
                offset = found if countable(self.window, wish) else None
            if offset is None:
                return 0
            return log_read.readable_size(self.partition, offset, max_bytes, isolation)

    @whole
    def acquire(
        self,
        session: ShareSession,
        wish: Wish,
        max_bytes: int,
        isolation: int,
        *,
        min_one: bool = True,
    ) -> Taken | None:
        """Acquire records for the member of a session; return None if there are none for it now.

        A session that is over gets none. With `min_one` the first batch of the log may be larger
        than `max_bytes`.

        Raises:
            KafkaError: the answer for the partition is an error.
        """
        with self._lock:
            # The end of a session releases its records under this lock, so it misses none.
            if session.is_over or not self._is_usable():
                return None
            if wish.is_ordered:
                return self._order.acquire(
                    wish, max_bytes, isolation, self._start_lock, min_one=min_one
                )
            for _ in range(_ROUND_COUNT_MAX):
                offset = log_read.next_offset(self.window, self.partition)
                if not countable(self.window, wish):
                    return None
                last = max(offset, self.window.end_offset + 1) + wish.record_count_max - 1
                read = log_read.read(
                    self.partition,
                    offset,
                    max_bytes,
                    isolation,
                    last_wanted=last,
                    min_one=min_one,
                )
                if read is None:
                    return None
                acquired = self._acquire(wish, offset, read)
                self.window.advance()
                if acquired:
                    return Taken(read.part(acquired[0][0], acquired[-1][1]), acquired)
        return None

    def _is_usable(self) -> bool:
        """Return whether the partition is active; raise if it never will be."""
        if self.life == FAILED:
            assert self.failure is not None, self
            raise self.failure
        self.check_leader()
        return self.life == ACTIVE

    def _acquire(self, wish: Wish, offset: int, read: log_read.ShareRead) -> list[Acquired]:
        def make_lock(batch: InFlightBatch) -> AcquisitionLock:
            return self._start_lock(batch, wish.lock_duration_ms)

        acquired = Acquisition(self.window, wish, make_lock).run(offset, read.extents)
        for first, last in read.aborted:
            acquired = log_read.without(acquired, first, last)
            for batch in self.window.overlapping(first, last):
                held = [run for run in batch.within(first, last) if run.is_held]
                for run in held:
                    if run.owner == wish.member_id:
                        for part in batch.isolate(max(run.first, first), min(run.last, last)):
                            part.move(Cause.VANISH)
                batch.join()
        return acquired

    def _start_lock(self, batch: InFlightBatch, duration_ms: int) -> AcquisitionLock:
        lock = AcquisitionLock(duration_ms, batch, self._lock_expired)
        self._context.timer.add(lock)
        return lock

    # Acknowledging

    @whole
    def acknowledge(self, member_id: str, batches: Sequence[Acknowledgement]) -> Pending[None]:
        """Make the moves of a member; the answer comes when they are stored.

        Raises:
            UnknownTopicOrPartition: the partition is not loaded.
            InvalidRequest, InvalidRecordState: see `Application`.
        """
        settings = self._context.settings(self.group_id)
        with self._lock:
            if self.life != ACTIVE:
                raise errors.UnknownTopicOrPartition(NOT_LOADED)

            def make_lock(batch: InFlightBatch) -> AcquisitionLock:
                return self._start_lock(batch, settings.lock_duration_ms)

            made = Application(self.window, member_id, settings.rules, may_renew=settings.may_renew)
            made.apply(batches, make_lock)
            if not made.moving:
                return completed(None)
            write = StateWrite(made.moving)
            self.writer.add(write)
        self.writer.pump()
        return write.done

    @whole
    def release(self, member_id: str) -> Pending[None]:
        """Give back all records of a member, because its session has ended."""
        rules = self._context.settings(self.group_id).rules
        with self._lock:
            if self.life != ACTIVE:
                return completed(None)
            held = [run for run in self.window.runs() if run.is_held and run.owner == member_id]
            if not held:
                return completed(None)
            write = StateWrite([run.begin(rules.refine(Cause.RELEASE, run.count)) for run in held])
            self.writer.add(write)
        self.writer.pump()
        return write.done

    @whole
    def _lock_expired(self, lock: AcquisitionLock) -> None:
        rules = self._context.settings(self.group_id).rules
        with self._lock:
            lock.is_expired = True
            if self.life != ACTIVE:
                return
            held = [run for run in lock.batch.runs if run.lock is lock and run.is_held]
            if not held:
                return
            self._timeout_count += sum(run.size for run in held)
            for run in held:
                run.move(rules.refine(Cause.RELEASE, run.count))
                if run.is_free:
                    self.window.freed(run.first)
            write = StateWrite((), stored_form(held))
            write.done.add_callback(_log_failure)
            self.writer.add(write)
            lock.batch.join()
        self.writer.pump()
        self._context.wake(self.key)

    # The stored state

    def _send(self, batches: list[StateBatch]) -> Pending[None]:
        with self._lock:
            start_offset = self.window.start_offset
            complete_count = self.window.complete_count
        return self._context.state.write(
            self.group_id,
            self.place,
            state_epoch=self._state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=complete_count,
            batches=batches,
        )

    def _settle(self, writes: list[StateWrite], error: BaseException | None) -> Callable[[], None]:
        """Make the stored moves, or undo them. Requires: the lock."""
        to_bury = settle(self.window, writes, error, self._context.settings(self.group_id).rules)

        def after() -> None:
            refusal = None if error is None else member_error(error, "Error in write state RPC. ")
            if error is not None and ends_partition(error):
                self.fence()
            for write in writes:
                if refusal is None:
                    write.done.complete(None)
                else:
                    write.done.fail(refusal)
            if to_bury and self.life == ACTIVE:
                self._bury(to_bury)
            self._context.wake(self.key)

        return after

    # Dead letters

    def _bury(self, rows: list[StateBatch]) -> None:
        """Write dead letters, then archive the records, whether or not that worked."""
        pending = self._context.bury(self.group_id, self.partition, rows)
        pending.add_callback(lambda _: self._buried(rows))

    @whole
    def _buried(self, rows: list[StateBatch]) -> None:
        with self._lock:
            if self.life != ACTIVE:
                return
            moving = []
            for row in rows:
                for batch in self.window.overlapping(row.first_offset, row.last_offset):
                    for run in batch.isolate(row.first_offset, row.last_offset):
                        if run.state == ARCHIVING and run.transition is None:
                            moving.append(run.begin(Cause.BURIED))
            if not moving:
                return
            self.writer.add(StateWrite(moving))
        self.writer.pump()


NOT_LOADED: Final = "This server does not host this topic-partition."


def _log_failure(done: Pending[None]) -> None:
    error = done.error()
    if error is not None:
        _log.warning("the expiry of locks is not stored: %s", error)
