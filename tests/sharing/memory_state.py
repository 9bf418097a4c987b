"""A share coordinator in memory: the stored states, fencing, merging; failures on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from embedlog import errors
from embedlog.coordinator.share.state_client import ShareState, StateBatch
from embedlog.runtime.pending import Pending
from wire.error_codes import ErrorCode

Place = tuple[bytes, int]

NOT_INITIALIZED = "Write operation on uninitialized share partition not allowed."
EPOCHS_DIFFER = "The coordinator rejected the request because the state epoch did not match."


class MemoryShareState:
    """The stored state of one share partition."""

    def __init__(self, state_epoch: int, start_offset: int) -> None:
        self.state_epoch = state_epoch
        self.start_offset = start_offset
        self.leader_epoch = 0
        self.complete_count = -1 if start_offset < 0 else 0
        self.offsets: dict[int, tuple[int, int]] = {}
        """Offset -> (delivery count, delivery state)."""

    @property
    def batches(self) -> list[StateBatch]:
        """Neighbours with the same state and count are one batch."""
        rows: list[StateBatch] = []
        for offset, (count, state) in sorted(self.offsets.items()):
            before = rows[-1] if rows else None
            if (
                before is not None
                and before.last_offset + 1 == offset
                and (before.delivery_count, before.delivery_state) == (count, state)
            ):
                rows[-1] = before.replace(last_offset=offset)
            else:
                rows.append(StateBatch(offset, offset, state, count))
        return rows

    def merge(self, batches: Sequence[StateBatch]) -> None:
        """The higher count wins, then the higher state."""
        for batch in batches:
            mine = (batch.delivery_count, batch.delivery_state)
            for offset in range(batch.first_offset, batch.last_offset + 1):
                self.offsets[offset] = max(mine, self.offsets.get(offset, mine))
        self.cut()

    def cut(self) -> None:
        """Drop the offsets below the start."""
        self.offsets = {o: v for o, v in self.offsets.items() if o >= self.start_offset}


class MemoryState:
    """In place of a `ShareStateClient`. By default it answers within the call."""

    def __init__(self) -> None:
        self.states: dict[tuple[str, Place], MemoryShareState] = {}
        self.failures: list[errors.EmbedlogError] = []
        """Errors of the next calls, which then do nothing."""
        self.is_slow = False
        """Whether calls wait for `go_on`."""
        self._waiting: list[Callable[[], None]] = []
        self.write_count = 0

    def initialize(self, group_id: str, place: Place, *, start: int = 0, epoch: int = 1) -> None:
        """Begin the state anew."""
        former = self.states.get((group_id, place))
        made = MemoryShareState(epoch, start)
        if former is not None:
            made.leader_epoch = former.leader_epoch
        self.states[group_id, place] = made

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    def go_on(self) -> None:
        """Answer the calls that wait, in their order."""
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def read(self, group_id: str, place: Place, leader_epoch: int) -> Pending[ShareState]:
        def answer() -> ShareState:
            found = self._find(group_id, place, leader_epoch)
            found.leader_epoch = leader_epoch
            return ShareState(found.state_epoch, found.start_offset, found.batches)

        return self._later(answer)

    def write(
        self,
        group_id: str,
        place: Place,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
    ) -> Pending[None]:
        def answer() -> None:
            if (group_id, place) not in self.states:
                raise errors.InvalidRequest(NOT_INITIALIZED)
            found = self._find(group_id, place, leader_epoch)
            if state_epoch < found.state_epoch:
                raise errors.FencedStateEpoch(EPOCHS_DIFFER)
            self.write_count += 1
            found.start_offset = max(found.start_offset, start_offset)
            found.complete_count = delivery_complete_count
            found.merge(batches)

        return self._later(answer)

    def _find(self, group_id: str, place: Place, leader_epoch: int) -> MemoryShareState:
        found = self.states.get((group_id, place))
        if found is None:
            raise errors.InvalidRequest()
        if leader_epoch < found.leader_epoch:
            raise errors.error_for(ErrorCode.FENCED_LEADER_EPOCH)
        return found

    def _later(self, answer: Callable[[], object]) -> Pending:  # type: ignore[type-arg]
        pending: Pending[object] = Pending()
        failure = self.failures.pop(0) if self.failures else None

        def call() -> None:
            try:
                if failure is not None:
                    raise failure
                pending.complete(answer())
            except errors.EmbedlogError as error:
                pending.fail(error)

        if self.is_slow:
            self._waiting.append(call)
        else:
            call()
        return pending

    def close(self) -> None:
        """Nothing to close."""
