"""`send_batch`, from what was given to batches in their queues."""

from __future__ import annotations

from embedlog.client.producer.bulk import Columns, make_batch
from embedlog.client.producer.producer_batch import ProducerBatch
from embedlog.client.producer.producer_records import Acknowledgement, intercepted, serialized
from embedlog.errors import KafkaError, TimedOut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from embedlog.client.interceptors import InterceptorChain
    from embedlog.client.producer.destinations import Destinations
    from embedlog.client.producer.memory_wait import MemoryWait
    from embedlog.client.producer.producer_batch import Delivery, Headers
    from embedlog.client.producer.record_accumulator import RecordAccumulator
    from embedlog.client.producer.record_sizes import RecordLimits
    from embedlog.client.producer.topic_queues import PartitionQueue
    from embedlog.client.settings import Settings
    from embedlog.runtime import Clock

    Given = tuple[
        Sequence[Any], Sequence[Any] | None, Sequence[int] | int, Sequence[Headers] | None
    ]
    """Values, keys, timestamps, headers."""


class ColumnSends:
    """What one producer does with many records at once. As thread-safe as the producer is."""

    def __init__(
        self,
        *,
        delivery: Delivery,
        destinations: Destinations,
        accumulator: RecordAccumulator,
        memory: MemoryWait,
        limits: RecordLimits,
        settings: Settings,
        clock: Clock,
        interceptors: InterceptorChain | None,
        is_built: bool,
    ) -> None:
        """`is_built`: encode in the call, as the broker is in this process."""
        self._delivery = delivery
        self._destinations = destinations
        self._accumulator = accumulator
        self._memory = memory
        self._limits = limits
        self._clock = clock
        self._serialize_key = settings["key.serializer"]
        self._serialize_value = settings["value.serializer"]
        self._interceptors = interceptors
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
        if self._interceptors is None:
            self._queue(batches, topic, given, partition)
        else:
            for name, number, columns in intercepted(self._interceptors, topic, given, partition):
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
        if len(columns.values) == 0:
            return
        queued_count = 0
        try:
            for queue, records in self._destinations.divide(topic, columns, partition):
                for piece in records.pieces(self._limits.size_max):
                    batches.append(self._add(queue, piece))
                    queued_count += len(piece.values)
        except (KafkaError, TimedOut) as error:
            batches.append(ProducerBatch.refused(topic, partition, error, self._delivery))
            count = len(columns.values) - queued_count
            self.refused_count += count
            self._tell_refused(topic, partition, error, count)

    def _serialized(self, topic: str, given: Given) -> Given:
        values, keys, timestamps, headers = given
        if self._serialize_value is not None:
            make = self._serialize_value
            values = [serialized(make, value, "value", topic) for value in values]
        if self._serialize_key is not None and keys is not None:
            make = self._serialize_key
            keys = [key if key is None else serialized(make, key, "key", topic) for key in keys]
        return values, keys, timestamps, headers

    def _add(self, queue: PartitionQueue, columns: Columns) -> ProducerBatch:
        if len(columns.values) == 1:
            self._limits.check(
                None if columns.keys is None else columns.keys[0],
                columns.values[0],
                None if columns.headers is None else columns.headers[0],
            )
        batch = make_batch(
            columns,
            queue.topic.name,
            queue.partition,
            self._delivery,
            self._clock.monotonic_ms(),
            is_built=self._is_built,
        )
        if self._interceptors is not None:
            batch.is_bulk = False  # each record's metadata is asked for
            batch.call_for_each(Acknowledgement(self._interceptors, None))
        accumulator = self._accumulator
        if not accumulator.add_batch(queue, batch):
            self._memory.until(lambda: accumulator.add_batch(queue, batch))
        return batch

    def _tell_refused(
        self, topic: str, partition: int | None, error: Exception, count: int
    ) -> None:
        if self._interceptors is not None:
            failed = ProducerBatch.refused(topic, partition, error, self._delivery)
            for _ in range(count):
                self._interceptors.tell("on_acknowledgement", failed.metadata(0), error)
