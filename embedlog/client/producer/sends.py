"""`send` and `send_batch`: from the user's arguments to records in their queues."""

from __future__ import annotations

from embedlog.client.arguments import LONG_MAX, partition_number, topic_name
from embedlog.client.arguments import callback as checked_callback
from embedlog.client.arguments import timestamp_ms as checked_timestamp
from embedlog.client.producer.batch import ProducerBatch
from embedlog.client.producer.columns import Columns
from embedlog.client.producer.futures import BatchFuture, DeliveryFuture
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
from embedlog.runtime.outer_call import as_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from embedlog.client.producer.batch import DeliveryCallback
    from embedlog.client.producer.parts import ProducerParts
    from embedlog.client.producer.queues import PartitionQueue
    from embedlog.client.producer.records import Given
    from embedlog.client.producer.sizes import Headers


class RecordSends:
    """Puts single records of one producer into their queues. As thread-safe as the producer."""

    def __init__(self, parts: ProducerParts) -> None:
        self._parts = parts
        self._accumulator = parts.accumulator

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
        """Queue a record; return its future, which has failed if the cluster or a limit refuses it.

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
                record.topic, record.partition, error, self._parts.passes
            )
            chain.tell("on_acknowledgement", failed.outcome.metadata(0), error)
            raise

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
            record = (size, timestamp_ms, key, value, headers, on_delivery, is_sticky)
            future = self._accumulator.append(queue, *record)
            if future is None:
                future = self._append_when_free(queue, *record, began_ms=began_ms)
        except (KafkaError, TimedOut) as error:
            return self._refused(topic, partition, error, on_delivery)
        return future

    def _refused(
        self,
        topic: str,
        partition: int | None,
        error: KafkaError | TimedOut,
        callback: DeliveryCallback | None,
    ) -> DeliveryFuture:
        batch = ProducerBatch.refused(topic, partition, error, self._parts.passes)
        self._parts.sender.outcomes.metrics.failed_count += 1
        if callback is not None:
            as_user(callback, batch.outcome.metadata(0), error)
        if callback is None or not tells_user(callback):
            self._parts.sender.outcomes.failures.add(batch)
        future = DeliveryFuture()
        future.batch = batch
        future.index = 0
        return future

    def _append_when_free(
        self, queue: PartitionQueue, *record: Any, began_ms: int | None = None
    ) -> DeliveryFuture:
        appended: list[DeliveryFuture] = []

        def is_appended() -> bool:
            future = self._accumulator.append(queue, *record)
            if future is not None:
                appended.append(future)
            return future is not None

        self._parts.memory.until(is_appended, began_ms)
        return appended[0]


class ColumnSends:
    """Puts many records of one producer into queues at once. As thread-safe as the producer."""

    def __init__(self, parts: ProducerParts) -> None:
        self._parts = parts
        # True if `send` encodes its batches at once, because the broker is in this process.
        self._is_built = parts.sender.encodes_at_once

    def send(self, topic: str, given: Given, partition: int | None) -> BatchFuture:
        """Queue `given`, the result of `own_columns`, and return a future of the batches.

        If the cluster or a limit refuses records, one failed batch replaces the remaining records;
        with interceptors, only the remaining ones of that (topic, partition).

        Raises:
            ClosedError, SerializationError, TypeError, ValueError: see `Producer.send_batch`.
        """
        transactions = self._parts.transactions
        if transactions is not None:
            transactions.check_send("send_batch")
        topic_name(topic, "send_batch")
        if type(partition) is not int and partition is not None:
            partition = partition_number(partition, "send_batch")
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
        if transactions is not None:
            for batch in batches:  # with interceptors, any of them may have failed
                transactions.saw(batch)
        if batches:
            self._parts.passes.send()
        return BatchFuture(batches)

    def _queue(
        self, batches: list[ProducerBatch], topic: str, given: Given, partition: int | None
    ) -> None:
        values, keys, stamps, headers = self._serialized(topic, given)
        if len(values) == 0:
            return
        columns = Columns(values, [stamps] if isinstance(stamps, int) else stamps, keys, headers)
        columns.estimated_size()
        before = (given[1], given[0])
        queued_count = 0
        divide = self._parts.destinations.divide
        try:
            for queue, records in divide(topic, columns, partition, before):
                for piece in records.pieces(self._parts.limits.size_max):
                    batches.append(self._add(queue, piece))
                    queued_count += len(piece.values)
        except (KafkaError, TimedOut) as error:
            refused = ProducerBatch.refused(topic, partition, error, self._parts.passes)
            batches.append(refused)
            count = refused.record_count = len(columns.values) - queued_count
            self._parts.sender.outcomes.failures.add(refused)
            self._parts.sender.outcomes.metrics.failed_count += count
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
        batch = ProducerBatch(
            queue.topic.name,
            queue.partition,
            self._parts.passes,
            columns,
            created_ms=self._parts.clock.monotonic_ms(),
            size=columns.estimated_size(),
            size_limit=0,
        )
        batch.is_bulk = True
        batch.close()
        if not self._is_built or batch.encode_built() is None:
            columns.freeze()
        if self._parts.interceptors is not None:
            batch.is_bulk = False  # the interceptors need each record's metadata
            told = Acknowledgement(self._parts.interceptors, None)
            for index in range(batch.record_count):
                batch.add_callback(index, told)
        accumulator = self._parts.accumulator
        if not accumulator.add_batch(queue, batch):
            self._parts.memory.until(lambda: accumulator.add_batch(queue, batch))
        return batch

    def _tell_refused(
        self, topic: str, partition: int | None, error: Exception, count: int
    ) -> None:
        if self._parts.interceptors is not None:
            failed = ProducerBatch.refused(topic, partition, error, self._parts.passes)
            for _ in range(count):
                self._parts.interceptors.tell(
                    "on_acknowledgement", failed.outcome.metadata(0), error
                )
