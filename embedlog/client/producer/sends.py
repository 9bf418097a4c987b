"""`send` and `send_batch`, from what was given to records in their queues; and waiting for room."""

from __future__ import annotations

from embedlog.client.arguments import LONG_MAX, partition_number, topic_name
from embedlog.client.arguments import callback as checked_callback
from embedlog.client.arguments import timestamp_ms as checked_timestamp
from embedlog.client.errors import BufferExhausted
from embedlog.client.producer.batches import ProducerBatch
from embedlog.client.producer.columns import Columns, make_batch
from embedlog.client.producer.delivery import DeliveryFuture
from embedlog.client.producer.records import (
    Acknowledgement,
    ProducerRecord,
    as_bytes,
    checked_headers,
    intercepted,
    serialized,
    tells_user,
)
from embedlog.client.producer.sizes import record_size
from embedlog.errors import KafkaError, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.client.driver import Driver
    from embedlog.client.interceptors import InterceptorChain
    from embedlog.client.producer.accumulator import RecordAccumulator
    from embedlog.client.producer.batches import Headers, PartitionQueue
    from embedlog.client.producer.delivery import Delivery, DeliveryCallback
    from embedlog.client.producer.destinations import Destinations
    from embedlog.client.producer.outcomes import Failures
    from embedlog.client.producer.records import Given
    from embedlog.client.producer.sizes import RecordLimits
    from embedlog.client.serializers import Converter
    from embedlog.client.settings import Settings
    from embedlog.runtime import Clock


class RecordSends:
    """What one producer does with one record at a time. As thread-safe as the producer is."""

    def __init__(self, parts: SendParts) -> None:
        self._parts = parts
        self._accumulator = parts.accumulator
        self.refused_count = 0
        """Records that failed before they were in a batch."""

    def queue(  # noqa: PLR0917  the arguments of send, passed on
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
        on_delivery: DeliveryCallback | None,
    ) -> DeliveryFuture:
        """Queue a record. What the cluster or a limit refuses is a future that has failed.

        Raises:
            ClosedError, SerializationError, TypeError, ValueError: see `Producer.send`.
        """
        checked_callback(on_delivery, "send", "on_delivery", "a function (metadata, error)")
        chain = self._parts.interceptors
        if chain is None:
            return self._queue(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        given = ProducerRecord((topic, value, key, partition, timestamp_ms, headers))
        record = chain.transform("on_send", given)
        try:
            return self._queue(*record, Acknowledgement(chain, on_delivery))
        except Exception as error:
            failed = ProducerBatch.refused(
                record.topic, record.partition, error, self._parts.delivery
            )
            chain.tell("on_acknowledgement", failed.metadata(0), error)
            raise

    def append(
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
            return self._refused(queue.topic.name, named, error, record[5])
        return future

    def _queue(  # noqa: PLR0917  the arguments of send, passed on
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
        on_delivery: DeliveryCallback | None,
    ) -> DeliveryFuture:
        topic_name(topic, "send")
        if type(partition) is not int and partition is not None:
            partition = partition_number(partition, "send")
        may_wait = topic not in self._parts.destinations.known or partition is not None
        began_ms = self._parts.clock.monotonic_ms() if may_wait else None
        given = (key, value)
        if self._parts.serialize_value is not None:
            value = serialized(self._parts.serialize_value, value, "value", topic)
        if self._parts.serialize_key is not None:
            key = serialized(self._parts.serialize_key, key, "key", topic)
        if type(value) is not bytes and value is not None:
            value = as_bytes(value, "value")
        if type(key) is not bytes and key is not None:
            key = as_bytes(key, "key")
        if headers is not None:
            headers = checked_headers(headers) or None
        if timestamp_ms is None:
            timestamp_ms = self._parts.clock.wall_ms()
        elif type(timestamp_ms) is not int or timestamp_ms > LONG_MAX:
            timestamp_ms = checked_timestamp(timestamp_ms, "send")
        elif timestamp_ms < 0:
            raise ValueError(f"timestamp_ms={timestamp_ms}: must be between 0 and 2^63 - 1")
        try:
            queue = self._parts.destinations.queue(topic, partition, key, value, given)
            size = record_size(key, value, headers)
            if size > self._parts.limits.surely_fits:
                self._parts.limits.check(key, value, headers)
            is_sticky = self._parts.destinations.is_sticky(partition, key)
        except (KafkaError, TimedOut) as error:
            return self._refused(topic, partition, error, on_delivery)
        record = (size, timestamp_ms, key, value, headers, on_delivery, is_sticky)
        return self.append(queue, record, partition, began_ms)

    def _refused(
        self,
        topic: str,
        partition: int | None,
        error: KafkaError | TimedOut,
        callback: DeliveryCallback | None,
    ) -> DeliveryFuture:
        batch = ProducerBatch.refused(topic, partition, error, self._parts.delivery)
        self.refused_count += 1
        if callback is not None:
            callback(batch.metadata(0), error)
        if callback is None or not tells_user(callback):
            self._parts.failures.add(batch)
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

        self._parts.memory.until(is_appended, began_ms)
        return appended[0]


class SendParts:
    """The parts of one producer that records pass on their way to a queue."""

    __slots__ = (
        "accumulator",
        "clock",
        "delivery",
        "destinations",
        "failures",
        "interceptors",
        "limits",
        "memory",
        "serialize_key",
        "serialize_value",
    )

    def __init__(
        self,
        delivery: Delivery,
        *,
        destinations: Destinations,
        accumulator: RecordAccumulator,
        memory: MemoryWait,
        limits: RecordLimits,
        serializers: tuple[Converter | None, Converter | None],
        clock: Clock,
        interceptors: InterceptorChain | None,
        failures: Failures,
    ) -> None:
        """`serializers` are those of keys and of values."""
        self.delivery = delivery
        self.destinations = destinations
        self.accumulator = accumulator
        self.memory = memory
        self.limits = limits
        self.serialize_key, self.serialize_value = serializers
        self.clock = clock
        self.interceptors = interceptors
        self.failures = failures


_AMPLE_COUNT = 16
"""Batches for which there is room when it is worth to wake a thread: with one at a time the
sender's thread and the waiting one would take turns for each."""
_PATIENCE_MS = 5
"""After so long it takes what there is."""


class MemoryWait:
    """Where a thread of one producer waits that found no room."""

    __slots__ = (
        "_accumulator",
        "_ample",
        "_clock",
        "_driver",
        "_max_block_ms",
        "exhausted_count",
        "waited_ns",
    )

    def __init__(
        self, accumulator: RecordAccumulator, driver: Driver, settings: Settings, clock: Clock
    ) -> None:
        self._accumulator = accumulator
        self._driver = driver
        self._ample: int = min(_AMPLE_COUNT * settings["batch.size"], accumulator.pool.total // 2)
        self._max_block_ms: int = settings["max.block.ms"]
        self._clock = clock
        self.waited_ns = 0
        """All threads together."""
        self.exhausted_count = 0
        """Waits that ended without room."""

    def until(self, has_room: Callable[[], bool], began_ms: int | None = None) -> None:
        """Wait, in line, until `has_room()`; everything that waits to be sent is sent meanwhile.

        `began_ms` is when the call began, if it has waited for something else already.

        Raises:
            BufferExhausted: max.block.ms is over.
        """
        clock = self._clock
        waited_ms = 0 if began_ms is None else clock.monotonic_ms() - began_ms
        began_us = clock.monotonic_us()
        self._accumulator.wait_for_memory()
        try:
            if self._driver.wait(
                has_room,
                max(self._max_block_ms - waited_ms, 0),
                is_news=self._has_ample_room,
                patience_ms=_PATIENCE_MS,
            ):
                return
        finally:
            self._accumulator.stop_waiting()
            self._driver.arrived()  # whoever is next in the line looks what is left
            self.waited_ns += (clock.monotonic_us() - began_us) * 1000
        self.exhausted_count += 1
        pool = self._accumulator.pool
        raise BufferExhausted(
            f"buffer.memory={pool.total} has {pool.available} bytes free after max.block.ms="
            f"{self._max_block_ms}: records come faster than the brokers take them"
        )

    def _has_ample_room(self) -> bool:
        return self._accumulator.pool.available >= self._ample


class ColumnSends:
    """What one producer does with many records at once. As thread-safe as the producer is."""

    def __init__(self, parts: SendParts, *, is_built: bool) -> None:
        """`is_built`: encode in the call, as the broker is in this process."""
        self._parts = parts
        self._is_built = is_built
        self.refused_count = 0
        """Records that failed before they were in a batch."""

    def queue(self, topic: str, given: Given, partition: int | None) -> list[ProducerBatch]:
        """Queue records, as the batches that they become.

        What the cluster or a limit refuses is a failed batch, the last of its topic.

        Raises:
            ClosedError, SerializationError, TypeError, ValueError: see `Producer.send_batch`.
        """
        batches: list[ProducerBatch] = []
        chain = self._parts.interceptors
        if chain is None:
            self._queue(batches, topic, given, partition)
        else:
            for name, number, columns in intercepted(chain, topic, given, partition):
                try:
                    self._queue(batches, name, columns, number)
                except Exception as error:
                    self._tell_refused(name, number, error, len(columns[0]))
                    raise
        return batches

    def _queue(
        self, batches: list[ProducerBatch], topic: str, given: Given, partition: int | None
    ) -> None:
        columns = Columns(*self._serialized(topic, given))
        before = (given[1], given[0])
        if len(columns.values) == 0:
            return
        queued_count = 0
        divide = self._parts.destinations.divide
        try:
            for queue, records in divide(topic, columns, partition, before):
                for piece in records.pieces(self._parts.limits.size_max):
                    batches.append(self._add(queue, piece))
                    queued_count += len(piece.values)
        except (KafkaError, TimedOut) as error:
            refused = ProducerBatch.refused(topic, partition, error, self._parts.delivery)
            batches.append(refused)
            count = refused.record_count = len(columns.values) - queued_count
            self._parts.failures.add(refused)
            self.refused_count += count
            self._tell_refused(topic, partition, error, count)

    def _serialized(self, topic: str, given: Given) -> Given:
        values, keys, timestamps, headers = given
        if self._parts.serialize_value is not None:
            make = self._parts.serialize_value
            values = [serialized(make, value, "value", topic) for value in values]
        if self._parts.serialize_key is not None and keys is not None:
            make = self._parts.serialize_key
            keys = [serialized(make, key, "key", topic) for key in keys]
        return values, keys, timestamps, headers

    def _add(self, queue: PartitionQueue, columns: Columns) -> ProducerBatch:
        if len(columns.values) == 1:
            self._parts.limits.check(
                None if columns.keys is None else columns.keys[0],
                columns.values[0],
                None if columns.headers is None else columns.headers[0],
            )
        batch = make_batch(
            columns,
            queue.topic.name,
            queue.partition,
            self._parts.delivery,
            self._parts.clock.monotonic_ms(),
            is_built=self._is_built,
        )
        if self._parts.interceptors is not None:
            batch.is_bulk = False  # each record's metadata is asked for
            batch.call_for_each(Acknowledgement(self._parts.interceptors, None))
        accumulator = self._parts.accumulator
        if not accumulator.add_batch(queue, batch):
            self._parts.memory.until(lambda: accumulator.add_batch(queue, batch))
        return batch

    def _tell_refused(
        self, topic: str, partition: int | None, error: Exception, count: int
    ) -> None:
        if self._parts.interceptors is not None:
            failed = ProducerBatch.refused(topic, partition, error, self._parts.delivery)
            for _ in range(count):
                self._parts.interceptors.tell("on_acknowledgement", failed.metadata(0), error)
