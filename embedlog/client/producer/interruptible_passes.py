"""The sender's passes in the caller's thread, which Ctrl-C may end between any two steps.

A batch may then be off its queue and not sent, or answered and not told. The next pass begins with
giving all such batches an outcome, so that nobody waits for one in vain: those that the broker has
answered get theirs; what was on a network is sent again, as after any lost connection; the others
fail, as nobody knows whether they are written.
"""

from __future__ import annotations

from embedlog.errors import error_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.producer.record_accumulator import RecordAccumulator
    from embedlog.client.producer.sender import Sender

_REASON = "KeyboardInterrupt while the records were sent: nobody knows whether they are written"


class InterruptiblePasses:
    """Runs the passes of a sender."""

    def __init__(self, sender: Sender, accumulator: RecordAccumulator) -> None:
        self._sender = sender
        self._accumulator = accumulator
        self._is_cut_short = False
        """Did the last pass not come to its end?"""

    def run_once(self) -> int | None:
        """See `Sender.run_once`."""
        if self._is_cut_short:
            self._settle_lost()
        self._is_cut_short = True
        try:
            delay = self._sender.run_once()
        except Exception:  # of a user's callback, or a defect: the sender has seen to it
            self._is_cut_short = False
            raise
        self._is_cut_short = False
        return delay

    def cut_short(self) -> None:
        """Ctrl-C has ended something outside of a pass, too."""
        self._is_cut_short = True

    def _settle_lost(self) -> None:
        accumulator, outcomes = self._accumulator, self._sender.outcomes
        known = self._sender.drop_requests()
        known.update(outcomes.settled)
        with accumulator.lock:
            queued = [each for each in accumulator.incomplete if each in each.queue.batches]
            accumulator.active = dict.fromkeys([batch.queue for batch in queued])
            known.update(queued)
            lost = [batch for batch in accumulator.incomplete if batch not in known]
        for batch in lost:
            if batch.is_done:
                accumulator.finished(batch)
            elif batch.has_outcome:
                outcomes.settled.append(batch)
            else:
                batch.close()
                batch.may_be_written = True
                outcomes.failed(batch, error_for(-1, _REASON), is_told=True)
