"""Records on their way to the sender: a queue of batches for each partition.

Records join the last batch of their partition's queue while it is open and has room; the sender
takes batches from the front. A batch is due when it is closed (full, asked for, or followed by
another batch), when it has waited linger.ms, or when memory is short. After a failed attempt it is
due when its back-off is over, or when the partition has a leader other than the failed one
(KIP-951).

buffer.memory limits the bytes that wait: see `BufferPool`.
"""

from __future__ import annotations

from _thread import get_ident
from itertools import islice

from embedlog.client.errors import BufferExhausted
from embedlog.client.producer.batch import ProducerBatch
from embedlog.client.producer.columns import Columns
from embedlog.client.producer.futures import DeliveryFuture
from embedlog.client.producer.sizes import BATCH_OVERHEAD, SMALL_VALUE_MAX
from embedlog.common import deque
from embedlog.errors import ClosedError
from embedlog.runtime.locks import Rank, ranked_rlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import RLock
    from collections.abc import Callable, Mapping

    from embedlog.client.drivers.driver import Driver
    from embedlog.client.metadata import PartitionInfo, TopicInfo
    from embedlog.client.producer.batch import Delivery, DeliveryCallback
    from embedlog.client.producer.queues import PartitionQueue, TopicQueues
    from embedlog.client.producer.sizes import Headers
    from embedlog.client.settings import Settings
    from embedlog.runtime import Clock

    MayBeSent = Callable[[ProducerBatch, PartitionInfo], bool]
    """(batch, partition) -> whether the batch may go to the leader of its partition now."""


_RATIO_MARGIN = 1.05
NEVER = 1 << 62
"""The due time of something that is never due."""


class IncompleteBatches(dict[ProducerBatch, None]):
    """Every batch whose callbacks have not run, the oldest first; parts of split batches come last.

    The methods take the accumulator's lock.
    """

    def __init__(self, lock: RLock) -> None:
        super().__init__()
        self._lock = lock

    def oldest(self) -> ProducerBatch | None:
        with self._lock:
            return next(iter(self), None)

    def record_count(self) -> int:
        with self._lock:
            return sum([each.record_count or len(each.records.values) for each in self])

    def topics(self) -> set[str]:
        with self._lock:
            return {batch.topic for batch in self}


class Care:
    """Whether open batches will be sent without a further call of the producer."""

    def __init__(self) -> None:
        self.is_armed = False
        """True if `UnattendedPasses`, an event loop or a commit will send open batches."""
        self.is_relied_on = False
        """True if a thread sent a batch since a caller last waited for one. A new batch then sets
        `needs_attention`, which ends the thread's pause."""


class RecordAccumulator:
    """The queues of one producer. Methods take `lock` themselves unless they say otherwise."""

    delivery: Callable[[], Delivery]
    """A weak reference to the producer's `Delivery`, set once there is a sender. The batches hold
    it: the thread that sends them must not keep a dropped producer alive."""

    def __init__(self, settings: Settings, clock: Clock, *, is_exact: bool) -> None:
        """`is_exact`: count sizes exactly, at 0.1 us a record, to fill batches as Kafka does."""
        # An RLock for the reason given in `embedlog.runtime.pending`.
        self.lock = ranked_rlock(Rank.ACCUMULATOR)
        self.pool = BufferPool(settings["buffer.memory"])
        self.incomplete = IncompleteBatches(self.lock)
        self.next_due_ms = NEVER
        self.lacks_leader: dict[str, None] = {}
        """Topics with a batch whose partition had no leader when `ready` last saw all queues."""
        self.active: dict[PartitionQueue, None] = {}
        """The queues that hold a batch; the queue that was served last comes last."""
        self.has_sendable = False
        """True if a batch was closed since the sender last looked."""
        self.needs_attention = False
        """True if, since the last look, a batch was closed, or begun while `care` is not armed."""
        self.care = Care()
        self._clock = clock
        # If batch.size exceeded buffer.memory, the producer could never begin a batch.
        self._batch_size: int = min(settings["batch.size"], self.pool.total)
        self._limit = self._batch_size - BATCH_OVERHEAD
        self._is_exact = is_exact
        self._compresses = settings["compression.type"] != "none"
        self._is_closed = False

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
        Return None when buffer.memory has no room for a new batch: the caller waits and tries
        again.
        """
        with self.lock:
            batch = queue.open
            if batch is None:
                if is_sticky and queue is not queue.topic.sticky_queue:
                    queue = self._follow_sticky(queue.topic, size)
                    batch = queue.open
            elif batch.is_closed or (  # left behind by a KeyboardInterrupt
                batch.size + size > batch.size_limit
                and not (self._is_exact and batch.has_room(size, timestamp, key, value, headers))
            ):
                self._close_full(queue)
                if is_sticky:
                    queue = self._follow_sticky(queue.topic, size)
                batch = queue.open
            if batch is None:
                index = 0
                records = Columns(
                    [value],
                    [timestamp],
                    None if key is None else [key],
                    None if headers is None else [headers],
                )
                batch = self._begin(queue, records, size)
                if batch is None:
                    return None
            else:
                records = batch.records
                index = len(records.values)
                records.append(value, timestamp, key, headers)
                batch.size += size
            if size > SMALL_VALUE_MAX or headers is not None:
                batch.small_size_limit = 0
            if callback is not None:
                batch.add_callback(index, callback)
            if batch.size >= batch.size_limit and (not self._is_exact or batch.is_full()):
                self._close_full(queue)
        future = DeliveryFuture()
        future.batch = batch
        future.index = index
        return future

    def join(  # noqa: PLR0917  called for every small record: keywords cost 40 ns
        self,
        batch: ProducerBatch,
        size: int,
        timestamp: int,
        key: bytes | None,
        value: bytes,
        callback: DeliveryCallback | None,
    ) -> DeliveryFuture | None:
        """Add a small record to the open `batch`; return None if `append` must do it.

        `size` is the record's estimated size.
        """
        with self.lock:
            records, filled = batch.records, batch.size + size
            keys = records.keys
            # A batch that was closed meanwhile has the limit 0.
            if filled >= batch.small_size_limit or (key is not None and keys is None):
                return None
            batch.size = filled
            future = DeliveryFuture()
            future.batch, future.index = batch, len(records.values)
            try:
                records.values.append(value)
                records.timestamps.append(timestamp)
                if keys is not None:
                    keys.append(key)
                if callback is not None:
                    batch.add_callback(future.index, callback)
            except BaseException:
                batch.trim(future.index)
                raise
            return future

    def add_batch(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """Queue a complete batch, after everything appended before it.

        Return False when buffer.memory has no room for it.
        """
        with self.lock:
            if self._is_closed:
                raise ClosedError("the producer was closed while records were being sent")
            if not self.pool.reserve(batch.size):
                return False
            batch.memory = batch.size
            batch.queue = queue
            queue.close_open()
            queue.batches.append(batch)
            self.incomplete[batch] = None
            self.active[queue] = None
            self.has_sendable = True
            if queue.topic.has_choice:
                queue.topic.produced(queue, batch.size)
        return True

    def close_all(self) -> None:
        with self.lock:
            for queue in self.active:
                queue.close_open()
            self.has_sendable = bool(self.active)

    def want_all(self) -> None:
        """Make all batches sendable, and let records join them until they are sent."""
        with self.lock:
            for queue in self.active:
                if queue.open is not None:
                    queue.open.is_wanted = True
            self.has_sendable = bool(self.active)

    def close(self) -> None:
        """Begin no further batch: from here on records are refused, or join an open batch."""
        with self.lock:
            self._is_closed = True

    def finished(self, batch: ProducerBatch) -> None:
        """Give the batch's memory back: it has an outcome, and its callbacks have run."""
        with self.lock:
            self.incomplete.pop(batch, None)
            self.pool.available += batch.memory

    def give_back(self, size: int) -> None:
        with self.lock:
            self.pool.release(size)

    # For the sender

    def ready(
        self,
        now_ms: int,
        linger_ms: int,
        topics: Mapping[str, TopicInfo],
        may_be_sent: MayBeSent | None,
        is_single: bool,
    ) -> list[ProducerBatch]:
        """Take one due batch of each partition with a leader; with `is_single` only the first.

        The batches are closed. Queues that were served go to the end, so that the others come first
        next time. After a look at all queues, `next_due_ms` is when another batch will be due, and
        `lacks_leader` holds the topics with batches whose partition has no leader.
        """
        found: list[ProducerBatch] = []
        next_due_ms = NEVER
        lacks_leader: dict[str, None] = {}
        with self.lock:
            if self.pool.waiting:
                linger_ms = 0
            for queue in list(self.active):
                batch = queue.batches[0]
                try:
                    topic = topics[batch.topic]
                    leader = topic.partitions[batch.partition]
                except LookupError:
                    lacks_leader[batch.topic] = None
                    continue
                if leader.leader < 0:
                    lacks_leader[batch.topic] = None
                    continue
                if batch.retry_at_ms or not (batch.is_closed or batch.is_wanted):
                    due_ms = _due_ms(batch, linger_ms, leader)
                    if due_ms > now_ms:
                        next_due_ms = min(next_due_ms, due_ms)
                        continue
                if queue.is_muted or not (may_be_sent is None or may_be_sent(batch, leader)):
                    continue
                batch.leader = leader
                batch.topic_id = topic.topic_id
                queue.batches.popleft()
                if not batch.is_closed:
                    batch.close()
                    queue.open = None
                    if queue.topic.has_choice:
                        queue.topic.produced(queue, batch.size)
                del self.active[queue]
                if queue.batches:
                    self.active[queue] = None  # moves it to the end
                if is_single:
                    return [batch]
                found.append(batch)
        self.next_due_ms = next_due_ms
        self.lacks_leader = lacks_leader
        return found

    def closed_first(self, count: int) -> list[ProducerBatch]:
        """Return the closed batches among the first `count` of the least recently served queue."""
        with self.lock:
            queue = next(iter(self.active), None)
            first = [] if queue is None else list(islice(queue.batches, count))
        return [batch for batch in first if batch.is_closed]

    def put_back(self, batch: ProducerBatch) -> None:
        """Queue a batch again for a retry, before the batches that were not sent yet."""
        with self.lock:
            queue: PartitionQueue = batch.queue
            queue.insert(batch)
            self.active[queue] = None

    def replace_by_parts(
        self, batch: ProducerBatch, parts: list[ProducerBatch], ratio: float
    ) -> None:
        """Queue the parts of `batch` in its place; `ratio` is its compression ratio."""
        with self.lock:
            parts[0].memory, batch.memory = batch.memory, 0
            del self.incomplete[batch]
            self.incomplete.update(dict.fromkeys(parts))
            queue: PartitionQueue = batch.queue
            for part in reversed(parts):
                queue.insert(part)
            self.active[queue] = None
            if self._compresses:
                queue.topic.compression_ratio = max(1.0, ratio)

    def take_expired(self, created_max_ms: int) -> tuple[list[ProducerBatch], int]:
        """Take batches of at most `created_max_ms`; also return the oldest `created_ms` left."""
        expired: list[ProducerBatch] = []
        oldest_ms = NEVER
        with self.lock:
            for queue in list(self.active):
                batches = queue.batches
                while batches and batches[0].created_ms <= created_max_ms:
                    batch = batches.popleft()
                    if not batch.is_closed:
                        batch.close()
                        queue.open = None
                    expired.append(batch)
                if batches:
                    oldest_ms = min(oldest_ms, batches[0].created_ms)
                else:
                    del self.active[queue]
        return expired, oldest_ms

    # Requires: the lock

    def _follow_sticky(self, topic: TopicQueues, size: int) -> PartitionQueue:
        """Return the topic's sticky queue, whose open batch, if any, has room for `size` bytes."""
        while True:
            queue = topic.sticky_queue or topic.choose_sticky()
            batch = queue.open
            if batch is None or batch.size + size <= batch.size_limit:
                return queue
            self._close_full(queue)

    def _close_full(self, queue: PartitionQueue) -> None:
        assert queue.open is not None, queue
        size = queue.open.size
        queue.close_open()
        self.has_sendable = self.needs_attention = True
        if queue.topic.has_choice:
            queue.topic.produced(queue, size)

    def _begin(self, queue: PartitionQueue, records: Columns, size: int) -> ProducerBatch | None:
        if self._is_closed:
            raise ClosedError("the producer was closed while a record was being sent")
        memory = self._batch_size
        limit = self._limit
        if self._compresses:
            # Memory is counted for plain records, because they are held until they are compressed.
            limit = int(limit / (queue.topic.compression_ratio * _RATIO_MARGIN))
            memory = min(max(limit, memory), self.pool.total)
            limit = min(limit, memory)
        if size > memory:  # noqa: PLR1730  `max` costs 80 ns
            memory = size
        pool = self.pool
        if (pool.waiting or pool.available < memory) and not pool.serves(memory):
            self.has_sendable = True
            return None
        pool.available -= memory
        batch = ProducerBatch(
            queue.topic.name,
            queue.partition,
            self.delivery(),
            records,
            created_ms=self._clock.monotonic_ms(),
            size=size,
            size_limit=limit,
        )
        batch.memory = memory
        batch.queue = queue
        queue.batches.append(batch)
        queue.open = batch
        self.incomplete[batch] = None
        self.active[queue] = None
        care = self.care
        if care.is_relied_on or not care.is_armed:
            self.needs_attention = True
        return batch


def _due_ms(batch: ProducerBatch, linger_ms: int, leader: PartitionInfo) -> int:
    """Return the time from which the batch may be sent, once it is first in its queue; 0: now."""
    if batch.retry_at_ms:
        # A new leader has not failed yet: try it at once.
        is_another = batch.leader is not None and leader.leader_epoch > batch.leader.leader_epoch
        return 0 if is_another else batch.retry_at_ms
    if batch.is_closed or batch.is_wanted:
        return 0
    return batch.created_ms + linger_ms


class BufferPool:
    """The bytes of buffer.memory. Requires: the accumulator's lock. Never waits."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.available = total
        self.waiting: deque[int] = deque()
        """The threads that wait for memory, the longest waiting first."""

    def serves(self, size: int) -> bool:
        """Return whether `size` bytes are free and no other thread has waited longer."""
        assert size <= self.total, (size, self.total)
        is_next = not self.waiting or self.waiting[0] == get_ident()
        return is_next and size <= self.available

    def reserve(self, size: int) -> bool:
        """Take `size` bytes if the pool `serves` them; else take nothing and return False."""
        is_served = self.serves(size)
        if is_served:
            self.available -= size
        return is_served

    def release(self, size: int) -> None:
        self.available += size
        assert self.available <= self.total, (self.available, self.total)

    def queue_up(self) -> None:
        self.waiting.append(get_ident())

    def leave(self) -> None:
        self.waiting.remove(get_ident())


_AMPLE_COUNT = 16
"""Batches for which there must be room before a thread is woken: with one batch at a time the
sender's thread and the waiting thread would take turns for each batch."""
_PATIENCE_MS = 5
"""After this time a waiting thread takes any free memory."""


class MemoryWait:
    """The wait of a producer's threads for free memory."""

    def __init__(
        self, accumulator: RecordAccumulator, driver: Driver, settings: Settings, clock: Clock
    ) -> None:
        self._accumulator = accumulator
        self._driver = driver
        self._ample: int = min(_AMPLE_COUNT * settings["batch.size"], accumulator.pool.total // 2)
        self._max_block_ms: int = settings["max.block.ms"]
        self._clock = clock
        self.waited_ns = 0
        self.exhausted_count = 0

    def until(self, has_room: Callable[[], bool], began_ms: int | None = None) -> None:
        """Wait in line until `has_room()`, while the sender sends all batches.

        `began_ms` is when the call began, if it has waited for something else already.

        Raises:
            BufferExhausted: max.block.ms is over.
        """
        clock = self._clock
        waited_ms = 0 if began_ms is None else clock.monotonic_ms() - began_ms
        began_us = clock.monotonic_us()
        accumulator = self._accumulator
        with accumulator.lock:
            accumulator.pool.queue_up()
            accumulator.has_sendable = True  # send all batches meanwhile
        try:
            if self._driver.wait(
                has_room,
                max(self._max_block_ms - waited_ms, 0),
                is_news=self._has_ample_room,
                patience_ms=_PATIENCE_MS,
            ):
                return
        finally:
            with accumulator.lock:
                accumulator.pool.leave()
            self._driver.arrived()  # the next thread in the line looks for free memory
            self.waited_ns += (clock.monotonic_us() - began_us) * 1000
        self.exhausted_count += 1
        pool = accumulator.pool
        raise BufferExhausted(
            f"buffer.memory={pool.total} has {pool.available} bytes free after max.block.ms="
            f"{self._max_block_ms}: records come faster than the brokers take them"
        )

    def _has_ample_room(self) -> bool:
        return self._accumulator.pool.available >= self._ample
