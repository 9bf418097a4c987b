"""In-flight batches: offsets that were acquired together, as runs of records in one state.

A batch begins as one run. A move of some of its records splits the run; equal neighbours are joined
again when the move is over. A member has its records for a while: a lock of the timer.
"""

from __future__ import annotations

from _bisect import bisect_right

from embedlog.purgatory.timing_wheel import TimerTask
from embedlog.sharing.delivery import ACQUIRED, AVAILABLE, MOVES, TERMINAL, Cause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Transition:
    """A move that has to be stored before it is made."""

    __slots__ = ("runs", "target")

    def __init__(self, run: Run, target: int) -> None:
        self.target = target
        self.runs = [run]
        """The run, and the parts that it was split into meanwhile."""


class Run:
    """Neighbouring offsets of a batch in one state. Requires: the share partition's lock."""

    __slots__ = ("count", "first", "last", "lock", "owner", "state", "transition")

    def __init__(self, first: int, last: int, state: int, count: int) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        """How often the records were delivered."""
        self.transition: Transition | None = None
        self.owner = ""
        """The member that has acquired the records."""
        self.lock: AcquisitionLock | None = None

    def __repr__(self) -> str:
        target = "" if self.transition is None else f" to {self.transition.target}"
        return f"<{self.first}-{self.last} state {self.state}{target} count {self.count}>"

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def is_free(self) -> bool:
        """Whether the records can be acquired."""
        return self.state == AVAILABLE

    @property
    def is_held(self) -> bool:
        """Whether the owner may acknowledge the records."""
        return self.state == ACQUIRED and self.transition is None

    @property
    def is_over(self) -> bool:
        """Whether nothing can happen to the records any more."""
        return self.state in TERMINAL

    @property
    def will_be_over(self) -> bool:
        """Whether the records are in a terminal state, or move to one."""
        moving = self.transition
        return (self.state if moving is None else moving.target) in TERMINAL

    def acquire(self, owner: str, lock: AcquisitionLock) -> None:
        assert self.transition is None, self
        self.state = MOVES[self.state, Cause.ACQUIRE]
        self.count += 1
        self.owner = owner
        self._take(lock)

    def renew(self, lock: AcquisitionLock) -> None:
        assert self.transition is None, self
        self.state = MOVES[self.state, Cause.RENEW]
        self._take(lock)

    def begin(self, cause: int) -> Transition:
        """Begin a move that has to be stored first."""
        assert self.transition is None, self
        self.transition = Transition(self, MOVES[self.state, cause])
        return self.transition

    def move(self, cause: int) -> None:
        """Make a move that need not be stored first."""
        assert self.transition is None, self
        self._become(MOVES[self.state, cause])

    def finish(self) -> None:
        """End a move: it is stored."""
        moving, self.transition = self.transition, None
        assert moving is not None, self
        self._become(moving.target)

    def cancel(self) -> None:
        """End a move that is not stored: the owner has the records again."""
        assert self.transition is not None, self
        self.transition = None

    def _become(self, state: int) -> None:
        self.state = state
        if state != ACQUIRED:
            self.owner = ""
            self._take(None)

    def _take(self, lock: AcquisitionLock | None) -> None:
        former, self.lock = self.lock, lock
        if lock is not None:
            lock.hold()
        if former is not None:
            former.leave()

    def forget(self) -> None:
        """Drop the lock, because the records leave the window."""
        self._take(None)

    def split_at(self, offset: int) -> Run:
        """Cut the run before `offset` and return the later part."""
        assert self.first < offset <= self.last, (self, offset)
        later = Run(offset, self.last, self.state, self.count)
        later.owner = self.owner
        if self.transition is not None:
            later.transition = self.transition
            later.transition.runs.append(later)
        if self.lock is not None:
            later._take(self.lock)
        self.last = offset - 1
        return later

    def is_like(self, other: Run) -> bool:
        """Return whether both can be one run."""
        return (
            self.transition is None
            and other.transition is None
            and self.state == other.state
            and self.count == other.count
            and self.lock is other.lock
            and self.owner == other.owner
        )


class InFlightBatch:
    """Offsets [first, last] that entered the window together."""

    __slots__ = ("first", "is_split", "last", "runs")

    def __init__(self, first: int, last: int, runs: list[Run]) -> None:
        self.first = first
        self.last = last
        self.runs = runs
        """In the order of their offsets; those below the window's start are gone."""
        self.is_split = len(runs) > 1
        """Whether a part of the batch has ever moved alone."""

    def __repr__(self) -> str:
        return f"<batch {self.runs}>"

    @property
    def size(self) -> int:
        """Number of offsets that the batch had at its begin."""
        return self.last - self.first + 1

    def isolate(self, first: int, last: int, borders: Sequence[int] = ()) -> list[Run]:
        """Return the runs of [first, last], splitting runs that reach over its ends.

        They are also split before each offset of `borders`, which are in order.
        """
        wanted: list[Run] = []
        runs: list[Run] = []
        for run in self.runs:
            part: Run | None = run
            if run.last < first or run.first > last:
                runs.append(run)
                continue
            if run.first < first:
                runs.append(run)
                part = run = run.split_at(first)
            later = run.split_at(last + 1) if run.last > last else None
            while part is not None:
                slot = bisect_right(borders, part.first)
                inside = slot < len(borders) and borders[slot] <= part.last
                rest = part.split_at(borders[slot]) if inside else None
                runs.append(part)
                wanted.append(part)
                part = rest
            if later is not None:
                runs.append(later)
        if len(runs) > 1:
            self.is_split = True
        self.runs = runs
        return wanted

    def join(self) -> None:
        """Join neighbours that are alike."""
        runs = self.runs
        if len(runs) < 2:
            return
        joined = [runs[0]]
        for run in runs[1:]:
            before = joined[-1]
            if before.last + 1 == run.first and before.is_like(run):
                before.last = run.last
                run.forget()
            else:
                joined.append(run)
        self.runs = joined

    def within(self, first: int, last: int) -> Iterator[Run]:
        """Yield the runs that overlap [first, last], without splitting them."""
        for run in self.runs:
            if run.last >= first and run.first <= last:
                yield run

    def cut_below(self, offset: int) -> None:
        """Drop the records below `offset`."""
        kept: list[Run] = []
        for run in self.runs:
            if run.last < offset:
                run.forget()
                continue
            if run.first < offset:
                later = run.split_at(offset)
                run.forget()
                kept.append(later)
            else:
                kept.append(run)
        self.runs = kept


class AcquisitionLock(TimerTask):
    """One lock for the records of a batch that a member acquired or renewed at one time.

    Parts of the records may leave it. It is cancelled when the last part has left.
    """

    __slots__ = ("_expired", "_holder_count", "batch", "is_expired")

    def __init__(
        self,
        duration_ms: int,
        batch: InFlightBatch,
        expired: Callable[[AcquisitionLock], None],
    ) -> None:
        """`expired` is called with the lock when its time is over, by the timer's thread."""
        TimerTask.__init__(self, duration_ms)
        self.batch = batch
        self.is_expired = False
        self._expired = expired
        self._holder_count = 0

    def hold(self) -> None:
        """Count one more run. Requires: the share partition's lock, as for `leave`."""
        self._holder_count += 1

    def leave(self) -> None:
        """Count one run less; without runs the timer forgets the lock."""
        self._holder_count -= 1
        if self._holder_count == 0:
            self.cancel()

    def run(self) -> None:
        self._expired(self)
