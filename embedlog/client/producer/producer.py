"""`Producer`: sends records to topics, in process or over the network.

    with cluster.producer() as producer:
        where = producer.send("events", b"value", key=b"key").result()

In process everything happens on the caller's thread. Records wait in an open batch until it is
full, somebody asks (`flush`, `result`, `close`), or a millisecond (linger.ms, if more) is over and
anything of the cluster waits, be it a consumer's `poll` or a listener. Over the network linger.ms
is 5 and a thread sends, as in Kafka; with linger.ms=0 the caller's thread does. What else differs
in process says `producer_settings.complete`.
"""

from __future__ import annotations

from embedlog.client.connect import connect
from embedlog.client.driver import Driver
from embedlog.client.metadata import Metadata
from embedlog.client.producer.column_sends import ColumnSends
from embedlog.client.producer.delivery import BatchFuture, DeliveryFuture
from embedlog.client.producer.destinations import Destinations
from embedlog.client.producer.interruptible_passes import InterruptiblePasses
from embedlog.client.producer.linger_duty import LingerDuty
from embedlog.client.producer.memory_wait import MemoryWait
from embedlog.client.producer.producer_batch import ProducerBatch
from embedlog.client.producer.producer_metrics import described
from embedlog.client.producer.producer_records import (
    Acknowledgement,
    ProducerRecord,
    as_bytes,
    checked_headers,
    serialized,
)
from embedlog.client.producer.producer_settings import (
    PRODUCER,
    complete,
    interceptors,
    transactions,
)
from embedlog.client.producer.record_accumulator import RecordAccumulator
from embedlog.client.producer.record_sizes import (
    SMALL_OVERHEAD,
    SMALL_VALUE_MAX,
    RecordLimits,
    record_size,
)
from embedlog.client.producer.sender import Sender
from embedlog.client.settings import parse
from embedlog.common import deque
from embedlog.errors import ClosedError, EmbedlogError, KafkaError, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from embedlog.client.connect import Target
    from embedlog.client.metadata import PartitionInfo
    from embedlog.client.producer.delivery import DeliveryCallback
    from embedlog.client.producer.producer_batch import Headers
    from embedlog.client.producer.topic_queues import PartitionQueue
    from embedlog.client.settings import Settings

_THREAD_STOP_MS = 10_000
_TIMESTAMP_MAX = 2**63 - 1
_LEAST_USUAL_SIZE = 16_384


class Producer:
    """Sends records. Thread-safe: one producer may serve a whole program.

    `target` is a cluster of this process or "host:port"; settings are Kafka's keys, as keyword
    arguments (`linger_ms=5`) or in a dict (`{"linger.ms": 5}`).

    >>> with embedlog.open() as cluster, embedlog.Producer(cluster) as producer:
    ...     producer.send("events", b"value", key=b"key").result().offset
    0
    """

    _always_threaded = False
    """Over the network: does a thread send also with linger.ms=0, as in Kafka?"""

    def __init__(
        self, target: Target = None, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        given = parse(PRODUCER, config, settings)
        self._transport = connect(target, given)
        try:
            self._build(complete(given, in_process=self._transport.in_process))
        except BaseException:
            self._transport.close()
            raise

    def _build(self, settings: Settings) -> None:
        self._settings = settings
        transport = self._transport
        runtime = transport.runtime
        self._clock = runtime.clock
        self._wall_ms = runtime.clock.wall_ms
        self._read_clock = runtime.clock.wall_ns_reader()
        self._serialize_key = settings["key.serializer"]
        self._serialize_value = settings["value.serializer"]
        self._interceptors = interceptors(settings)
        self._limits = RecordLimits(settings)
        self._metadata = Metadata(transport, settings, create_topics=True)
        self._accumulator = RecordAccumulator(
            settings, self, runtime, is_exact=not transport.in_process
        )
        numbers = transactions(transport, settings)
        self._sender = Sender(
            transport, self._metadata, self._accumulator, settings, transactions=numbers
        )
        threaded = not transport.in_process and (settings["linger.ms"] > 0 or self._always_threaded)
        self._is_eager = not transport.in_process and not threaded
        """Does every `send` make a pass, or only one that filled a batch?"""
        passes = InterruptiblePasses(self._sender, self._accumulator)
        step = self._sender.run_once if threaded else passes.run_once
        self._driver = Driver(transport, step, passes.cut_short, threaded=threaded)
        self._sender.arrived = self._driver.arrived
        self._destinations = Destinations(
            self._metadata, self._accumulator, self._driver, settings, transport
        )
        self._topics = self._destinations.known
        self._quick_topics = {} if self._is_choosy else self._topics
        """Where a small record needs no closer look."""
        self._lock = self._accumulator.lock
        self._accumulator.needs_attention = self._is_eager
        self._memory = MemoryWait(self._accumulator, self._driver, settings, self._clock)
        self._columns = ColumnSends(
            delivery=self,
            destinations=self._destinations,
            accumulator=self._accumulator,
            memory=self._memory,
            limits=self._limits,
            settings=settings,
            clock=self._clock,
            interceptors=self._interceptors,
            is_built=self._sender.has_short_way,
        )
        self._refused_count = 0
        """Records that failed before they were in a batch."""
        self._flush_ns = 0
        self._duty: LingerDuty | None = None
        if transport.in_process:
            self._duty = LingerDuty(self._driver, self._accumulator, runtime.scheduler)
        self._is_closed = False

    @property
    def _is_choosy(self) -> bool:
        """Does even a small record need a closer look?"""
        return (
            self._is_eager
            or self._serialize_value is not None
            or self._serialize_key is not None
            or self._settings["partitioner.class"] is not None
            or self._interceptors is not None
            or self._limits.size_max < _LEAST_USUAL_SIZE
        )

    # Sending

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
        on_delivery: DeliveryCallback | None = None,
    ) -> DeliveryFuture:
        """Hand over one record; returns before it is written.

        Without a serializer `value` and `key` are bytes or None; a key of None is given to none.
        `headers` are (name, bytes or None) pairs. `on_delivery(metadata, error)` is called once, in
        a thread that drives this producer. What the cluster refuses, or a limit (also of time:
        max.block.ms for metadata and for room in buffer.memory), fails the future and the callback.

        Raises:
            ClosedError: the producer is closed; SerializationError: a serializer raised;
                TypeError: value or key is not bytes; ValueError: the timestamp is negative.
        """
        queues = self._quick_topics.get(topic)
        # Any other record takes the long way round; this is the one that comes by millions.
        if (queues is None or type(value) is not bytes) or (
            partition is not None or timestamp_ms is not None or headers is not None
        ):
            return self._send_any(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        lock, read_clock = self._lock, self._read_clock
        stamp = read_clock() // 1_000_000  # ms
        size = len(value)
        queue = queues.sticky_queue
        if key is not None:
            queue = queues.by_key.get(key) if type(key) is bytes else None
            size += 0 if queue is None else len(key)
        if queue is not None and size <= SMALL_VALUE_MAX:
            size += SMALL_OVERHEAD
            with lock:
                batch = queue.open
                if batch is not None:
                    keys = batch.keys
                    filled = batch.size + size
                    if filled < batch.small_size_limit and (key is None or keys is not None):
                        batch.size = filled
                        values = batch.values
                        future = DeliveryFuture()
                        future.batch = batch
                        future.index = len(values)
                        values.append(value)
                        batch.timestamps.append(stamp)
                        if keys is not None:
                            keys.append(key)
                        if on_delivery is not None:
                            batch.add_callback(on_delivery)
                        return future
            # The record begins a batch, or may be the last of one, or is the first with its key.
            record = (size, stamp, key, value, None, on_delivery, key is None)
            return self._append(queue, record, None, None)
        return self._send_one(topic, value, key, None, stamp, None, on_delivery)

    def _send_any(  # noqa: PLR0917  the arguments of send, passed on
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
        on_delivery: DeliveryCallback | None,
    ) -> DeliveryFuture:
        chain = self._interceptors
        if chain is None:
            return self._send_one(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        self._check_open()
        given = ProducerRecord((topic, value, key, partition, timestamp_ms, headers))
        record = chain.transform("on_send", given)
        try:
            return self._send_one(*record, Acknowledgement(chain, on_delivery))
        except Exception as error:
            failed = ProducerBatch.refused(record.topic, record.partition, error, self)
            chain.tell("on_acknowledgement", failed.metadata(0), error)
            raise

    def _send_one(  # noqa: PLR0917  the arguments of send, passed on
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
        on_delivery: DeliveryCallback | None,
    ) -> DeliveryFuture:
        may_wait = topic not in self._topics or partition is not None
        began_ms = self._clock.monotonic_ms() if may_wait else None
        if self._serialize_value is not None:
            value = serialized(self._serialize_value, value, "value", topic)
        if self._serialize_key is not None and key is not None:
            key = serialized(self._serialize_key, key, "key", topic)
        if type(value) is not bytes and value is not None:
            value = as_bytes(value, "value")
        if type(key) is not bytes and key is not None:
            key = as_bytes(key, "key")
        if headers:
            headers = checked_headers(headers)
        if timestamp_ms is None:
            timestamp_ms = self._wall_ms()
        elif not 0 <= timestamp_ms <= _TIMESTAMP_MAX:
            raise ValueError(f"timestamp_ms={timestamp_ms}: must be between 0 and 2^63 - 1")
        try:
            queue = self._destinations.queue(topic, partition, key, value)
            size = record_size(key, value, headers)
            if size > self._limits.surely_fits:
                self._limits.check(key, value, headers)
            is_sticky = self._destinations.is_sticky(partition, key)
        except (KafkaError, TimedOut) as error:
            return self._failed(topic, partition, error, on_delivery)
        record = (size, timestamp_ms, key, value, headers or None, on_delivery, is_sticky)
        return self._append(queue, record, partition, began_ms)

    def _append(
        self,
        queue: PartitionQueue,
        record: tuple[Any, ...],
        named: int | None,
        began_ms: int | None,
    ) -> DeliveryFuture:
        """Append `record`, as the accumulator takes it; `named` is a partition that was named."""
        try:
            future = self._accumulator.append(queue, *record)
            if future is None:
                future = self._append_when_free(queue, *record, began_ms=began_ms)
        except (KafkaError, TimedOut) as error:
            return self._failed(queue.topic.name, named, error, record[5])
        if self._accumulator.needs_attention:
            self._attend()
        return future

    def _attend(self) -> None:
        """A batch was begun or closed: send it, or let the scheduler know that it waits."""
        accumulator = self._accumulator
        accumulator.needs_attention = self._is_eager
        if self._duty is None or accumulator.has_sendable:
            self._driver.run()
        elif not self._duty.is_armed:
            self._duty.arm()

    def send_batch(
        self,
        topic: str,
        values: Sequence[Any],
        *,
        keys: Sequence[Any] | None = None,
        timestamps: Sequence[int] | int | None = None,
        headers: Sequence[Headers] | None = None,
        partition: int | None = None,
    ) -> BatchFuture:
        """Send many records at once: the fast way, 60-100 ns for a record of 100 bytes.

        All go to `partition`; without it, to the partition of each key, or without keys to one
        partition. They become one record batch, or several when max.request.size or buffer.memory
        asks for it. Records sent before come before them.

        Raises:
            ClosedError, SerializationError, TypeError: as `send`; ValueError: columns of unlike
                length.
        """
        if timestamps is None:
            timestamps = self._wall_ms()
        self._check_open()
        given = (values, keys, timestamps, headers)
        batches = self._columns.queue(topic, given, partition)
        if batches:
            self._driver.run()
        return BatchFuture(batches)

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait, at most `timeout` seconds, until all of it is settled.

        What failed tells its future and its callback, not this call.

        Raises:
            TimedOut: time is over; the rest is still on its way.
        """
        self._check_open()
        timeout_ms = _milliseconds(timeout)
        began_us = self._clock.monotonic_us()
        try:
            is_done = self._flush(timeout_ms)
        finally:
            self._flush_ns += (self._clock.monotonic_us() - began_us) * 1000
        if not is_done:
            count = sum([batch.record_count for batch in list(self._accumulator.incomplete)])
            raise TimedOut(f"{count} records had no outcome after {timeout} s; they are still sent")

    def close(self, timeout: float | None = None) -> None:
        """Send everything, wait for it at most `timeout` seconds, give back what is held.

        What is not settled by then is given up: its futures fail with ClosedError. Again is
        allowed. From a delivery callback it does not wait.
        """
        timeout_ms = _milliseconds(timeout)
        if self._is_closed:
            return
        self._is_closed = True
        self._destinations.close()
        self._accumulator.close()
        try:
            if not self._driver.is_running_here:
                self._flush(timeout_ms)
        finally:
            gone = ClosedError("the producer was closed before the record had an outcome")
            self._driver.exclusively(lambda: self._sender.abort_all(gone))
            self._driver.close(_THREAD_STOP_MS)
            if self._duty is not None:
                self._duty.close()
            self._transport.close()
            if self._interceptors is not None:
                self._interceptors.close()

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of `topic`, as the cluster last described them.

        Raises:
            TimedOut: the cluster did not tell within max.block.ms; KafkaError: it refused.
        """
        return list(self._destinations.topic(topic).info.partitions)

    def metrics(self) -> dict[str, float]:
        """What was counted and measured so far, under Kafka's names."""
        age_ms = self._metadata.age_ms(self._clock.monotonic_ms())
        return {
            **described(self._accumulator, self._sender),
            "buffer-exhausted-total": self._memory.exhausted_count,
            "bufferpool-wait-time-ns-total": self._memory.waited_ns,
            "flush-time-ns-total": self._flush_ns,
            "metadata-age": age_ms / 1000,
            "metadata-wait-time-ns-total": self._destinations.waited_ns,
            "record-error-total": self._sender.outcomes.failed_count
            + self._columns.refused_count
            + self._refused_count,
        }

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # For the futures

    def run(self) -> None:
        """Take what has arrived; never waits."""
        self._driver.run()

    def wait_for(self, batch: ProducerBatch, timeout: float | None) -> None:
        """Send `batch` now if it still waits, and return when it is done; else raise TimedOut."""
        batch.is_wanted = True
        if self._duty is not None:
            self._driver.run()
            if batch.is_done:
                return

        def is_done() -> bool:
            return batch.is_done

        if not self._driver.wait(is_done, _milliseconds(timeout), is_news=is_done):
            raise TimedOut(
                f"{batch} has no outcome after {timeout} s; it is given up after "
                f"delivery.timeout.ms={self._settings['delivery.timeout.ms']}"
            )

    # Inside

    def _flush(self, timeout_ms: int | None) -> bool:
        accumulator = self._accumulator
        accumulator.close_all()
        with accumulator.lock:
            waited = deque(accumulator.incomplete)
        newest = [waited[-1] if waited else None]

        def is_settled() -> bool:
            # Those that are done, in about this order, are forgotten.
            while waited and waited[0].is_done:
                waited.popleft()
            while waited and waited[-1].is_done:
                waited.pop()
            newest[0] = waited[-1] if waited else None
            return not waited

        def is_news() -> bool:
            batch = newest[0]
            return batch is None or batch.is_done

        return self._driver.wait(is_settled, timeout_ms, is_news=is_news)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the producer is closed")

    def _failed(
        self,
        topic: str,
        partition: int | None,
        error: EmbedlogError,
        callback: DeliveryCallback | None,
    ) -> DeliveryFuture:
        batch = ProducerBatch.refused(topic, partition, error, self)
        self._refused_count += 1
        if callback is not None:
            callback(batch.metadata(0), error)
        future = DeliveryFuture()
        future.batch = batch
        future.index = 0
        return future

    def _append_when_free(
        self, queue: PartitionQueue, *record: Any, began_ms: int | None = None
    ) -> DeliveryFuture:
        """Append once buffer.memory has room again."""
        appended: list[DeliveryFuture] = []

        def is_appended() -> bool:
            future = self._accumulator.append(queue, *record)
            if future is not None:
                appended.append(future)
            return future is not None

        self._memory.until(is_appended, began_ms)
        return appended[0]


def _milliseconds(seconds: float | None) -> int | None:
    if seconds is None:
        return None
    if seconds < 0:
        raise ValueError(f"timeout={seconds}: must not be negative")
    return int(seconds * 1000)
