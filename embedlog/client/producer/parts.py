"""`ProducerParts`: the parts of one producer."""

from __future__ import annotations

from embedlog.client.metadata import Metadata
from embedlog.client.parse_settings import converters
from embedlog.client.producer.accumulator import MemoryWait, RecordAccumulator
from embedlog.client.producer.destinations import Destinations
from embedlog.client.producer.in_process_sender import InProcessSender
from embedlog.client.producer.passes import Passes
from embedlog.client.producer.queues import ProducerQueues
from embedlog.client.producer.settings import interceptors
from embedlog.client.producer.sizes import RecordLimits
from embedlog.transport import InProcessTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.producer.request_sender import RequestSender
    from embedlog.client.producer.transactions.calls import TransactionCalls
    from embedlog.client.producer.transactions.manager import TransactionManager
    from embedlog.client.producer.transactions.sequences import Sequences
    from embedlog.client.settings import Settings
    from embedlog.transport import Transport


class ProducerParts:
    """The parts of one producer, from the arguments of `send` to the sender."""

    def __init__(
        self, transport: Transport, settings: Settings, *, owner: object, is_attended: bool
    ) -> None:
        """`settings` are the result of `complete`. `owner` and `is_attended` are as in `Passes`."""
        runtime = transport.runtime
        self.transport = transport
        self.settings = settings
        self.clock = runtime.clock
        self.serialize_key, self.serialize_value = converters(settings, "serializer")
        self.interceptors = interceptors(settings)
        self.limits = RecordLimits(settings)
        self.metadata = Metadata(transport, settings, create_topics=True)
        self.accumulator = accumulator = RecordAccumulator(
            settings, runtime.clock, is_exact=not transport.in_process
        )
        queues = ProducerQueues(settings, runtime.random.below, accumulator.lock)
        numbers, manager = _numbers(transport, settings, accumulator)
        self.sender = _sender(transport, self.metadata, accumulator, settings, queues, numbers)
        self.passes = Passes(
            transport, self.sender, accumulator, settings, owner=owner, is_attended=is_attended
        )
        self.destinations = Destinations(
            self.metadata,
            queues,
            self.passes.driver,
            settings,
            transport,
            awaited=accumulator.incomplete.topics,
        )
        self.memory = MemoryWait(accumulator, self.passes.driver, settings, runtime.clock)
        self.transactions: TransactionCalls | None = None
        if manager is not None:
            from embedlog.client.producer.transactions.calls import TransactionCalls

            self.transactions = TransactionCalls(
                manager, self.passes.driver, accumulator, settings, self.clock
            )

    def metrics(self) -> dict[str, float]:
        """Return the counters under Kafka's names; times are in ms unless named otherwise."""
        requests, records = self.sender.metrics, self.sender.outcomes.metrics
        request_count = len(self.sender.upkeep.sent)
        pool, memory = self.accumulator.pool, self.memory
        answers = max(requests.answer_count, 1)
        batches = max(requests.batch_count, 1)
        spent = self.transactions.spent_ns if self.transactions is not None else {}
        return {
            **{f"txn-{call}-time-ns-total": spent_ns for call, spent_ns in spent.items()},
            "batch-size-avg": records.written_size / max(records.written_batch_count, 1),
            "batch-split-total": records.split_batch_count,
            "buffer-available-bytes": pool.available,
            "buffer-exhausted-total": memory.exhausted_count,
            "buffer-total-bytes": pool.total,
            "bufferpool-wait-time-ns-total": memory.waited_ns,
            "byte-total": requests.encoded_size,
            "compression-rate-avg": requests.encoded_size / max(requests.plain_size, 1),
            "flush-time-ns-total": self.passes.flush_ns,
            "metadata-age": self.metadata.age_ms(self.clock.monotonic_ms()) / 1000,
            "metadata-wait-time-ns-total": self.destinations.waited_ns,
            "produce-throttle-time-avg": requests.throttle_total_ms / answers,
            "produce-throttle-time-max": requests.throttle_max_ms,
            "record-error-total": records.failed_count,
            "record-queue-time-avg": requests.queue_total_ms / batches,
            "record-queue-time-max": requests.queue_max_ms,
            "record-retry-total": records.retried_count,
            "record-send-total": records.written_count,
            "records-per-request-avg": requests.record_count / answers,
            "request-latency-avg": requests.latency_total_ms / answers,
            "request-latency-max": requests.latency_max_ms,
            "request-total": requests.answer_count + request_count,
            "requests-in-flight": request_count,
            "waiting-threads": len(pool.waiting),
        }


def _sender(  # noqa: PLR0917  the parts of a sender, each of its own kind
    transport: Transport,
    metadata: Metadata,
    accumulator: RecordAccumulator,
    settings: Settings,
    queues: ProducerQueues,
    numbers: Sequences | None,
) -> InProcessSender | RequestSender:
    is_transactional = settings["transactional.id"] is not None
    if isinstance(transport, InProcessTransport) and transport.appends and not is_transactional:
        return InProcessSender(transport, metadata, accumulator, settings, transactions=numbers)
    from embedlog.client.producer.request_sender import RequestSender

    return RequestSender(
        transport, metadata, accumulator, settings, queues.latencies, transactions=numbers
    )


def _numbers(
    transport: Transport, settings: Settings, accumulator: RecordAccumulator
) -> tuple[Sequences | None, TransactionManager | None]:
    """Make the sequences of an idempotent producer; and the manager if it is transactional."""
    if settings["transactional.id"] is not None:
        from embedlog.client.producer.transactions.manager import TransactionManager

        manager = TransactionManager(transport, settings, lambda: bool(accumulator.incomplete))
        return manager.sequences, manager
    if not settings["enable.idempotence"]:
        return None, None
    from embedlog.client.producer.transactions.idempotence import IdempotentSequences

    return IdempotentSequences(transport, settings), None
