"""The end of moves that waited for the share coordinator: made if stored, undone if not."""

from __future__ import annotations

from embedlog.sharing.delivery import ARCHIVING, Cause
from embedlog.sharing.state_writer import stored_form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.coordinator.share.state_client import StateBatch
    from embedlog.sharing.delivery import Rules
    from embedlog.sharing.in_flight import Run
    from embedlog.sharing.state_writer import StateWrite
    from embedlog.sharing.window import DeliveryWindow


def settle(
    window: DeliveryWindow, writes: list[StateWrite], error: BaseException | None, rules: Rules
) -> list[StateBatch]:
    """End the moves of writes, and move the start. Return the records that need a dead letter.

    Requires: the share partition's lock.
    """
    stored = [row for each in writes for row in (each.batches() if error is None else each.made)]
    to_bury = [row for row in stored if row.delivery_state == ARCHIVING]
    touched = [run for write in writes for moving in write.moving for run in moving.runs]
    for run in touched:
        if error is None or run.state == ARCHIVING:
            # An archived record stays so: storing it again is only tried after the next loading.
            run.finish()
        else:
            _undo(run, rules)
            if run.state == ARCHIVING:
                to_bury += stored_form([run])
        if run.is_free:
            window.freed(run.first)
    if touched:
        first, last = min(run.first for run in touched), max(run.last for run in touched)
        for batch in window.overlapping(first, last):
            batch.join()
    window.advance()
    return to_bury


def _undo(run: Run, rules: Rules) -> None:
    """Give the records back to their owner; if its lock has expired meanwhile, to everybody."""
    run.cancel()
    if run.lock is not None and run.lock.is_expired:
        run.move(rules.refine(Cause.RELEASE, run.count))
