"""Records of one partition that travel together, and the queues where they wait for the sender.

Records are kept as columns, and become the bytes of a record batch in one go when they are sent:
that costs 35-165 ns a record, while encoding one by one costs 600.
"""

from __future__ import annotations

from itertools import repeat

from embedlog.client.producer.delivery import BatchMetadata, RecordMetadata
from embedlog.client.producer.partitioner import POSITIVE, StickyPartition, murmur2
from embedlog.client.producer.sizes import (
    BATCH_OVERHEAD,
    SMALL_SLACK,
    SMALL_VALUE_MAX,
    exact_record_size,
    exact_size,
)
from embedlog.common import deque
from wire.records.encode.builder import build_batch, renumbered
from wire.records.encode.built import BuiltBatch, NotPlain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from embedlog.client.producer.delivery import Delivery, DeliveryCallback

    Headers = Sequence[tuple[str, bytes | None]]
    from embedlog.client.metadata import TopicInfo
    from embedlog.client.producer.partitioner import NodeLatencies


class ProducerBatch:
    """One batch. The accumulator's lock guards appending; the sender owns it once it is drained.

    `size` is an estimate of its bytes before compression, `size_limit` what it may grow to.
    """

    # A batch a record is what `send(...).result()` makes: defaults of the class cost it nothing.
    memory = 0
    """What was reserved of buffer.memory for it."""
    size = 0
    measured_count = 0
    """Of so many records `size` is exact, and"""
    measured_size = 0
    """this much it is."""
    headers: list[Headers] | None = None
    callbacks: deque[tuple[int, DeliveryCallback]] | None = None
    record_count = 0
    """Set when it is closed."""
    key_sizes: list[int] | None = None
    value_sizes: Sequence[int] | None = None
    is_bulk = False
    """Made by `send_batch`: nobody asks for one record's metadata."""
    is_closed = False
    is_done = False
    """The outcome is known, and the callbacks know it."""
    is_split_product = False
    encoded: bytes | BuiltBatch | None = None
    encoded_size = 0
    """Bytes, also when they are no longer kept."""
    attempts = 0
    retry_at_ms = 0
    leader_epoch = -1
    """Of the leader that it was sent to last."""
    topic_id = bytes(16)
    """Of the topic that it was sent to last: the answer names that, whatever is known by then."""
    is_on_wire = False
    """It was sent, and what became of it is not known."""
    may_be_written = False
    """An attempt ended without an answer, or with one that leaves it open."""
    last_error: Exception | None = None
    """What its last attempt failed with."""
    observed_ratio = 1.0
    """Of compressed to plain size, once it is encoded."""
    producer_id = -1
    producer_epoch = -1
    base_sequence = -1
    overtaken_count = 0
    """Later batches of its partition that were acknowledged before it."""
    base_offset = -1
    log_append_ms = -1
    error: Exception | None = None
    is_error_seen = False
    """Has somebody asked for it?"""
    queue: PartitionQueue
    """Where it waits, or waited; a batch that failed at once has none."""
    is_wanted = False
    """Somebody waits for it: it is sent though it may have room."""
    on_done: Callable[[ProducerBatch], None] | None = None
    """Called once the waiters can see the outcome, by the thread that drives; must not raise. Who
    sets it looks afterwards whether the batch is done."""
    parent: ProducerBatch | None = None
    parts: list[ProducerBatch] | None = None
    """What it was split into; the outcomes are theirs."""

    def __init__(
        self,
        topic: str,
        partition: int,
        delivery: Delivery,
        *,
        created_ms: int,
        size_limit: int,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.delivery = delivery
        self.created_ms = created_ms
        self.size_limit = size_limit
        self.small_size_limit = size_limit
        """What it may grow to by small records without headers, one like the other. 0 when there
        are others in it, or when it is closed: then more is to be done than to append."""
        self.keys: list[bytes | None] | None = None  # of the class it would cost each `send` 60 ns
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        """One for each record; a bulk batch may have one for all."""

    @classmethod
    def refused(
        cls, topic: str, partition: int | None, error: Exception, delivery: Delivery
    ) -> ProducerBatch:
        """One that failed before it held a record."""
        number = -1 if partition is None else partition
        batch = cls(topic, number, delivery, created_ms=0, size_limit=0)
        batch.fail(error)
        batch.finish()
        return batch

    # Filling

    def add_key(self, key: bytes | None) -> None:
        """Append the key of the record whose value was appended last."""
        if self.keys is None:
            self.keys = [None] * (len(self.values) - 1)
        self.keys.append(key)

    def add_headers(self, headers: Headers) -> None:
        """Append the headers of the record whose value was appended last."""
        if self.headers is None:
            self.headers = [()] * (len(self.values) - 1)
            self.small_size_limit = 0
        self.headers.append(headers)

    def add_callback(self, callback: DeliveryCallback) -> None:
        """Call `callback` with the outcome of the record whose value was appended last."""
        if self.callbacks is None:
            self.callbacks = deque()
        self.callbacks.append((len(self.values) - 1, callback))

    def trim(self, count: int) -> None:
        """Keep `count` records: a KeyboardInterrupt left a part of the next one."""
        for column in (self.values, self.timestamps, self.keys, self.headers):
            if column is not None:
                del column[count:]
        while self.callbacks and self.callbacks[-1][0] >= count:
            self.callbacks.pop()

    def call_for_each(self, callback: DeliveryCallback) -> None:
        """Call `callback` with the outcome of each record, in order. Requires: none has one."""
        self.callbacks = deque([(index, callback) for index in range(len(self.values))])

    def measure(self) -> None:
        """Make `size` exact: it is counted from estimates that are rather too large."""
        start, count = self.measured_count, len(self.values)
        if start < count:
            self.measured_size += exact_size(
                self.values, self.keys, self.timestamps, self.headers, start
            )
            self.measured_count = count
        self.size = self.measured_size

    def has_room(  # noqa: PLR0917  the arguments of append
        self,
        estimate: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
    ) -> bool:
        """Does the record fit in after all, counted to the byte?"""
        if headers is None and estimate <= SMALL_VALUE_MAX and self.small_size_limit:
            least = self.size + estimate - SMALL_SLACK * (len(self.values) + 1)
            if least > self.size_limit:
                return False
        self.measure()
        if self.size + estimate <= self.size_limit:
            return True
        delta = timestamp - self.timestamps[0]
        size = exact_record_size(len(self.values), delta, key, value, headers or ())
        return self.size + size <= self.size_limit

    def is_full(self) -> bool:
        """Is it full, counted to the byte?"""
        self.measure()
        return self.size >= self.size_limit

    def close(self) -> None:
        """No record is added from here on."""
        self.record_count = len(self.values)
        self.is_closed = True
        self.small_size_limit = 0

    # Sending

    def encode(
        self,
        codec: int,
        level: int | None,
        *,
        transactional: bool = False,
        in_process: bool = False,
    ) -> bytes | BuiltBatch:
        """The record batch, made once for all attempts with these sequences.

        With `in_process` it may be one that the broker need not check again.
        """
        encoded = self.encoded
        if encoded is None and in_process and not codec and not transactional:
            encoded = self.encode_built()
        if encoded is None:
            encoded = self.encoded = build_batch(
                self.values,
                keys=self.keys,
                timestamps=self.timestamps[0] if len(self.timestamps) == 1 else self.timestamps,
                headers=self.headers,
                codec=codec,
                level=level,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                base_sequence=self.base_sequence,
                transactional=transactional,
            )
            self.encoded_size = len(encoded)
            self.observed_ratio = (len(encoded) - BATCH_OVERHEAD) / max(self.size, 1)
        return encoded

    def encode_built(self, value_sizes: Sequence[int] = ()) -> BuiltBatch | None:
        """The record batch as one that need not be checked; None if it cannot be one.

        `value_sizes` are the lengths of the values, where they are known.
        """
        if self.headers is not None:
            return None
        stamps = self.timestamps
        try:
            encoded = self.encoded = BuiltBatch(
                self.values,
                keys=self.keys,
                timestamps=stamps[0] if len(stamps) == 1 else stamps,
                producer=(self.producer_id, self.producer_epoch, self.base_sequence),
                sizes=value_sizes,
            )
        except NotPlain:
            return None
        self.encoded_size = encoded.size
        return encoded

    def set_producer(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        """Number the records for an idempotent producer."""
        self.producer_id = producer_id
        self.producer_epoch = epoch
        self.base_sequence = base_sequence
        encoded = self.encoded
        if type(encoded) is bytes:
            self.encoded = renumbered(encoded, producer_id, epoch, base_sequence)
        else:
            self.encoded = None

    def split(self, part_size_max: int) -> list[ProducerBatch]:
        """Cut into batches of about `part_size_max` bytes; this one's outcome becomes theirs.

        Requires: closed, more than one record.
        """
        assert self.record_count > 1, self.record_count
        parts: list[ProducerBatch] = []
        overhead = max(self.size - sum(map(_size, self.values)), 0) // self.record_count
        start = 0
        size = 0
        for index, value in enumerate(self.values):
            record_size = _size(value) + overhead
            if index > start and size + record_size > part_size_max:
                parts.append(self._part(start, index, size))
                start, size = index, 0
            size += record_size
        if not parts:
            # The estimate fits in one part though the broker refused it: halve.
            half = self.record_count // 2
            parts.append(self._part(0, half, self.size // 2))
            start, size = half, self.size - self.size // 2
        parts.append(self._part(start, self.record_count, size))
        parts[0].memory, self.memory = self.memory, 0
        self.parts = parts
        self._forget_records()
        return parts

    def _part(self, start: int, end: int, size: int) -> ProducerBatch:
        part = ProducerBatch(
            self.topic,
            self.partition,
            self.delivery,
            created_ms=self.created_ms,
            size_limit=self.size_limit,
        )
        part.values = self.values[start:end]
        stamps = self.timestamps
        part.timestamps = stamps[start:end] if len(stamps) == self.record_count else stamps
        part.keys = None if self.keys is None else self.keys[start:end]
        part.headers = None if self.headers is None else self.headers[start:end]
        if self.callbacks is not None:
            part.callbacks = deque(
                [(index - start, call) for index, call in self.callbacks if start <= index < end]
            )
        part.size = size
        part.queue = self.queue
        part.attempts = self.attempts
        part.is_bulk = self.is_bulk
        part.is_split_product = True
        part.parent = self
        part.close()
        return part

    # The outcome

    def succeed(self, base_offset: int, log_append_ms: int) -> None:
        """The records are written (base_offset -1: somewhere)."""
        self.base_offset = base_offset
        self.log_append_ms = log_append_ms
        if self.record_count == 1 and self.keys is None and not self.is_bulk:
            # As `_forget_records`, of what `send(...).result()` makes.
            (value,) = self.values
            self.value_sizes = (-1 if value is None else len(value),)
            self.values = []
            self.headers = self.encoded = None
        else:
            self._forget_records()

    def fail(self, error: Exception) -> None:
        """The records are given up."""
        self.error = error
        self._forget_records()

    def finish(self) -> None:
        """Let the waiters see the outcome. Its callbacks have run."""
        self.callbacks = None
        self.is_done = True
        on_done = self.on_done
        if on_done is not None:
            on_done(self)
        parent = self.parent
        if parent is not None and all(part.is_done for part in parent.parts or ()):
            parent.finish()

    @property
    def has_outcome(self) -> bool:
        """Is it known what became of it, whoever has been told?"""
        return self.error is not None or (self.record_count > 0 and not self.values)

    def outcome(self, index: int) -> RecordMetadata:
        """Where record `index` is; raises its error. Requires: done."""
        if self.parts is not None:
            part, index = self._locate(index)
            return part.outcome(index)
        if self.error is not None:
            self.is_error_seen = True
            raise self.error
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

    def metadata(self, index: int) -> RecordMetadata:
        """The metadata of record `index`, whether it was written or not."""
        if self.error is not None:
            return RecordMetadata((self.topic, self.partition, -1, -1, -1, -1))
        return self.outcome(index)

    def all_metadata(self) -> list[RecordMetadata]:
        """`metadata` of each record, in loops of C: half of what it takes one by one.

        Requires: the batch was written, and is no bulk one.
        """
        assert self.error is None, self
        assert not self.is_bulk, self
        count = self.record_count
        if count == 1:
            return [self.metadata(0)]
        first = self.base_offset
        columns = (
            repeat(self.topic, count),
            repeat(self.partition),
            range(first, first + count) if first >= 0 else repeat(-1),
            repeat(self.log_append_ms) if self.log_append_ms >= 0 else self.timestamps,
            repeat(-1) if self.key_sizes is None else self.key_sizes,
            repeat(-1) if self.value_sizes is None else self.value_sizes,
        )
        return list(map(RecordMetadata, zip(*columns, strict=False)))  # some have no end

    def error_of(self, index: int) -> Exception | None:
        """The error of record `index`. Requires: done."""
        if self.parts is not None:
            part, index = self._locate(index)
            return part.error_of(index)
        self.is_error_seen = self.error is not None
        return self.error

    def outcomes(self) -> list[BatchMetadata]:
        """Where the records are, batch by batch; raises the first error. Requires: done."""
        if self.parts is not None:
            return [found for part in self.parts for found in part.outcomes()]
        if self.error is not None:
            self.is_error_seen = True
            raise self.error
        stamp = self.log_append_ms if self.log_append_ms >= 0 else self.timestamps[0]
        found = (self.topic, self.partition, self.base_offset, stamp, self.record_count)
        return [BatchMetadata(found)]

    def first_error(self) -> Exception | None:
        """The first error of any record. Requires: done."""
        if self.parts is None:
            self.is_error_seen = self.error is not None
            return self.error
        errors = [part.first_error() for part in self.parts]
        return next((error for error in errors if error is not None), None)

    def _locate(self, index: int) -> tuple[ProducerBatch, int]:
        assert self.parts is not None, self
        for part in self.parts:
            if index < part.record_count:
                return part, index
            index -= part.record_count
        raise IndexError(index)

    def _forget_records(self) -> None:
        """Keep sizes, not records: a future may be held for long."""
        if not self.is_bulk:
            self.value_sizes = _sizes(self.values)
            self.key_sizes = None if self.keys is None else _sizes(self.keys)
        else:
            self.timestamps = self.timestamps[:1]
        self.values = []
        self.keys = self.headers = self.encoded = None

    @property
    def place(self) -> str:
        """Its topic and, if that was chosen, its partition."""
        return f"{self.topic}-{self.partition}" if self.partition >= 0 else str(self.topic)

    def __repr__(self) -> str:
        return (
            f"<ProducerBatch {self.topic}-{self.partition} {self.record_count or len(self.values)} "
            f"records, {self.size} bytes, attempt {self.attempts}>"
        )


def _size(value: bytes | None) -> int:
    return 0 if value is None else len(value)


def _sizes(values: list[bytes | None]) -> list[int]:
    """The length of each value, -1 for null."""
    try:
        return list(map(len, values))  # type: ignore[arg-type]
    except TypeError:
        return [-1 if value is None else len(value) for value in values]


_CACHED_KEYS_MAX = 65_536
_RATIO_WORSE_STEP = 0.05
_RATIO_BETTER_STEP = 0.005


class PartitionQueue:
    """The batches of one partition that wait for the sender, oldest first."""

    __slots__ = ("batches", "is_muted", "open", "partition", "topic")

    def __init__(self, topic: TopicQueues, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.batches: deque[ProducerBatch] = deque()
        self.open: ProducerBatch | None = None
        """The last batch, while records may still join it."""
        self.is_muted = False
        """One request at a time (max.in.flight 1), and one is under way."""

    def close_open(self) -> None:
        """Let no more records into the last batch."""
        if self.open is not None:
            self.open.close()
            self.open = None

    def insert(self, batch: ProducerBatch) -> None:
        """Put back a batch that was sent, before what was not.

        Batches with sequences stay in the order of their sequences.
        """
        position = 0
        if batch.base_sequence >= 0:
            for waiting in self.batches:
                if not _is_before(waiting, batch):
                    break
                position += 1
        self.batches.insert(position, batch)


class TopicQueues:
    """The queues of one topic, and which of them records without a key join."""

    __slots__ = ("by_key", "compression_ratio", "info", "name", "queues", "sticky", "sticky_queue")

    def __init__(self, name: str, sticky: StickyPartition, info: TopicInfo) -> None:
        self.name = name
        self.info = info
        """The topic as metadata last described it."""
        self.queues: dict[int, PartitionQueue] = {}
        self.by_key: dict[bytes, PartitionQueue] = {}
        """Where records with these keys go, as long as the topic has so many partitions."""
        self.sticky = sticky
        self.sticky_queue: PartitionQueue | None = None
        """The queue of the sticky partition; None when another is to be chosen."""
        self.compression_ratio = 1.0
        """Estimate of compressed to plain size."""

    def queue(self, partition: int) -> PartitionQueue:
        """The queue of `partition`, made when first asked for."""
        found = self.queues.get(partition)
        if found is None:
            found = self.queues[partition] = PartitionQueue(self, partition)
        return found

    def queue_of(self, key: bytes) -> PartitionQueue:
        """The queue that the hash of `key` decides, remembered: hashing 8 bytes takes 1 us.

        When the memory is full it is emptied; a dict that evicts one by one would cost each hit.
        """
        by_key = self.by_key
        found = by_key.get(key)
        if found is None:
            hashed = murmur2(key) & POSITIVE
            if len(by_key) >= _CACHED_KEYS_MAX:
                by_key.clear()
            found = by_key[key] = self.queue(hashed % len(self.info.partitions))
        return found

    def learn_ratio(self, observed: float) -> None:
        """Move the estimate: up fast when batches compress worse, down slowly."""
        if observed > self.compression_ratio:
            self.compression_ratio = max(self.compression_ratio + _RATIO_WORSE_STEP, observed)
        else:
            self.compression_ratio = max(self.compression_ratio - _RATIO_BETTER_STEP, observed)

    def choose_sticky(self, latencies: NodeLatencies, *, adaptive: bool) -> PartitionQueue:
        """Choose the next partition for records without a key.

        At random among those that have a leader. `adaptive`, once each partition of the topic has
        had a batch: rather one with a short queue, and none whose leader does not keep up.
        """
        info = self.info
        available = info.available or [each.partition for each in info.partitions]
        sizes = None
        if adaptive and len(self.queues) >= len(info.partitions):
            if latencies.is_watching:
                quick = [
                    number
                    for number in available
                    if not latencies.is_slow(info.partitions[number].leader)
                ]
                available = quick or available
            sizes = [len(self.queue(number).batches) for number in available]
        chosen = self.sticky_queue = self.queue(self.sticky.choose(available, sizes))
        return chosen


def _is_before(waiting: ProducerBatch, batch: ProducerBatch) -> bool:
    """Do the numbers of `waiting` come before those of `batch`? They may have begun again at 0."""
    if waiting.base_sequence < 0:
        return False
    return 0 < (batch.base_sequence - waiting.base_sequence) & 0x7FFF_FFFF < 0x4000_0000
