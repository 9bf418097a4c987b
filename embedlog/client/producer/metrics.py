"""What a producer counts, under Kafka's names.

Counts, totals and present values; averages and maxima are over the producer's life, where Kafka's
are over the last minute. What Kafka calls a rate is the growth of a total.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.producer.accumulator import RecordAccumulator
    from embedlog.client.producer.batches import ProducerBatch
    from embedlog.client.producer.outcomes import BatchOutcomes


class RequestMetrics:
    """What is counted of requests. A batch that is appended in process is none."""

    __slots__ = (
        "answer_count",
        "batch_count",
        "encoded_size",
        "latency_max_ms",
        "latency_total_ms",
        "plain_size",
        "queue_max_ms",
        "queue_total_ms",
        "record_count",
        "throttle_max_ms",
        "throttle_total_ms",
    )

    def __init__(self) -> None:
        self.answer_count = 0
        self.batch_count = 0
        self.record_count = 0
        self.encoded_size = 0
        self.plain_size = 0
        self.queue_total_ms = 0
        self.queue_max_ms = 0
        self.latency_total_ms = 0
        self.latency_max_ms = 0
        self.throttle_total_ms = 0
        self.throttle_max_ms = 0

    def batch_sent(self, batch: ProducerBatch, now_ms: int) -> None:
        """A batch, encoded, is put into a request."""
        self.batch_count += 1
        self.record_count += batch.record_count
        self.encoded_size += len(batch.encoded or b"")
        self.plain_size += batch.size
        waited_ms = now_ms - batch.created_ms
        self.queue_total_ms += waited_ms
        self.queue_max_ms = max(self.queue_max_ms, waited_ms)

    def answered(self, latency_ms: int) -> None:
        """A request ended so long after it was sent."""
        self.answer_count += 1
        self.latency_total_ms += latency_ms
        self.latency_max_ms = max(self.latency_max_ms, latency_ms)

    def throttled(self, throttle_ms: int) -> None:
        """A response says how long the broker asks to be left alone."""
        self.throttle_total_ms += throttle_ms
        self.throttle_max_ms = max(self.throttle_max_ms, throttle_ms)


def described(
    accumulator: RecordAccumulator,
    requests: RequestMetrics,
    outcomes: BatchOutcomes,
    request_count: int,
) -> dict[str, float]:
    """All of it by name. Times are in ms unless the name says otherwise."""
    pool = accumulator.pool
    answers = max(requests.answer_count, 1)
    batches = max(requests.batch_count, 1)
    return {
        "batch-size-avg": accumulator.encoded_total / max(accumulator.encoded_count, 1),
        "batch-split-total": outcomes.split_count,
        "buffer-available-bytes": pool.available,
        "buffer-total-bytes": pool.total,
        "byte-total": requests.encoded_size,
        "compression-rate-avg": requests.encoded_size / max(requests.plain_size, 1),
        "produce-throttle-time-avg": requests.throttle_total_ms / answers,
        "produce-throttle-time-max": requests.throttle_max_ms,
        "record-queue-time-avg": requests.queue_total_ms / batches,
        "record-queue-time-max": requests.queue_max_ms,
        "record-retry-total": outcomes.retried_count,
        "record-send-total": outcomes.written_count,
        "records-per-request-avg": requests.record_count / answers,
        "request-latency-avg": requests.latency_total_ms / answers,
        "request-latency-max": requests.latency_max_ms,
        "request-total": requests.answer_count + request_count,
        "requests-in-flight": request_count,
        "waiting-threads": len(pool.waiting),
    }
