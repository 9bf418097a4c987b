"""What becomes of a sent record: futures, and where the record ended up."""

from __future__ import annotations

from _operator import itemgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    class Delivery(Protocol):
        """The producer, as far as a future needs it."""

        def run(self) -> None:
            """Do what can be done without waiting."""

        def wait_for(self, batch: Any, timeout: float | None) -> None:
            """Return when `batch` is done; raise TimedOut after `timeout` seconds."""

    class SentBatch(Protocol):
        """A batch of records, as far as a future needs it."""

        topic: str
        partition: int
        is_done: bool
        delivery: Delivery
        on_done: Callable[[Any], None] | None
        error: Exception | None
        parts: Any

        def outcome(self, index: int) -> RecordMetadata:
            """Where a record is; raises its error."""

        def error_of(self, index: int) -> Exception | None:
            """The error of a record."""

        def outcomes(self) -> list[BatchMetadata]:
            """Where the records are, batch by batch; raises the first error."""

        def first_error(self) -> Exception | None:
            """The first error of any record."""

        def all_metadata(self) -> list[RecordMetadata]:
            """Where each record is. Requires: written, and not in parts."""

    DeliveryCallback = Callable[["RecordMetadata", Exception | None], object]

    _RecordMetadataBase = tuple[str, int, int, int, int, int]
    _BatchMetadataBase = tuple[str, int, int, int, int]
else:
    _RecordMetadataBase = _BatchMetadataBase = tuple


class RecordMetadata(_RecordMetadataBase):
    """Where one record is: (topic, partition, offset, timestamp, key size, value size).

    `offset` is -1 when the broker was not asked (acks 0) or the record was not written.
    `timestamp` is the record's, or the broker's where the topic stamps at append. A serialized
    size is -1 for null.

    >>> with embedlog.open() as cluster, embedlog.Producer(cluster) as producer:
    ...     producer.send("events", b"value").result()
    RecordMetadata('events', 0, offset 0)
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def topic(self) -> str: ...

        @property
        def partition(self) -> int: ...

        @property
        def offset(self) -> int: ...

        @property
        def timestamp(self) -> int: ...

        @property
        def serialized_key_size(self) -> int: ...

        @property
        def serialized_value_size(self) -> int: ...

    else:
        topic = property(itemgetter(0))
        partition = property(itemgetter(1))
        offset = property(itemgetter(2))
        timestamp = property(itemgetter(3))
        serialized_key_size = property(itemgetter(4))
        serialized_value_size = property(itemgetter(5))

    def __repr__(self) -> str:
        return f"RecordMetadata({self.topic!r}, {self.partition}, offset {self.offset})"


class BatchMetadata(_BatchMetadataBase):
    """Where records sent together are: (topic, partition, offset, timestamp, count).

    `offset` is that of the first, the others follow without a gap; -1 as in `RecordMetadata`.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def topic(self) -> str: ...

        @property
        def partition(self) -> int: ...

        @property
        def offset(self) -> int: ...

        @property
        def timestamp(self) -> int: ...

        @property
        def record_count(self) -> int: ...

    else:
        topic = property(itemgetter(0))
        partition = property(itemgetter(1))
        offset = property(itemgetter(2))
        timestamp = property(itemgetter(3))
        record_count = property(itemgetter(4))

    def __repr__(self) -> str:
        return (
            f"BatchMetadata({self.topic!r}, {self.partition}, offset {self.offset}, "
            f"{self.record_count} records)"
        )


class DeliveryFuture:
    """The outcome of one `send`. Its callback has run before `done()` is true.

    Whoever makes one sets `batch` and `index`, the record's number in it: a constructor would cost
    each record 150 ns.
    """

    __slots__ = ("batch", "index")

    batch: SentBatch
    index: int

    def done(self) -> bool:
        """Is the outcome known? Takes what has arrived, and never waits."""
        batch = self.batch
        if not batch.is_done:
            batch.delivery.run()
        return batch.is_done

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait, at most `timeout` seconds, and return where the record is.

        An open batch is sent now: nobody has to wait for it to fill.

        Raises:
            TimedOut: time is over; the record is still on its way.
            KafkaError: the record was not written, and why.
        """
        batch = self.batch
        if not batch.is_done:
            batch.delivery.wait_for(batch, timeout)
        return batch.outcome(self.index)

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait as `result` does; the error the record failed with, None if it was written."""
        batch = self.batch
        if not batch.is_done:
            batch.delivery.wait_for(batch, timeout)
        return batch.error_of(self.index)

    def __repr__(self) -> str:
        state = "done" if self.batch.is_done else "on its way"
        return f"<DeliveryFuture {self.batch.topic}-{self.batch.partition} {state}>"


class BatchFuture:
    """The outcome of one `send_batch`: one `BatchMetadata` for each record batch it became."""

    __slots__ = ("batches",)

    def __init__(self, batches: Sequence[SentBatch]) -> None:
        self.batches = batches

    def done(self) -> bool:
        """Is the outcome of every record known? Never waits."""
        for batch in self.batches:
            if not batch.is_done:
                batch.delivery.run()
        return all(batch.is_done for batch in self.batches)

    def result(self, timeout: float | None = None) -> list[BatchMetadata]:
        """Wait, at most `timeout` seconds, and return where the records are.

        One entry per record batch: several when they went to several partitions, or are together
        larger than max.request.size.

        Raises:
            TimedOut: time is over; records are still on their way.
            KafkaError: records were not written, and why; others may have been.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        return [metadata for batch in self.batches for metadata in batch.outcomes()]

    def exception(self, timeout: float | None = None) -> Exception | None:
        """Wait as `result` does; the first error, None if everything was written."""
        self._wait(timeout)
        # All of them, as whoever asks has looked at all.
        errors = [batch.first_error() for batch in self.batches]
        return next((error for error in errors if error is not None), None)

    def _wait(self, timeout: float | None) -> None:
        for batch in self.batches:
            if not batch.is_done:
                batch.delivery.wait_for(batch, timeout)
