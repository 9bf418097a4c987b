"""The counters of a producer; `ProducerParts.metrics` gives them Kafka's names.

They are counts, totals and present values. Averages and maxima cover the producer's life, while
Kafka's cover the last minute. Kafka's rates are the growth of these totals.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.producer.batch import ProducerBatch


class RequestMetrics:
    """Counters of requests; an append in process is not a request."""

    answer_count = 0
    batch_count = 0
    record_count = 0
    encoded_size = 0
    plain_size = 0
    queue_total_ms = 0
    queue_max_ms = 0
    latency_total_ms = 0
    latency_max_ms = 0
    throttle_total_ms = 0
    throttle_max_ms = 0

    def batch_sent(self, batch: ProducerBatch, now_ms: int) -> None:
        self.batch_count += 1
        self.record_count += batch.record_count
        self.encoded_size += len(batch.encoded or b"")
        self.plain_size += batch.size
        waited_ms = now_ms - batch.created_ms
        self.queue_total_ms += waited_ms
        self.queue_max_ms = max(self.queue_max_ms, waited_ms)

    def answered(self, latency_ms: int) -> None:
        self.answer_count += 1
        self.latency_total_ms += latency_ms
        self.latency_max_ms = max(self.latency_max_ms, latency_ms)

    def throttled(self, throttle_ms: int) -> None:
        self.throttle_total_ms += throttle_ms
        self.throttle_max_ms = max(self.throttle_max_ms, throttle_ms)


class RecordMetrics:
    """Counters of records that have an outcome."""

    written_count = 0
    written_batch_count = 0
    written_size = 0
    """Bytes of the batches, as they were sent."""
    failed_count = 0
    """Includes records that never came into a batch."""
    retried_count = 0
    split_batch_count = 0
