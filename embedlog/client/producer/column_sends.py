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

    from embedlog.client.producer.producer_batch import Headers
    from embedlog.client.producer.send_parts import SendParts
    from embedlog.client.producer.topic_queues import PartitionQueue

    Given = tuple[
        Sequence[Any], Sequence[Any] | None, Sequence[int] | int, Sequence[Headers] | None
    ]
    """Values, keys, timestamps, headers."""


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
