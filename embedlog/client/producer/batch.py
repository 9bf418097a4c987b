"""`ProducerBatch`: records of one partition that are sent together, and their outcome.

Records are kept as columns, and become the bytes of a record batch in one go when they are sent:
that costs 35-165 ns a record, while encoding one by one costs 600.
"""

from __future__ import annotations

from embedlog.client.producer.columns import Columns
from embedlog.client.producer.sizes import (
    BATCH_OVERHEAD,
    SMALL_SLACK,
    SMALL_VALUE_MAX,
    exact_record_size,
)
from embedlog.common import deque, item
from embedlog.errors import again
from wire.records.encode.builder import build_batch, renumbered
from wire.records.encode.built import BuiltBatch, NotPlain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Final, Protocol

    from embedlog.client.metadata import PartitionInfo
    from embedlog.client.producer.sizes import Headers

    class Delivery(Protocol):
        """The sender of a producer's batches, as their futures use it."""

        def run(self) -> None:
            """Make a pass; never waits."""

        def wait_for(self, batch: Any, timeout: float | None) -> None:
            """Return when `batch` is done; raise TimedOut after `timeout` seconds."""

    DeliveryCallback = Callable[["RecordMetadata", Exception | None], object]
_NO_NUMBERS = (-1, -1, -1)


class RecordMetadata(tuple[str, int, int, int, int, int]):
    """The place of one record: (topic, partition, offset, timestamp, key size, value size).

    `offset` is -1 with acks 0, because no answer comes, and for a record that was not written.
    `timestamp` is the record's, or the broker's if the topic has LogAppendTime. A serialized size
    is -1 for null.

    >>> with embedlog.open() as cluster, embedlog.Producer(cluster) as producer:
    ...     producer.send("events", b"value").result()
    RecordMetadata('events', 0, offset 0)
    """

    __slots__ = ()

    topic: Final[str] = item(0)
    partition: Final[int] = item(1)
    offset: Final[int] = item(2)
    timestamp: Final[int] = item(3)
    serialized_key_size: Final[int] = item(4)
    serialized_value_size: Final[int] = item(5)

    def __repr__(self) -> str:
        return f"RecordMetadata({self.topic!r}, {self.partition}, offset {self.offset})"


class BatchMetadata(tuple[str, int, int, int, int]):
    """The place of records that were sent together: (topic, partition, offset, timestamp, count).

    `offset` is the first record's, and the others follow without a gap; -1 as in `RecordMetadata`.
    """

    __slots__ = ()

    topic: Final[str] = item(0)
    partition: Final[int] = item(1)
    offset: Final[int] = item(2)
    timestamp: Final[int] = item(3)
    record_count: Final[int] = item(4)

    def __repr__(self) -> str:
        return (
            f"BatchMetadata({self.topic!r}, {self.partition}, offset {self.offset}, "
            f"{self.record_count} records)"
        )


class Written:
    """The outcome of records that are in the log."""

    __slots__ = (
        "base_offset",
        "count",
        "key_sizes",
        "log_append_ms",
        "partition",
        "timestamps",
        "topic",
        "value_sizes",
    )
    error = None

    def __init__(self, batch: ProducerBatch, base_offset: int, log_append_ms: int) -> None:
        """`base_offset` is -1 if the broker did not return it; `log_append_ms` is -1 if the records
        keep their own timestamps.

        The outcome keeps sizes instead of records, because a program may hold a future for long.
        """
        records = batch.records
        self.topic = batch.topic
        self.partition = batch.partition
        self.base_offset = base_offset
        self.log_append_ms = log_append_ms
        self.count = batch.record_count
        if batch.is_bulk:
            self.timestamps = records.timestamps[:1]
            self.key_sizes = self.value_sizes = None
        else:
            self.timestamps = records.timestamps
            self.key_sizes = None if records.keys is None else _sizes(records.keys)
            try:
                self.value_sizes = list(map(len, records.values))
            except TypeError:  # null
                self.value_sizes = _sizes(records.values)

    def record(self, index: int) -> RecordMetadata:
        first, sizes, key_sizes = self.base_offset, self.value_sizes, self.key_sizes
        return RecordMetadata(
            (
                self.topic,
                self.partition,
                first + index if first >= 0 else -1,
                self.log_append_ms if self.log_append_ms >= 0 else self.timestamps[index],
                -1 if key_sizes is None else key_sizes[index],
                -1 if sizes is None else sizes[index],
            )
        )

    metadata = record

    def error_of(self, index: int) -> None:
        """Return None: every record was written."""

    def first_error(self) -> None:
        """Return None: every record was written."""

    def batches(self) -> list[BatchMetadata]:
        stamp = self.log_append_ms if self.log_append_ms >= 0 else self.timestamps[0]
        return [BatchMetadata((self.topic, self.partition, self.base_offset, stamp, self.count))]


class Failed:
    """The outcome of records that were given up."""

    __slots__ = ("error", "is_seen", "partition", "topic")

    def __init__(self, topic: str, partition: int, error: Exception) -> None:
        self.topic = topic
        self.partition = partition
        self.error = error
        self.is_seen = False
        """True if a caller has looked at the error."""

    def metadata(self, index: int) -> RecordMetadata:
        """Return the metadata for a callback, which also gets the error."""
        return RecordMetadata((self.topic, self.partition, -1, -1, -1, -1))

    def record(self, index: int) -> RecordMetadata:
        self.is_seen = True
        raise again(self.error)

    def error_of(self, index: int) -> Exception:
        return self.first_error()

    def first_error(self) -> Exception:
        self.is_seen = True
        return self.error

    def batches(self) -> list[BatchMetadata]:
        self.is_seen = True
        raise again(self.error)


class InParts:
    """The outcome of records that are sent in parts: the outcomes of the parts."""

    __slots__ = ("parts",)
    error = None

    def __init__(self, parts: list[ProducerBatch]) -> None:
        self.parts = parts

    def record(self, index: int) -> RecordMetadata:
        """Return the place of record `index`, or raise its error."""
        part, index = self._locate(index)
        return part.outcome.record(index)

    metadata = record

    def error_of(self, index: int) -> Exception | None:
        part, index = self._locate(index)
        return part.outcome.error_of(index)

    def first_error(self) -> Exception | None:
        """Return the first error of any record; this marks all errors as seen."""
        errors = [part.outcome.first_error() for part in self.parts]
        return next((error for error in errors if error is not None), None)

    def batches(self) -> list[BatchMetadata]:
        """Return the places of the parts, or raise the first error."""
        return [found for part in self.parts for found in part.outcome.batches()]

    def _locate(self, index: int) -> tuple[ProducerBatch, int]:
        for part in self.parts:
            if index < part.record_count:
                return part, index
            index -= part.record_count
        raise IndexError(index)


_NO_RECORDS = Columns([], [])


class ProducerBatch:
    """One batch. The accumulator's lock guards it until it is drained; then the sender owns it.

    `size` is an estimate of its bytes before compression, at most `size_limit`.
    """

    # Class attributes: they cost nothing in `send(...).result()`, one batch per record.
    memory = 0
    callbacks: deque[tuple[int, DeliveryCallback]] | None = None
    record_count = 0
    """Number of records; set when the batch is closed."""
    is_bulk = False
    """True if `send_batch` made it: nobody needs one record's metadata."""
    is_closed = False
    is_wanted = False
    """True if a caller waits for the batch: it is sent even if it has room."""
    is_split_product = False
    queue: Any = None
    """Its `PartitionQueue`; None for a batch that failed at once."""
    encoded: bytes | BuiltBatch | None = None
    numbers = _NO_NUMBERS
    """Producer id, epoch and first sequence."""
    is_transactional = False
    overtaken_count = 0
    """Number of later batches of the partition that were acknowledged before this batch."""
    attempts = 0
    retry_at_ms = 0
    leader: PartitionInfo | None = None
    """The leader of its last attempt."""
    topic_id = bytes(16)
    """The topic id of the last attempt; the answer names this id even if the topic has a new id."""
    is_on_wire = False
    """True if the batch was sent and its outcome is unknown."""
    may_be_written = False
    """True if an attempt may have written the batch: no answer came, or none that decides it."""
    last_error: Exception | None = None
    outcome: Written | Failed | InParts = None  # type: ignore[assignment]
    """None until the outcome is known."""
    is_done = False
    """True once the outcome is known and the callbacks have run."""
    on_done: Callable[[ProducerBatch], None] | None = None
    """Called by the thread of the pass once waiting threads can see the outcome; must not raise.
    After setting it, test `is_done`: the batch may be done already."""

    def __init__(
        self,
        topic: str,
        partition: int,
        delivery: Delivery,
        records: Columns,
        *,
        created_ms: int,
        size: int,
        size_limit: int,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.delivery = delivery
        self.records = records
        self.created_ms = created_ms
        self.size = size
        self.size_limit = self.small_size_limit = size_limit
        # `small_size_limit` is the limit while the batch holds only small records without headers;
        # 0 for other batches, and once it is closed: then `send` must do more than append.

    @classmethod
    def refused(
        cls, topic: str, partition: int | None, error: Exception, delivery: Delivery
    ) -> ProducerBatch:
        """Return a batch that failed before it held a record."""
        number = -1 if partition is None else partition
        batch = cls(topic, number, delivery, _NO_RECORDS, created_ms=0, size=0, size_limit=0)
        batch.fail(error)
        batch.finish()
        return batch

    # Filling

    def add_callback(self, index: int, callback: DeliveryCallback) -> None:
        """Call `callback` with the outcome of record `index`, now the batch's last record."""
        if self.callbacks is None:
            self.callbacks = deque()
        self.callbacks.append((index, callback))

    def trim(self, count: int) -> None:
        """Keep `count` records; drop the incomplete record that a KeyboardInterrupt left."""
        self.records.trim(count)
        while self.callbacks and self.callbacks[-1][0] >= count:
            self.callbacks.pop()

    def has_room(  # noqa: PLR0917  the arguments of append
        self,
        estimate: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
    ) -> bool:
        """Return whether the record fits into the batch, by the exact sizes of all records."""
        records = self.records
        count = len(records.values)
        if headers is None and estimate <= SMALL_VALUE_MAX and self.small_size_limit:
            least = self.size + estimate - SMALL_SLACK * (count + 1)
            if least > self.size_limit:
                return False
        self.size = records.measure()
        if self.size + estimate <= self.size_limit:
            return True
        delta = timestamp - records.timestamps[0]
        size = exact_record_size(count, delta, key, value, headers or ())
        return self.size + size <= self.size_limit

    def is_full(self) -> bool:
        """Return whether the batch is full, by the exact sizes of its records."""
        self.size = self.records.measure()
        return self.size >= self.size_limit

    def close(self) -> None:
        self.record_count = len(self.records.values)
        self.is_closed = True
        self.small_size_limit = 0

    # Sending

    def encode(self, codec: int, level: int | None) -> bytes | BuiltBatch:
        """Return the record batch, made once for all attempts with the same sequences."""
        encoded = self.encoded
        if encoded is None:
            records = self.records
            stamps = records.timestamps
            producer_id, producer_epoch, base_sequence = self.numbers
            encoded = self.encoded = build_batch(
                records.values,
                keys=records.keys,
                timestamps=stamps[0] if len(stamps) == 1 else stamps,
                headers=records.headers,
                codec=codec,
                level=level,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                transactional=self.is_transactional,
            )
        return encoded

    def encode_built(self) -> BuiltBatch | None:
        """Return the batch in the form that the log need not check; None if it has to be bytes."""
        records = self.records
        if records.headers is not None or self.is_transactional:
            return None
        stamps = records.timestamps
        try:
            encoded = self.encoded = BuiltBatch(
                records.values,
                keys=records.keys,
                timestamps=stamps[0] if len(stamps) == 1 else stamps,
                producer=self.numbers,
                sizes=records.value_sizes,
            )
        except NotPlain:
            return None
        return encoded

    def set_producer(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        self.numbers = producer_id, epoch, base_sequence
        encoded = self.encoded
        if type(encoded) is bytes:
            self.encoded = renumbered(encoded, producer_id, epoch, base_sequence)
        else:
            self.encoded = None

    @property
    def base_sequence(self) -> int:
        """The sequence of its first record; -1 if it has none."""
        return self.numbers[2]

    @property
    def observed_ratio(self) -> float:
        """The ratio of compressed to plain size. Requires: it is encoded."""
        return (len(self.encoded or b"") - BATCH_OVERHEAD) / max(self.size, 1)

    def split(self, part_size_max: int) -> list[ProducerBatch]:
        """Cut into batches of about `part_size_max` bytes; their outcomes become this batch's.

        Requires: the batch is closed, and has more than one record.
        """
        assert self.record_count > 1, self.record_count
        parts: list[ProducerBatch] = []
        values = self.records.values
        overhead = max(self.size - sum(map(_size, values)), 0) // self.record_count
        start = 0
        size = 0
        for index, value in enumerate(values):
            record_size = _size(value) + overhead
            if index > start and size + record_size > part_size_max:
                parts.append(self._part(start, index, size))
                start, size = index, 0
            size += record_size
        if not parts:
            # The estimate fits in one part, but the broker refused the batch: halve it.
            half = self.record_count // 2
            parts.append(self._part(0, half, self.size // 2))
            start, size = half, self.size - self.size // 2
        parts.append(self._part(start, self.record_count, size))
        self.outcome = InParts(parts)
        self.records = _NO_RECORDS
        self.encoded = self.callbacks = None
        return parts

    def _part(self, start: int, end: int, size: int) -> ProducerBatch:
        part = ProducerBatch(
            self.topic,
            self.partition,
            self.delivery,
            self.records.part(start, end),
            created_ms=self.created_ms,
            size=size,
            size_limit=0,
        )
        if self.callbacks is not None:
            part.callbacks = deque(
                [(index - start, call) for index, call in self.callbacks if start <= index < end]
            )
        part.queue = self.queue
        part.attempts = self.attempts
        part.is_bulk = self.is_bulk
        part.is_transactional = self.is_transactional
        part.is_split_product = True
        part.may_be_written = self.may_be_written
        part.on_done = self.part_is_done
        part.close()
        return part

    # The outcome

    def succeed(self, base_offset: int, log_append_ms: int) -> None:
        """Note that the records are written; `base_offset` is -1 if it is unknown."""
        self.outcome = Written(self, base_offset, log_append_ms)
        self.records = _NO_RECORDS
        self.encoded = None

    def fail(self, error: Exception) -> None:
        self.outcome = Failed(self.topic, self.partition, error)
        self.records = _NO_RECORDS
        self.encoded = None

    def finish(self) -> None:
        """Let waiting threads see the outcome. Requires: its callbacks have run."""
        self.is_done = True
        if self.on_done is not None:
            self.on_done(self)

    def part_is_done(self, _part: ProducerBatch) -> None:
        if isinstance(self.outcome, InParts) and all(part.is_done for part in self.outcome.parts):
            self.finish()

    @property
    def place(self) -> str:
        """Its topic and, if it was chosen, its partition."""
        return f"{self.topic}-{self.partition}" if self.partition >= 0 else str(self.topic)

    def __repr__(self) -> str:
        count = self.record_count or len(self.records.values)
        return (
            f"<ProducerBatch {self.topic}-{self.partition} {count} records, {self.size} bytes, "
            f"attempt {self.attempts}>"
        )


def _size(value: bytes | None) -> int:
    return 0 if value is None else len(value)


def _sizes(values: Sequence[bytes | None]) -> list[int]:
    """Return the length of each value, -1 for null."""
    return [-1 if value is None else len(value) for value in values]
