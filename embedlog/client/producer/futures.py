"""The futures that `send` and `send_batch` return."""

from __future__ import annotations

from _thread import get_ident

from embedlog.errors import again
from embedlog.runtime.outer_call import INSIDE, PUT_OFF, end_calls, nested

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.client.producer.batch import BatchMetadata, ProducerBatch, RecordMetadata


class DeliveryFuture:
    """The outcome of one `send`. Its callback has run before `done()` is true.

    The code that makes a future sets `batch`, and `index` to the record's number in the batch. A
    constructor would cost each record 150 ns.
    """

    __slots__ = ("batch", "index")

    batch: ProducerBatch
    index: int

    def done(self) -> bool:
        """Return whether the outcome is known. Takes arrived answers, and never waits."""
        batch = self.batch
        if not batch.is_done:
            _take_answers(batch)
        return batch.is_done

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait, at most `timeout` seconds, and return the place of the record.

        An open batch is sent now: nobody has to wait for it to fill.

        Raises:
            TimedOut: the time is over; the record is still on its way.
            KafkaError: the reason why the record was not written.
        """
        batch = self.batch
        if not batch.is_done:
            _wait(batch, timeout, "DeliveryFuture.result")
        return batch.outcome.record(self.index)

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait as `result` does; return the record's error, or None if it was written."""
        batch = self.batch
        if not batch.is_done:
            _wait(batch, timeout, "DeliveryFuture.exception")
        return batch.outcome.error_of(self.index)

    def __repr__(self) -> str:
        state = "done" if self.batch.is_done else "on its way"
        return f"<DeliveryFuture {self.batch.topic}-{self.batch.partition} {state}>"


class BatchFuture:
    """The outcome of one `send_batch`: a `BatchMetadata` for each record batch."""

    __slots__ = ("batches",)

    def __init__(self, batches: Sequence[ProducerBatch]) -> None:
        self.batches = batches

    def done(self) -> bool:
        """Return whether the outcome of every record is known. Never waits."""
        for batch in self.batches:
            if not batch.is_done:
                _take_answers(batch)
        return all(batch.is_done for batch in self.batches)

    def result(self, timeout: float | None = None) -> list[BatchMetadata]:
        """Wait, at most `timeout` seconds, and return the places of the records.

        There is one entry per record batch: several if the records went to several partitions, or
        are together larger than max.request.size.

        Raises:
            TimedOut: the time is over; records are still on their way.
            KafkaError: the reason why records were not written; others may have been.
        """
        error = self.exception(timeout)
        if error is not None:
            raise again(error)
        return [metadata for batch in self.batches for metadata in batch.outcome.batches()]

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait as `result` does; return the first error, or None if everything was written."""
        for batch in self.batches:
            if not batch.is_done:
                _wait(batch, timeout, "the wait of a BatchFuture")
        # Ask every batch, so that every error counts as seen by the caller.
        errors = [batch.outcome.first_error() for batch in self.batches]
        return next((error for error in errors if error is not None), None)


def _take_answers(batch: ProducerBatch) -> None:
    """Make a pass of the producer, unless this thread is inside a call that may be in a pass."""
    me = get_ident()
    if me in INSIDE:
        return
    INSIDE[me] = "the done() of a future"
    try:
        batch.delivery.run()
    finally:
        del INSIDE[me]
        if PUT_OFF:
            end_calls()


def _wait(batch: ProducerBatch, timeout: float | None, call: str) -> None:
    """Wait for a batch, as the outer call `call`."""
    me = get_ident()
    if me in INSIDE:
        raise nested(call)
    INSIDE[me] = call
    try:
        batch.delivery.wait_for(batch, timeout)
    finally:
        del INSIDE[me]
        if PUT_OFF:
            end_calls()
