"""The sender: takes batches out of the accumulator, sends them, and settles what comes back.

It is a state machine that one thread at a time runs (see `driver`). A pass does everything that
can be done without waiting: take the answers that arrived, tell the callbacks, refresh metadata,
give up what is too old, drain, send.
"""

from __future__ import annotations

from embedlog.client.metadata import STALE_METADATA
from embedlog.client.produce_answers import by_partition, error_of
from embedlog.client.short_way import find_short_way
from embedlog.common import deque
from embedlog.errors import EmbedlogError, KafkaError, TimedOut, error_for
from embedlog.pending import Pending, completed
from wire.error_codes import ErrorCode
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.client.metadata import Metadata
    from embedlog.client.producer_batch import ProducerBatch
    from embedlog.client.record_accumulator import PartitionQueue, RecordAccumulator
    from embedlog.client.settings import Settings
    from embedlog.client.transaction_manager import TransactionManager
    from embedlog.transport import Transport

_WRITTEN = frozenset((ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
"""A duplicate is written too, though nobody knows any more where."""

_CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
_NEVER = 1 << 62


class _Sent:
    """One produce request without an outcome."""

    __slots__ = ("batches", "node_id", "pending")

    def __init__(self, node_id: int, batches: list[ProducerBatch]) -> None:
        self.node_id = node_id
        self.batches = batches
        self.pending: Pending[Any] | None = None


class Sender:
    """Drains the accumulator of one producer."""

    def __init__(
        self,
        transport: Transport,
        metadata: Metadata,
        accumulator: RecordAccumulator,
        settings: Settings,
        *,
        transactions: TransactionManager | None,
    ) -> None:
        self._transport = transport
        self._metadata = metadata
        self._accumulator = accumulator
        self._transactions = transactions
        self.arrived: Callable[[], None] = _nobody_waits
        """Called, in whichever thread, when there is something for the next pass or a waiter."""
        self._clock = transport.runtime.clock
        codec: str = settings["compression.type"]
        self._codec = _CODECS[codec]
        self._level: int | None = settings.get(f"compression.{codec}.level")
        self._acks = _ACKS[settings["acks"]]
        self._retries: int = settings["retries"]
        self._linger_ms: int = settings["linger.ms"]
        self._in_process = transport.in_process
        self._short_way = (
            find_short_way(transport, metadata, accumulator, settings, self._acks)
            if transactions is None and not self._codec
            else None
        )
        self.has_short_way = self._short_way is not None
        """Do batches go as they are to a broker in this process? Then none is encoded in vain."""
        self._straight_until_ms = 0
        """Until then neither metadata nor the age of batches ask for a whole pass."""
        if self._in_process:
            # A pass for a full batch must not also send the one that was begun a moment ago.
            self._linger_ms = max(self._linger_ms, 1)
        self._request_timeout_ms: int = settings["request.timeout.ms"]
        self._request_size_max: int = settings["max.request.size"]
        self._batch_size: int = settings["batch.size"]
        self._delivery_timeout_ms: int = settings["delivery.timeout.ms"]
        self._in_flight_max: int = settings["max.in.flight.requests.per.connection"]
        self._backoff_ms: int = settings["retry.backoff.ms"]
        self._backoff_max_ms: int = settings["retry.backoff.max.ms"]
        self._in_flight: dict[int, int] = {}
        self._sent: dict[_Sent, None] = {}
        self._answers: deque[_Sent] = deque()
        self._settled: deque[ProducerBatch] = deque()
        """Batches with an outcome that their callbacks do not know yet."""
        self._is_telling = False
        self._watched: Pending[Any] | None = None
        self._lacks_leader = False
        """A batch has nowhere to go."""
        self._expiry_ms = 0
        """When the next batch may be too old."""
        self.sent_count = 0
        """Records written, as far as is known."""
        self.failed_count = 0
        """Records given up."""

    def run_once(self) -> int | None:
        """One pass; milliseconds until time itself makes the next one useful, None if never.

        A user's callback that raises ends the pass with its exception; the next one goes on with
        the callback after it.
        """
        now_ms = self._clock.monotonic_ms()
        accumulator = self._accumulator
        accumulator.has_sendable = False
        way = self._short_way
        if way is not None and now_ms < self._straight_until_ms:
            while not (self._sent or self._answers or self._settled) and way.send(self):
                if not accumulator.active:
                    return None
        while True:
            while self._answers:
                self._take_answer(self._answers.popleft(), now_ms)
            if self._settled:
                self._tell()
                if not accumulator.active and not self._sent and not self._metadata.is_asking:
                    return None
            delay = self._advance(now_ms)
            if not self._answers and not self._settled:
                return delay

    @property
    def request_count(self) -> int:
        """Requests without an answer."""
        return len(self._sent)

    def abort_all(self, error: EmbedlogError) -> None:
        """Give up everything that has no outcome, and tell the callbacks."""
        self._fail_waiting(error)
        for sent in list(self._sent):
            self._forget(sent)
            for batch in sent.batches:
                self._settle_failed(batch, error, in_flight=True)
        self._answers.clear()
        self._tell()

    # For the short way

    def defect(self, batch: ProducerBatch, error: BaseException) -> None:
        """Sending the batch raised: let those who wait for its records know."""
        self._settle_failed(batch, error_for(-1, repr(error)), in_flight=True)

    def follow(self, batch: ProducerBatch, node_id: int, answer: Any) -> None:
        """See to a batch that was sent, and to what was answered so far."""
        batch.queue.is_muted = self._in_flight_max == 1
        sent = self._note_sent(node_id, [batch])
        self._await(sent, answer if type(answer) is Pending else completed(answer))

    # A pass

    def _advance(self, now_ms: int) -> int | None:
        try:
            delay = metadata_delay = self._metadata.advance(now_ms)
            if self._metadata.pending is not None:
                self._watch(self._metadata.pending)
            if not self._accumulator.active and not self._sent:
                return delay
            if now_ms >= self._expiry_ms:
                self._expire(now_ms)
            if metadata_delay is not None:
                self._straight_until_ms = min(now_ms + metadata_delay, self._expiry_ms)
            if self._transactions is not None:
                delay = _sooner(delay, self._transactions.advance(now_ms))
                self._watch(self._transactions.pending)
                if not self._transactions.has_producer_id:
                    return delay
            delay = _sooner(delay, self._drain_and_send(now_ms))
        except EmbedlogError as error:
            self._fail_waiting(error)
            return None
        return _sooner(delay, self._expiry_ms - now_ms)

    def _drain_and_send(self, now_ms: int) -> int | None:
        """Send what may be sent; milliseconds until more may be, if time decides."""
        while True:
            drained, next_ms = self._drain(now_ms)
            for node_id, batches in drained.items():
                self._send(node_id, batches)
            delay = None if next_ms == _NEVER else next_ms - now_ms
            if self._lacks_leader:
                self._lacks_leader = False
                answers = self._metadata.answer_count
                delay = _sooner(delay, self._metadata.advance(now_ms))
                self._watch(self._metadata.pending)
                if self._metadata.answer_count > answers:
                    continue
            if not drained or self._answers or self._settled:
                return delay

    def _watch(self, pending: Pending[Any] | None) -> None:
        """Make sure that the next pass happens when `pending` is done."""
        if pending is not self._watched and pending is not None:
            self._watched = pending
            pending.add_callback(lambda _: self.arrived())

    def _drain(self, now_ms: int) -> tuple[dict[int, list[ProducerBatch]], int]:
        """Take one sendable batch of each partition, by node; also when others become sendable."""
        drained: dict[int, list[ProducerBatch]] = {}
        sizes: dict[int, int] = {}
        next_ms = _NEVER
        accumulator = self._accumulator
        lock = accumulator.lock
        lock.acquire()
        try:
            for queue in list(accumulator.active):
                batch = queue.batches[0]
                if batch.retry_at_ms:
                    due_ms = batch.retry_at_ms
                elif batch.is_closed or batch.is_wanted:
                    due_ms = 0
                else:
                    due_ms = batch.created_ms + self._linger_ms
                if due_ms > now_ms:
                    next_ms = min(next_ms, due_ms)
                    continue
                node_id = self._sendable_to(queue, batch)
                if node_id < 0:
                    continue
                size = sizes.get(node_id, 0) + batch.size
                if node_id in drained:
                    if size > self._request_size_max:
                        continue
                    drained[node_id].append(accumulator.take_first(queue))
                else:
                    drained[node_id] = [accumulator.take_first(queue)]
                sizes[node_id] = size
                queue.is_muted = self._in_flight_max == 1
        finally:
            lock.release()
        if self._transactions is not None:
            for batches in drained.values():
                for batch in batches:
                    self._transactions.number(batch)
        return drained, next_ms

    def _sendable_to(self, queue: PartitionQueue, batch: ProducerBatch) -> int:
        """The node that the batch may be sent to now; -1 if there is none."""
        leader = self._metadata.leader(batch.topic, batch.partition)
        if leader is None:
            self._metadata.want(batch.topic)
            self._metadata.request_update()
            self._lacks_leader = True
            return -1
        node_id = leader.leader
        if queue.is_muted or self._in_flight.get(node_id, 0) >= self._in_flight_max:
            return -1
        if self._transactions is not None and not self._transactions.may_drain(batch):
            return -1
        return node_id

    def _send(self, node_id: int, batches: list[ProducerBatch]) -> None:
        sent = self._note_sent(node_id, batches)
        try:
            request = self._request(sent)
            if request is None:
                self._forget(sent)
                return
            pending = self._transport.send(node_id, request)
        except BaseException as error:
            # A defect, of this client or of a broker in this process: its caller shall see it,
            # and so shall whoever waits for the records.
            self._forget(sent)
            for batch in sent.batches:
                self.defect(batch, error)
            raise
        self._await(sent, pending)

    def _note_sent(self, node_id: int, batches: list[ProducerBatch]) -> _Sent:
        sent = _Sent(node_id, batches)
        self._sent[sent] = None
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
        return sent

    def _await(self, sent: _Sent, pending: Pending[Any]) -> None:
        sent.pending = pending
        if pending.done():
            self._answers.append(sent)
        else:
            pending.add_callback(lambda _: self._answer_arrived(sent))

    def _request(self, sent: _Sent) -> ProduceRequest | None:
        """The request for the batches of `sent` that fit into one; the others are queued again."""
        topics: dict[str, TopicProduceData] = {}
        for batch in list(sent.batches):
            if not self._fits(batch):
                sent.batches.remove(batch)
                continue
            name = batch.topic
            data = PartitionProduceData(index=batch.partition, records=batch.encoded)
            if name in topics:
                topics[name].partition_data.append(data)
            else:
                topics[name] = TopicProduceData(
                    name=name,
                    topic_id=self._metadata.topics[name].topic_id,
                    partition_data=[data],
                )
        if not topics:
            return None
        return ProduceRequest(
            acks=self._acks,
            timeout_ms=self._request_timeout_ms,
            topic_data=[*topics.values()],
        )

    def _fits(self, batch: ProducerBatch) -> bool:
        """Encode the batch; when it is too large for a request, queue its parts instead."""
        encoded = batch.encode(self._codec, self._level, in_process=self._in_process)
        if self._codec:
            batch.queue.topic.learn_ratio(len(encoded) / max(batch.size, 1))
        if len(encoded) <= self._request_size_max or batch.record_count == 1:
            return True
        self._split(batch, self._request_size_max - 1024)
        return False

    def _split(self, batch: ProducerBatch, part_size_max: int) -> None:
        batch.queue.is_muted = False
        parts = batch.split(part_size_max)
        if self._transactions is not None:
            self._transactions.split(batch, parts)
        self._accumulator.replace_by_parts(batch, parts)

    # Answers

    def _answer_arrived(self, sent: _Sent) -> None:
        self._answers.append(sent)
        self.arrived()

    def _forget(self, sent: _Sent) -> None:
        self._sent.pop(sent, None)
        self._in_flight[sent.node_id] -= 1
        if self._in_flight_max == 1:
            for batch in sent.batches:
                batch.queue.is_muted = False

    def _take_answer(self, sent: _Sent, now_ms: int) -> None:
        if sent not in self._sent:
            return  # given up already
        self._forget(sent)
        assert sent.pending is not None, sent
        error = sent.pending.error()
        if error is not None:
            self._request_failed(sent, error, now_ms)
            return
        response = sent.pending.result()
        if response is None:
            for batch in sent.batches:
                self._succeed(batch, -1, -1)
            return
        answers = by_partition(response, self._metadata.names_by_id)
        for batch in sent.batches:
            answer = answers.get((batch.topic, batch.partition))
            if answer is None:
                self._settle_failed(batch, error_for(-1, "the response leaves the partition out"))
            elif answer.error_code in _WRITTEN:
                self._succeed(batch, answer.base_offset, answer.log_append_time_ms)
            else:
                self._refused(batch, error_of(answer), now_ms)

    def _request_failed(self, sent: _Sent, error: BaseException, now_ms: int) -> None:
        for batch in sent.batches:
            if isinstance(error, KafkaError):
                self._refused(batch, error, now_ms)
            else:
                reason = error if isinstance(error, EmbedlogError) else error_for(-1, repr(error))
                self._settle_failed(batch, reason, in_flight=True)

    def _succeed(self, batch: ProducerBatch, base_offset: int, log_append_ms: int) -> None:
        if self._transactions is not None:
            self._transactions.acknowledged(batch)
        batch.succeed(base_offset, log_append_ms)
        self._settle(batch)

    def _refused(self, batch: ProducerBatch, error: KafkaError, now_ms: int) -> None:
        code = error.code
        if code in STALE_METADATA:
            self._metadata.request_update()
        if code == ErrorCode.MESSAGE_TOO_LARGE and batch.record_count > 1:
            half = batch.size // 2 if batch.is_split_product else self._batch_size
            self._split(batch, half)
            return
        retriable = error.retriable or (
            self._transactions is not None and self._transactions.may_retry(batch, code)
        )
        in_time = now_ms - batch.created_ms < self._delivery_timeout_ms
        if retriable and in_time and batch.attempts < self._retries:
            delay = min(self._backoff_ms << min(batch.attempts, 16), self._backoff_max_ms)
            batch.attempts += 1
            batch.retry_at_ms = now_ms + delay
            self._accumulator.put_back(batch)
        else:
            self._settle_failed(batch, error)

    # Outcomes

    def _expire(self, now_ms: int) -> None:
        """Give up what is older than delivery.timeout.ms, and find when to look again."""
        oldest = now_ms
        limit = now_ms - self._delivery_timeout_ms
        for sent in list(self._sent):
            created_ms = min(batch.created_ms for batch in sent.batches)
            if created_ms <= limit:
                self._forget(sent)
                for batch in sent.batches:
                    self._settle_failed(batch, self._too_old(batch, "in flight"), in_flight=True)
            else:
                oldest = min(oldest, created_ms)
        accumulator = self._accumulator
        expired: list[ProducerBatch] = []
        with accumulator.lock:
            for queue in list(accumulator.active):
                while queue.batches and queue.batches[0].created_ms <= limit:
                    expired.append(accumulator.take_first(queue))
                if queue.batches:
                    oldest = min(oldest, queue.batches[0].created_ms)
        for batch in expired:
            self._settle_failed(batch, self._too_old(batch, "waiting"))
        self._expiry_ms = oldest + self._delivery_timeout_ms

    def _too_old(self, batch: ProducerBatch, where: str) -> TimedOut:
        return TimedOut(
            f"{batch.record_count} records for {batch.topic}-{batch.partition} were {where} for "
            f"delivery.timeout.ms={self._delivery_timeout_ms}, {batch.attempts} retries: is the "
            f"leader of the partition reachable?"
        )

    def _fail_waiting(self, error: EmbedlogError) -> None:
        accumulator = self._accumulator
        failed: list[ProducerBatch] = []
        with accumulator.lock:
            for queue in list(accumulator.active):
                while queue.batches:
                    failed.append(accumulator.take_first(queue))
        for batch in failed:
            self._settle_failed(batch, error)

    def _settle_failed(
        self, batch: ProducerBatch, error: Exception, *, in_flight: bool = False
    ) -> None:
        if self._transactions is not None:
            self._transactions.gave_up(batch, in_flight=in_flight)
        batch.fail(error)
        self._settle(batch)

    def _settle(self, batch: ProducerBatch) -> None:
        if batch.error is None:
            self.sent_count += batch.record_count
        else:
            self.failed_count += batch.record_count
        self._settled.append(batch)

    def _tell(self) -> None:
        """Run the callbacks of settled batches, in order, then let their waiters see the outcome.

        Nothing is lost when a callback raises: it was taken off the queue, the rest is on it.
        """
        if self._is_telling:
            return  # called from a callback: the loop around it goes on
        self._is_telling = True
        try:
            settled = self._settled
            while settled:
                batch = settled[0]
                while batch.callbacks:
                    index, callback = batch.callbacks.popleft()
                    callback(batch.metadata(index), batch.error)
                settled.popleft()
                batch.finish()
                self._accumulator.finished(batch)
        finally:
            self._is_telling = False
        self.arrived()


def _nobody_waits() -> None:
    """Until there is a driver."""


def _sooner(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
