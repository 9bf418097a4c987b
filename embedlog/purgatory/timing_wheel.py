"""A hierarchical timing wheel: deadlines in buckets, distant ones in coarse buckets.

    level   tick       reaches
    0       1 ms       20 ms ahead
    1       20 ms      400 ms
    2       400 ms     8 s
    3       8 s        160 s
    ...     on demand: one level's reach is the next one's tick

A task goes to the lowest level that reaches its expiration, into the bucket with the number (the
virtual id) `expiration // tick`. A bucket is due at the *start* of its range. When a bucket of
level 0 is due, its tasks expire; when a higher one is due, its tasks move down. So a task moves at
most once per level, and never expires early by a whole tick of level 0.

    add         O(1): one binary search over a handful of levels, one dictionary look-up
    cancel      O(1): the task forgets its bucket and stays in it as a ghost; a bucket with more
                ghosts than tasks is rebuilt, so cancelled far timers hold no memory for long
    expire      O(levels) per task, once

Only buckets with content exist: each level is a dictionary by virtual id, and a heap of bucket
expirations replaces Kafka's delay queue. A level has at most 399 buckets, not 20: the tasks of a
due bucket move down by two levels at once, which may make 20 * 20 buckets, less the due one, in one
level. A wheel with a million tasks and nothing due costs nothing.
"""

from __future__ import annotations

from _bisect import bisect_right
from _heapq import heappop, heappush
from _operator import attrgetter
from abc import ABC, abstractmethod

from embedlog.runtime.locks import Rank, ranked_rlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import RLock

GHOSTS_KEPT = 16
"""A bucket may keep this many ghosts, entries of tasks that left, before it is rebuilt."""

LEVELS_DEMOTED = 2
"""The tasks of a due bucket move down by this many levels: 400 sparse buckets cost less than one
more move of each task."""

_by_expiration = attrgetter("expiration_ms")


class TimerTask(ABC):
    """A task to run after `delay_ms`. Subclasses define `run`.

    A task is in a timer at most once: adding it again moves it. It may be added again after it has
    run or was cancelled.
    """

    __slots__ = ("_bucket", "delay_ms", "expiration_ms")

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms
        self.expiration_ms = -1
        """The monotonic time when the task is due; set by `TimingWheel.add`."""
        self._bucket: TimerTaskList | None = None

    @abstractmethod
    def run(self) -> None:
        """Do the task. The thread that drives the timer calls this when due, without locks."""

    def cancel(self) -> bool:
        """Remove the task from its timer; False if it is in no timer (it may be about to run)."""
        bucket = self._bucket
        if bucket is None:
            return False
        with bucket.lock:
            # The task may have moved or expired while this thread waited for the lock.
            bucket = self._bucket
            if bucket is None:
                return False
            self._bucket = None
            bucket.add_ghost()
        return True

    @property
    def bucket(self) -> TimerTaskList | None:
        return self._bucket


class TimerTaskList(list[TimerTask]):
    """One bucket: its tasks in order of arrival, and ghosts of tasks that left.

    An element is a task of this bucket only if `task.bucket is self`.
    """

    __slots__ = ("expiration_ms", "ghost_count", "lock")

    def __init__(self, expiration_ms: int, lock: RLock) -> None:
        super().__init__()
        self.expiration_ms = expiration_ms
        """The start of the bucket's range, which is the time when the bucket is due."""
        self.ghost_count = 0
        self.lock = lock
        """The wheel's lock."""

    @property
    def task_count(self) -> int:
        return len(self) - self.ghost_count

    def add_ghost(self) -> None:
        """Count a ghost; rebuild the list if most entries are. Requires: the wheel's lock."""
        self.ghost_count = ghost_count = self.ghost_count + 1
        if ghost_count > GHOSTS_KEPT and ghost_count * 2 > len(self):
            # A task that left and came back is in the list twice: keep it once.
            self[:] = dict.fromkeys([task for task in self if task._bucket is self])
            self.ghost_count = 0


class TimingWheel:
    """All levels of the wheel. Requires: `lock`, unless one thread owns the wheel.

    `current_time_ms` is the wheel's time, rounded down to a tick.
    """

    def __init__(
        self,
        *,
        start_ms: int,
        tick_ms: int = 1,
        wheel_size: int = 20,
        lock: RLock | None = None,
    ) -> None:
        assert tick_ms > 0, tick_ms
        assert wheel_size > 1, wheel_size
        self.tick_ms = tick_ms
        self.wheel_size = wheel_size
        self.lock = ranked_rlock(Rank.TIMER) if lock is None else lock
        self.queue: list[tuple[int, int]] = []
        """A heap of (bucket expiration, level), an entry for each bucket. After a KeyboardInterrupt
        there may be entries without a bucket."""
        self._opened: tuple[int, int] | None = None
        """The entry of the bucket that `advance` is emptying; None outside of it, unless a
        KeyboardInterrupt ended it."""
        self.levels: list[dict[int, TimerTaskList]] = []
        self._ticks: list[int] = []
        self._ends: list[int] = []  # exclusive end of each level's reach; increasing
        self.current_time_ms = start_ms - start_ms % tick_ms
        self._expired_end = self.current_time_ms + tick_ms
        self.moves_at_ms = start_ms
        """Skip `move_time` before this time: level 0 would gain less than `wheel_size` ticks."""
        self._add_level()

    @property
    def size(self) -> int:
        """Number of tasks in the wheel. O(buckets); a level has at most 399 buckets."""
        return sum(bucket.task_count for level in self.levels for bucket in level.values())

    def tasks(self) -> list[TimerTask]:
        """Return the tasks in the wheel, in no order. Takes as long as `size`, and their number."""
        buckets = [bucket for level in self.levels for bucket in level.values()]
        found = {task: None for bucket in buckets for task in bucket if task.bucket is bucket}
        return list(found)

    def add(self, task: TimerTask, expiration_ms: int) -> bool:
        """Put or move `task` to the bucket of `expiration_ms`; return False if that time has
        already come.
        """
        former = task._bucket
        if former is not None:
            task._bucket = None
            former.add_ghost()
        if expiration_ms < self._expired_end:
            return False
        number = bisect_right(self._ends, expiration_ms)
        while number == len(self._ends):
            self._add_level()
            number = bisect_right(self._ends, expiration_ms)
        virtual_id = expiration_ms // self._ticks[number]
        try:
            bucket = self.levels[number][virtual_id]
        except KeyError:
            bucket = self._add_bucket(number, virtual_id)
        bucket.append(task)
        task.expiration_ms = expiration_ms
        task._bucket = bucket
        return True

    def advance(self, now_ms: int, expired: list[TimerTask] | None = None) -> list[TimerTask]:
        """Move the wheel's time to `now_ms`; add the expired tasks to `expired`, in order of time,
        and return it.

        The other tasks of due buckets move to lower levels. If the wheel's time is later already,
        tasks that expire between `now_ms` and that time stay for a later call. A KeyboardInterrupt
        loses no task: each is in its bucket until the instruction that adds it to `expired`, and
        the bucket is in the wheel until it is empty.
        """
        self.move_time(now_ms)
        end_ms = now_ms - now_ms % self.tick_ms + self.tick_ms
        queue = self.queue
        if expired is None:
            expired = []
        is_in_order = not expired
        is_first = True
        while self._opened is not None or (queue and queue[0][0] <= now_ms):
            if self._opened is None:
                self._opened = queue[0]
                heappop(queue)
            expiration_ms, number = self._opened
            virtual_id = expiration_ms // self._ticks[number]
            bucket = self.levels[number].get(virtual_id)
            if number or not is_first:
                # Buckets of different levels overlap in time, a long jump skips the moves down, and
                # a coarse bucket keeps its tasks in the order of arrival.
                is_in_order = False
            is_first = False
            if bucket is not None:
                if number:
                    self._demote(bucket, number, expired, end_ms)
                else:
                    for task in bucket:
                        if task._bucket is bucket:
                            task._bucket = None
                            expired += (task,)
                del self.levels[number][virtual_id]
            self._opened = None
        if not is_in_order:
            expired.sort(key=_by_expiration)
        return expired

    def next_expiration_ms(self) -> int | None:
        """Return when the first bucket with a task is due; None if there is no task.

        Drops buckets that hold only ghosts, so that they cause no wake-up.
        """
        queue = self.queue
        if self._opened is not None:
            return self._opened[0]
        while queue:
            expiration_ms, number = queue[0]
            virtual_id = expiration_ms // self._ticks[number]
            bucket = self.levels[number].get(virtual_id)
            if bucket is not None:
                if bucket.task_count > 0:
                    return expiration_ms
                del self.levels[number][virtual_id]
            heappop(queue)
        return None

    def move_time(self, now_ms: int) -> None:
        """Extend the levels' reach from `now_ms`; time never moves back.

        Nothing expires: a bucket whose time has passed stays due.
        """
        if now_ms < self._expired_end:
            return
        self.current_time_ms = now_ms - now_ms % self.tick_ms
        self._expired_end = self.current_time_ms + self.tick_ms
        turn_ms = self.tick_ms * self.wheel_size
        self.moves_at_ms = now_ms - now_ms % turn_ms + turn_ms
        ends = self._ends
        for number, tick_ms in enumerate(self._ticks):
            end = now_ms - now_ms % tick_ms + tick_ms * self.wheel_size
            if end == ends[number]:
                break  # the coarser levels have not moved either
            ends[number] = end

    def _demote(
        self, bucket: TimerTaskList, number: int, expired: list[TimerTask], expired_end: int
    ) -> None:
        """Move the tasks of a due bucket to `expired` if due before `expired_end`, else to lower
        levels.
        """
        target_number = max(0, number - LEVELS_DEMOTED)
        tick_ms = self._ticks[target_number]
        # Virtual id -> bucket, to look up each bucket only once.
        targets: dict[int, TimerTaskList] = {}
        for task in bucket:
            if task._bucket is not bucket:
                continue
            expiration_ms = task.expiration_ms
            if expiration_ms < expired_end:
                task._bucket = None
                expired += (task,)
                continue
            virtual_id = expiration_ms // tick_ms
            try:
                target = targets[virtual_id]
            except KeyError:
                target = targets[virtual_id] = self._bucket(target_number, virtual_id)
            target.append(task)
            task._bucket = target

    def _bucket(self, number: int, virtual_id: int) -> TimerTaskList:
        bucket = self.levels[number].get(virtual_id)
        return self._add_bucket(number, virtual_id) if bucket is None else bucket

    def _add_bucket(self, number: int, virtual_id: int) -> TimerTaskList:
        expiration_ms = virtual_id * self._ticks[number]
        made = TimerTaskList(expiration_ms, self.lock)
        # The entry comes first: after a KeyboardInterrupt no bucket may be without an entry.
        heappush(self.queue, (expiration_ms, number))
        self.levels[number][virtual_id] = made
        return made

    def _add_level(self) -> None:
        tick_ms = self.tick_ms * self.wheel_size ** len(self.levels)
        self.levels.append({})
        self._ticks.append(tick_ms)
        now_ms = self.current_time_ms
        self._ends.append(now_ms - now_ms % tick_ms + tick_ms * self.wheel_size)
