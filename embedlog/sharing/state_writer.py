"""Writes of one share partition's state: one at a time, later ones joined meanwhile.

With one write at a time, each write carries the start offset and the count of completed deliveries
that all earlier ones have led to.
"""

from __future__ import annotations

from embedlog.coordinator.share.state_client import StateBatch
from embedlog.runtime.pending import Pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import RLock
    from collections.abc import Callable, Sequence

    from embedlog.sharing.in_flight import Run, Transition

    Send = Callable[[list[StateBatch]], Pending[None]]
    Settle = Callable[["list[StateWrite]", "BaseException | None"], Callable[[], None]]


class StateWrite:
    """Moves that are made when they are stored, or records of moves that were made already."""

    __slots__ = ("done", "made", "moving")

    def __init__(self, moving: Sequence[Transition], made: Sequence[StateBatch] = ()) -> None:
        self.moving = moving
        self.made = made
        self.done: Pending[None] = Pending()

    def batches(self) -> list[StateBatch]:
        rows = list(self.made)
        for each in self.moving:
            for run in each.runs:
                rows.append(StateBatch(run.first, run.last, each.target, run.count))
        return rows


def stored_form(runs: Sequence[Run]) -> list[StateBatch]:
    """Return runs as they are."""
    return [StateBatch(run.first, run.last, run.state, run.count) for run in runs]


class StateWriter:
    """The writes of one share partition that wait or are on their way."""

    def __init__(self, lock: RLock, send: Send, settle: Settle) -> None:
        """`send` writes batches and is called without the lock.

        `settle` makes or undoes the moves of finished writes, and is called with the lock. It
        returns a function to call without the lock.
        """
        self._lock = lock
        self._send = send
        self._settle = settle
        self._waiting: list[StateWrite] = []
        self._sent: list[StateWrite] = []

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._sent

    def add(self, write: StateWrite) -> None:
        """Queue a write. Requires: the lock; call `pump` after its release."""
        self._waiting.append(write)

    def pump(self) -> None:
        """Send the waiting moves, unless a write is on its way. Requires: no lock."""
        with self._lock:
            if self._sent or not self._waiting:
                return
            self._sent, self._waiting = self._waiting, []
            rows = [row for write in self._sent for row in write.batches()]
        self._send(_joined(rows)).add_callback(self._written)

    def abandon(self, error: BaseException) -> None:
        """Fail all writes: nobody can say whether they are stored. Requires: no lock."""
        for write in [*self._sent, *self._waiting]:
            write.done.fail(error)
        self._waiting = []

    def _written(self, done: Pending[None]) -> None:
        error = done.error()
        with self._lock:
            writes, self._sent = self._sent, []
            after = self._settle(writes, error)
        after()
        self.pump()


def _joined(rows: list[StateBatch]) -> list[StateBatch]:
    """Join neighbours in the same state; the order stays."""
    joined: list[StateBatch] = []
    for row in rows:
        before = joined[-1] if joined else None
        if (
            before is not None
            and before.last_offset + 1 == row.first_offset
            and before.delivery_state == row.delivery_state
            and before.delivery_count == row.delivery_count
        ):
            joined[-1] = before.replace(last_offset=row.last_offset)
        else:
            joined.append(row)
    return joined
