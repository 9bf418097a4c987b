"""Records on their way to the sender: for each partition a queue of batches.

Records join the last batch of their partition's queue while it is open and has room; the sender
takes batches from the front. A batch is sendable when it is closed (full, asked for, followed by
another one) or has waited linger.ms.
"""

from __future__ import annotations

from _thread import allocate_lock

from embedlog.client.buffer_pool import BufferPool
from embedlog.client.delivery import DeliveryFuture
from embedlog.client.partitioner import StickyPartition
from embedlog.client.producer_batch import ProducerBatch
from embedlog.common import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.delivery import DeliveryCallback
    from embedlog.client.metadata import TopicInfo
    from embedlog.client.producer_batch import Delivery, Headers
    from embedlog.client.settings import Settings
    from embedlog.runtime import Runtime

BATCH_OVERHEAD = 61
SMALL_VALUE_MAX = 8_000
SMALL_OVERHEAD = 12
"""Bytes around a value below 8 KB in its batch: length 2, attributes, timestamp delta 2, offset
delta 2, key length 1, value length 2, header count, and one to spare."""
_LARGE_OVERHEAD = 36
"""The most that can surround a key and a value: 21 of the record, 5 for each of three lengths."""
_HEADER_OVERHEAD = 10
_RATIO_MARGIN = 1.05
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


class TopicQueues:
    """The queues of one topic, and which of them records without a key join."""

    __slots__ = ("compression_ratio", "info", "name", "queues", "sticky", "sticky_queue")

    def __init__(self, name: str, sticky: StickyPartition, info: TopicInfo) -> None:
        self.name = name
        self.info = info
        """The topic as metadata last described it."""
        self.queues: dict[int, PartitionQueue] = {}
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

    def learn_ratio(self, observed: float) -> None:
        """Move the estimate: up fast when batches compress worse, down slowly."""
        if observed > self.compression_ratio:
            self.compression_ratio = max(self.compression_ratio + _RATIO_WORSE_STEP, observed)
        else:
            self.compression_ratio = max(self.compression_ratio - _RATIO_BETTER_STEP, observed)


class RecordAccumulator:
    """The queues of one producer. Methods take `lock` themselves unless they say otherwise."""

    def __init__(self, settings: Settings, delivery: Delivery, runtime: Runtime) -> None:
        self.lock = allocate_lock()
        self.pool = BufferPool(settings["buffer.memory"])
        self.incomplete: dict[ProducerBatch, None] = {}
        """Every batch whose callbacks have not run, waiting here or sent."""
        self.active: dict[PartitionQueue, None] = {}
        """The queues that hold a batch, in the order they got one."""
        self.has_sendable = False
        """A batch was closed since the sender last looked."""
        self.needs_attention = False
        """A batch was begun or closed since the producer last looked."""
        self._delivery = delivery
        self._below = runtime.random.below
        self._clock = runtime.clock
        self._batch_size: int = settings["batch.size"]
        self._compresses = settings["compression.type"] != "none"
        self._adaptive: bool = settings["partitioner.adaptive.partitioning.enable"]
        self._topics: dict[str, TopicQueues] = {}

    def topic(self, info: TopicInfo) -> TopicQueues:
        """The queues of a topic, made when first asked for."""
        found = self._topics.get(info.name)
        if found is None:
            with self.lock:
                sticky = StickyPartition(self._batch_size, self._below)
                made = TopicQueues(info.name, sticky, info)
                found = self._topics.setdefault(info.name, made)
        found.info = info
        return found

    def append(  # noqa: PLR0917  called for every record: keywords cost 40 ns
        self,
        queue: PartitionQueue,
        size: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        callback: DeliveryCallback | None,
        is_sticky: bool,
    ) -> DeliveryFuture | None:
        """Add a record to the partition's last batch, or begin a new one.

        `size` is its estimated size, see `record_size`. `is_sticky`: the record has no key and no
        named partition; it may go to another queue of the topic when this one's batch is full.
        None when buffer.memory has no room for a new batch: the caller waits and tries again.
        """
        lock = self.lock
        lock.acquire()  # `with` costs 160 ns more than this
        try:
            batch = queue.open
            if batch is None:
                batch = self._begin(queue, size)
            elif batch.size + size > batch.size_limit:
                batch = self._next_batch(queue, size, is_sticky)
            if batch is None:
                return None
            batch.size += size
            values = batch.values
            index = len(values)
            values.append(value)
            batch.timestamps.append(timestamp)
            if key is not None or batch.keys is not None:
                batch.add_key(key)
            if headers is not None or batch.headers is not None:
                batch.add_headers(headers or ())
            if callback is not None:
                batch.add_callback(callback)
            if batch.size >= batch.size_limit:
                self._close_full(batch.queue)
        finally:
            lock.release()
        return DeliveryFuture(batch, index)

    def add_batch(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """Queue a batch that is complete already, after everything appended before it.

        False when buffer.memory has no room for it.
        """
        with self.lock:
            if not self.pool.reserve(batch.size):
                return False
            batch.memory = batch.size
            batch.queue = queue
            queue.close_open()
            queue.batches.append(batch)
            self.incomplete[batch] = None
            self.active[queue] = None
            self.has_sendable = True
            self.produced(queue, batch.size, is_full=True)
        return True

    def sticky_queue(self, topic: TopicQueues) -> PartitionQueue:
        """The queue that a record without a key joins now."""
        with self.lock:
            queue = topic.sticky_queue
            return queue if queue is not None else self._choose_sticky(topic)

    def close_all(self) -> None:
        """Make everything that waits sendable."""
        with self.lock:
            for queue in self.active:
                queue.close_open()
            self.has_sendable = bool(self.active)

    def finished(self, batch: ProducerBatch) -> None:
        """The batch has its outcome, and its callbacks know: its memory may be used again."""
        lock = self.lock
        lock.acquire()
        try:
            self.incomplete.pop(batch, None)
            self.pool.release(batch.memory)
        finally:
            lock.release()

    def put_back(self, batch: ProducerBatch) -> None:
        """Queue a batch again that is to be retried, before what was not sent yet.

        Batches with sequences stay in the order of their sequences.
        """
        with self.lock:
            queue = batch.queue
            position = 0
            if batch.base_sequence >= 0:
                for waiting in queue.batches:
                    if not 0 <= waiting.base_sequence < batch.base_sequence:
                        break
                    position += 1
            queue.batches.insert(position, batch)
            self.active[queue] = None

    def replace_by_parts(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Queue what `batch` was split into, at the front."""
        with self.lock:
            del self.incomplete[batch]
            self.incomplete.update(dict.fromkeys(parts))
            queue = batch.queue
            queue.batches.extendleft(reversed(parts))
            self.active[queue] = None

    # Requires: the lock

    def take_first(self, queue: PartitionQueue) -> ProducerBatch:
        """Remove the first batch for the sender, closing it. Requires: the lock."""
        batch = queue.batches.popleft()
        if not batch.is_closed:
            queue.close_open()
            self.produced(queue, batch.size, is_full=False)
        if not queue.batches:
            del self.active[queue]
        return batch

    def _next_batch(
        self, queue: PartitionQueue, size: int, is_sticky: bool
    ) -> ProducerBatch | None:
        """The batch that a record of `size` bytes joins when the open one has no room."""
        self._close_full(queue)
        if is_sticky and queue.topic.sticky_queue is None:
            queue = self._choose_sticky(queue.topic)
            batch = queue.open
            if batch is not None and batch.size + size <= batch.size_limit:
                return batch
        return self._begin(queue, size)

    def _close_full(self, queue: PartitionQueue) -> None:
        assert queue.open is not None, queue
        size = queue.open.size
        queue.close_open()
        self.has_sendable = self.needs_attention = True
        self.produced(queue, size, is_full=True)

    def _begin(self, queue: PartitionQueue, size: int) -> ProducerBatch | None:
        memory = self._batch_size if size < self._batch_size else size
        if not self.pool.reserve(memory):
            self.has_sendable = True
            return None
        limit = self._batch_size - BATCH_OVERHEAD
        if self._compresses:
            limit = int(limit / (queue.topic.compression_ratio * _RATIO_MARGIN))
        batch = ProducerBatch(
            queue.topic.name,
            queue.partition,
            self._delivery,
            created_ms=self._clock.monotonic_ms(),
            size_limit=limit,
        )
        batch.memory = memory
        batch.queue = queue
        queue.batches.append(batch)
        queue.open = batch
        self.incomplete[batch] = None
        self.active[queue] = None
        self.needs_attention = True
        return batch

    def produced(self, queue: PartitionQueue, size: int, *, is_full: bool) -> None:
        """Count what went to a partition: after enough of it the topic's next one is chosen."""
        topic = queue.topic
        if queue is topic.sticky_queue and topic.sticky.produced(size, batch_is_full=is_full):
            topic.sticky_queue = None

    def _choose_sticky(self, topic: TopicQueues) -> PartitionQueue:
        info = topic.info
        available = info.available or [each.partition for each in info.partitions]
        sizes = None
        if self._adaptive and all(partition in topic.queues for partition in available):
            sizes = [len(topic.queues[partition].batches) for partition in available]
        chosen = topic.sticky_queue = topic.queue(topic.sticky.choose(available, sizes))
        return chosen


def headers_size(headers: Headers) -> int:
    """An upper bound of the bytes that headers take in a record."""
    return sum(
        len(key.encode()) + (len(value) if value is not None else 0) + _HEADER_OVERHEAD
        for key, value in headers
    )


def record_size(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """About the bytes a record takes in its batch, rather too many than too few."""
    size = len(value) if value is not None else 0
    if key is not None:
        size += len(key)
    size += SMALL_OVERHEAD if size <= SMALL_VALUE_MAX else _LARGE_OVERHEAD
    return size + headers_size(headers) if headers else size


def size_upper_bound(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """The most bytes a record can take as a batch of its own."""
    size = BATCH_OVERHEAD + _LARGE_OVERHEAD
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    return size + headers_size(headers) if headers else size
