"""`InProcessSender`: appends batches to a broker of the same process by a direct call.

There is no request, no connection and no pipeline: the sender takes a due batch from its queue,
encodes and appends it, and the batch has its outcome, unless the broker waits for its disk or for
replicas. While the broker has an interceptor, batches go as requests. `DirectAppend` skips the
queue.
"""

from __future__ import annotations

from embedlog.client.backoff import sooner
from embedlog.client.producer.batch import RecordMetadata
from embedlog.client.producer.metrics import RequestMetrics
from embedlog.client.producer.outcomes import BatchOutcomes, SentRequest, Upkeep
from embedlog.client.producer.settings import SenderSettings
from embedlog.errors import EmbedlogError, KafkaError, TimedOut
from embedlog.runtime.pending import Pending
from wire.records.encode.built import BuiltBatch
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from embedlog.client.metadata import Metadata
    from embedlog.client.producer.accumulator import MayBeSent, RecordAccumulator
    from embedlog.client.producer.batch import ProducerBatch
    from embedlog.client.producer.queues import TopicQueues
    from embedlog.client.producer.transactions.sequences import Sequences
    from embedlog.client.settings import Settings
    from embedlog.transport import InProcessTransport
    from wire.schemas.produce import ProduceResponse


class InProcessSender:
    """Drains the accumulator of one producer. One thread at a time makes its passes."""

    def __init__(
        self,
        transport: InProcessTransport,
        metadata: Metadata,
        accumulator: RecordAccumulator,
        settings: Settings,
        *,
        transactions: Sequences | None,
    ) -> None:
        self._transport = transport
        self._metadata = metadata
        self._accumulator = accumulator
        self._transactions = transactions
        self._clock = transport.runtime.clock
        self._settings = SenderSettings(settings, in_process=True)
        self.outcomes = BatchOutcomes(accumulator, metadata, transactions, settings, transport)
        self.upkeep = Upkeep(
            transport, metadata, accumulator, self.outcomes, transactions, settings
        )
        self._may_be_sent: MayBeSent | None = None
        if transactions is not None:
            self._may_be_sent = lambda batch, _: transactions.may_drain(batch)
        self.encodes_at_once = not self._settings.codec
        """True if the call that makes a complete batch encodes it."""
        self.metrics = RequestMetrics()

    def run_once(self) -> int | None:
        """Make a pass as `RequestSender.run_once` does."""
        now_ms = self._clock.monotonic_ms()
        accumulator, upkeep, settled = self._accumulator, self.upkeep, self.outcomes.settled
        accumulator.has_sendable = False
        if upkeep.answers or settled:
            self._settle(now_ms)
        delay: int | None = None
        if now_ms >= upkeep.quiet_until_ms or self._metadata.is_asking:
            try:
                delay = upkeep.advance(now_ms)
            except EmbedlogError as error:
                upkeep.give_up_waiting(error)
            if self._transactions is not None:
                upkeep.quiet_until_ms = 0  # sequences and transactions may have work in any pass
            if upkeep.answers or settled:
                self._settle(now_ms)
        has_asked = False
        while True:
            if not accumulator.active:
                return None if not upkeep.sent else sooner(delay, upkeep.expiry_ms - now_ms)
            found = accumulator.ready(
                now_ms, self._settings.linger_ms, self._metadata.topics, self._may_be_sent, True
            )
            if found:
                self._append(found[0], now_ms)
                if upkeep.answers or settled:
                    self._settle(now_ms)
                continue
            due_ms = min(accumulator.next_due_ms, upkeep.expiry_ms) - now_ms
            if not accumulator.lacks_leader:
                return sooner(delay, due_ms)
            later, has_asked = upkeep.find_leaders(
                accumulator.lacks_leader, now_ms, has_asked=has_asked
            )
            if not has_asked:
                return sooner(sooner(delay, due_ms), later)
            if upkeep.answers or settled:
                self._settle(now_ms)

    def abort_all(self, error: EmbedlogError) -> None:
        self.upkeep.give_up_all(error)

    def recover(self) -> None:
        """Give every batch of an interrupted pass an outcome."""
        self.upkeep.follow_again()

    # A batch

    def _append(self, batch: ProducerBatch, now_ms: int) -> None:
        settings = self._settings
        if self._transactions is not None:
            # Outside of the `try`: a batch that Ctrl-C leaves half numbered is not put back.
            self._transactions.number(batch)
        try:
            encoded = batch.encoded
            if encoded is None and not settings.codec:
                encoded = batch.encode_built()
            if encoded is None:
                encoded = batch.encode(settings.codec, settings.level)
                batch.queue.topic.learn_ratio(batch.observed_ratio)
            if batch.record_count > 1 and len(encoded) > settings.request_size_max:
                self.outcomes.split(batch, settings.part_size_max)
                return
        except BaseException as error:
            if isinstance(error, Exception):
                # Both get the error: threads that wait for the batch, and the caller of the pass.
                self.outcomes.defect(batch, error)
            else:
                self._accumulator.put_back(batch)  # Ctrl-C came before the append
            raise
        try:
            answer: Any = self._transport.append(
                batch.topic,
                batch.topic_id,
                batch.partition,
                encoded,
                settings.acks,
                settings.request_timeout_ms,
                batch.is_wanted,
            )
            if answer is None:
                answer = self._ask(batch, now_ms)
        except EmbedlogError as error:
            self.outcomes.attempt_failed(batch, error, now_ms)
            return
        except BaseException as error:
            self.outcomes.defect(batch, error)  # perhaps a defect of the broker
            raise
        if type(answer) is Pending:
            self._follow(batch, answer, now_ms)
            return
        first_offset, _, append_ms, _, is_duplicate, latest, _ = answer
        if not settings.acks:
            first_offset = -1
        elif is_duplicate:
            append_ms = latest
        self.outcomes.written(batch, first_offset, append_ms)
        self.upkeep.arrived()

    def _follow(self, batch: ProducerBatch, answer: Pending[Any], now_ms: int) -> None:
        """Let a later pass take the answer about a batch that is not committed yet."""
        batch.queue.is_muted = self._settings.in_flight_max == 1
        sent = SentRequest(-1, [batch], now_ms)
        self.upkeep.sent[sent] = None
        self.upkeep.follow(sent, answer)

    def _ask(self, batch: ProducerBatch, now_ms: int) -> Pending[ProduceResponse | None]:
        """Append with a request, which the broker's interceptor can see."""
        data = PartitionProduceData(index=batch.partition, records=bytes(batch.encoded or b""))
        topic = TopicProduceData(name=batch.topic, topic_id=batch.topic_id, partition_data=[data])
        request = ProduceRequest(
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=[topic],
        )
        self.metrics.batch_sent(batch, now_ms)
        node_id = self._metadata.topics[batch.topic].partitions[batch.partition].leader
        return self._transport.send(node_id, request)

    # Outcomes

    def _settle(self, now_ms: int) -> None:
        upkeep = self.upkeep
        while upkeep.answers:
            sent = upkeep.answers.popleft()
            if sent in upkeep.sent:  # a request that is missing was given up
                upkeep.forget(sent)
                self.outcomes.take_answer(sent, self.metrics, now_ms)
        upkeep.tell()


class DirectAppend:
    """Appends without a queue, for a producer with acks and no compression or sequences."""

    def __init__(  # noqa: PLR0917  the parts of a producer, each of its own kind
        self,
        transport: InProcessTransport,
        accumulator: RecordAccumulator,
        topics: Mapping[str, TopicQueues],
        outcomes: BatchOutcomes,
        settings: SenderSettings,
        size_max: int,
    ) -> None:
        """`topics` is `Destinations.known`. A batch of `size_max` bytes surely fits."""
        self._transport = transport
        self._clock = transport.runtime.clock
        self._wall_source = transport.runtime.clock.wall_source()
        self._accumulator = accumulator
        self._topics = topics
        self._outcomes = outcomes
        self._settings = settings
        self._size_max = size_max

    def append(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        timeout_ms: int | None,
    ) -> RecordMetadata | None:
        """Append a record; return None, with nothing done, if `send` must do it.

        Raises:
            KafkaError: the broker took the record and could not keep it: see `Producer.append`.
            TimedOut: the time is over; the record is in the log, but perhaps not committed.
        """
        queues = self._topics.get(topic)
        if queues is None or self._accumulator.incomplete:
            return None
        queue = queues.sticky_queue if key is None else queues.queue_of(key)
        if queue is None:
            return None
        timestamp_ms = self._wall_source.time_ns() // 1_000_000
        built = BuiltBatch((value,), keys=None if key is None else (key,), timestamps=timestamp_ms)
        settings = self._settings
        if built.size > self._size_max:
            return None
        try:
            answer: Any = self._transport.append(
                topic,
                queues.info.topic_id,
                queue.partition,
                built,
                settings.acks,
                settings.request_timeout_ms,
                True,
            )
        except KafkaError:
            return None  # nothing was written: the sender knows what to do about the error
        if answer is None:
            return None
        if type(answer) is Pending:
            answer = self._await(answer, timeout_ms)
        with self._accumulator.lock:
            self._outcomes.metrics.written_count += 1
            if key is None and queues.has_choice:
                queues.produced(queue, built.size)
        stamp = answer[2] if answer[2] >= 0 else timestamp_ms
        return RecordMetadata(
            (
                topic,
                queue.partition,
                answer[0],
                stamp,
                -1 if key is None else len(key),
                -1 if value is None else len(value),
            )
        )

    def _await(self, answer: Pending[Any], timeout_ms: int | None) -> Any:
        deadline_ms = None if timeout_ms is None else self._clock.monotonic_ms() + timeout_ms
        while not answer.done():
            left = None if deadline_ms is None else deadline_ms - self._clock.monotonic_ms()
            if left is not None and left <= 0:
                raise TimedOut(f"the record is in the log, but not committed after {timeout_ms} ms")
            self._transport.wait(answer, left)
        return answer.result()
