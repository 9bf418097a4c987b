"""The sender: takes batches out of the accumulator, sends them, and settles what comes back.

It is a state machine that one thread at a time runs (see `driver`). A pass does everything that
can be done without waiting: take the answers that arrived, tell the callbacks, refresh metadata,
give up what is too old, drain, send.
"""

from __future__ import annotations

from embedlog.client.producer.batch_outcomes import BatchOutcomes
from embedlog.client.producer.produce_answers import by_partition, leaders_in
from embedlog.client.producer.producer_metrics import RequestMetrics
from embedlog.client.producer.record_accumulator import NEVER
from embedlog.client.producer.sent_request import SentRequest
from embedlog.client.producer.short_way import find_short_way
from embedlog.common import deque
from embedlog.errors import EmbedlogError, KafkaError, error_for
from embedlog.pending import Pending, completed
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from embedlog.client.metadata import Metadata
    from embedlog.client.producer.produce_targets import ProduceTargets
    from embedlog.client.producer.producer_batch import ProducerBatch
    from embedlog.client.producer.record_accumulator import RecordAccumulator
    from embedlog.client.producer.transaction_manager import TransactionManager
    from embedlog.client.settings import Settings
    from embedlog.transport import Transport
    from wire.produce_template import RecordsRequest
    from wire.schemas.produce import ProduceResponse

_CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
_ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
_REQUEST_OVERHEAD = 1024
"""Room for what surrounds a batch in its request."""

_LEADER_RETRY_MS = 100
"""Until a partition without a leader is asked for again, when its absence was the answer."""


class Sender:
    """Drains the accumulator of one producer."""

    _awaits_room = False
    """Do batches of a lone queue wait until answers make room?"""

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
        self.outcomes = BatchOutcomes(accumulator, metadata, transactions, settings, transport)
        self.arrived: Callable[[], None] = _nobody_waits
        """Called, in whichever thread, when there is something for the next pass or a waiter."""
        self._clock = transport.runtime.clock
        codec: str = settings["compression.type"]
        self._codec = _CODECS[codec]
        self._level: int | None = settings.get(f"compression.{codec}.level")
        self._acks = _ACKS[settings["acks"]]
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
        self._request_timeout_ms: int = settings["request.timeout.ms"]
        self._targets: ProduceTargets | None = None
        if not self._in_process and self._acks:
            from embedlog.client.producer.produce_targets import targets_of

            self._targets = targets_of(transport, metadata, self._acks, self._request_timeout_ms)
        if self._in_process:
            # A pass for a full batch must not also send the one that was begun a moment ago.
            self._linger_ms = max(self._linger_ms, 1)
        self._request_size_max: int = settings["max.request.size"]
        self._delivery_timeout_ms: int = settings["delivery.timeout.ms"]
        self._in_flight_max: int = settings["max.in.flight.requests.per.connection"]
        self._in_flight: dict[int, int] = {}
        self._sent: dict[SentRequest, None] = {}
        self._answers: deque[SentRequest] = deque()
        self._watched: Pending[Any] | None = None
        self._failures_seen = 0
        self._claim = None if transactions is None else transactions.claim
        self._unready: dict[int, None] = {}
        """Nodes that batches wait for."""
        self._expiry_ms = 0
        """When the next batch may be too old."""
        self._now_ms = 0
        self.metrics = RequestMetrics()
        self.sent_count = 0
        """Records that went the short way."""

    def run_once(self) -> int | None:
        """One pass; milliseconds until time itself makes the next one useful, None if never.

        A user's callback that raises ends the pass with its exception; the next one goes on with
        the callback after it.
        """
        now_ms = self._now_ms = self._clock.monotonic_ms()
        accumulator = self._accumulator
        settled = self.outcomes.settled
        accumulator.has_sendable = False
        way = self._short_way
        if way is not None and now_ms < self._straight_until_ms:
            while not (self._sent or self._answers or settled) and way.send(self):
                if not accumulator.active:
                    return None
        while True:
            if self._answers:
                while self._answers:
                    self._take_answer(self._answers.popleft(), now_ms)
                if self._targets is not None and now_ms < self._expiry_ms:
                    # First this: the broker works while the outcomes are told.
                    self._send_lone_batches(self._targets)
            if settled:
                self._tell()
                if not accumulator.active and not self._sent and not self._metadata.is_asking:
                    return None
            delay = self._advance(now_ms)
            if not self._answers and not settled:
                if self._awaits_room:
                    self._encode_ahead()
                return delay

    @property
    def request_count(self) -> int:
        """Requests without an answer."""
        return len(self._sent)

    def abort_all(self, error: EmbedlogError) -> None:
        """Give up everything that has no outcome, and tell the callbacks."""
        self._fail_waiting(error)
        for sent in list(self._sent):
            self._give_up(sent, error)
        self._answers.clear()
        self._tell()

    def drop_requests(self) -> set[ProducerBatch]:
        """Forget the requests whose answers nobody awaits; return the batches of the others."""
        self._transport.drop_requests("interrupted")
        awaited = [sent for sent in self._sent if sent.pending is not None or sent.done()]
        self._sent = dict.fromkeys(awaited)
        self._in_flight.clear()
        for sent in awaited:
            self._in_flight[sent.node_id] = self._in_flight.get(sent.node_id, 0) + 1
        self._answers.clear()
        for sent in awaited:
            if sent.pending is None:
                self._answers.append(sent)
            else:
                # Again: the interrupt may have come before anybody listened to it.
                self._await(sent, sent.pending)
        return {batch for sent in awaited for batch in sent.batches}

    # For the short way

    def defect(self, batch: ProducerBatch, error: BaseException) -> None:
        """Sending the batch raised: let those who wait for its records know."""
        batch.may_be_written = True
        self.outcomes.failed(batch, error_for(-1, repr(error)), is_told=True)

    def follow(self, batch: ProducerBatch, node_id: int, answer: Any) -> None:
        """See to a batch that was sent, and to what was answered so far."""
        batch.queue.is_muted = self._in_flight_max == 1
        sent = self._note_sent(node_id, [batch])
        self._await(sent, answer if type(answer) is Pending else completed(answer))

    # A pass

    def _advance(self, now_ms: int) -> int | None:
        try:
            failures = self._transport.failure_count
            if failures != self._failures_seen:
                # Whoever led from there may not any more.
                self._failures_seen = failures
                self._metadata.request_update()
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
                    return _sooner(delay, self._expiry_ms - now_ms)
            delay = _sooner(delay, self._drain_and_send(now_ms))
        except EmbedlogError as error:
            self._fail_waiting(error)
            return None
        return _sooner(delay, self._expiry_ms - now_ms)

    def _drain_and_send(self, now_ms: int) -> int | None:
        """Send what may be sent; milliseconds until more may be, if time decides."""
        if self._targets is not None and self._send_lone_batches(self._targets):
            return None
        has_asked = False
        while True:
            drained = self._accumulator.drain(
                now_ms,
                self._linger_ms,
                self._request_size_max,
                self._metadata.leader,
                self._may_be_sent,
            )
            for node_id, batches in drained.batches.items():
                if self._transactions is not None:
                    for batch in batches:
                        self._transactions.number(batch)
                self._send(node_id, batches)
            delay = None if drained.next_ms == NEVER else drained.next_ms - now_ms
            while self._unready:
                delay = _sooner(delay, self._transport.prepare(self._unready.popitem()[0]))
            if drained.lacks_leader and has_asked:
                # A partition that the topic does not have, as when it was made again with fewer.
                delay = _sooner(delay, _LEADER_RETRY_MS)
            elif drained.lacks_leader:
                answers = self._metadata.answer_count
                delay = _sooner(delay, self._find_leaders(drained.lacks_leader, now_ms))
                has_asked = self._metadata.answer_count > answers
                if has_asked:
                    continue
            if not drained.batches or self._answers or self.outcomes.settled:
                return delay

    def _send_lone_batches(self, targets: ProduceTargets) -> bool:
        """Send what waits while it is all for one partition, which is how most is sent.

        True when what is left only waits until answers make room.
        """
        # No codec doubles what it is given: none of these has to be cut.
        size_max = self._request_size_max >> 1
        take = self._accumulator.take_lone
        found = take(self._metadata.leader, self._room_at, self._claim, size_max)
        if found is None:
            self._awaits_room = False
            return False
        node_id, batches, self._awaits_room = found
        if batches:
            targets.hold()
            try:
                while batches:
                    self._send_lone(targets, node_id, batches.popleft())
            finally:
                while batches:  # a defect
                    self._accumulator.put_back(batches.pop())
                targets.release()
        return self._awaits_room

    def _send_lone(self, targets: ProduceTargets, node_id: int, batch: ProducerBatch) -> None:
        """As `_send`, of a batch that needs no cutting to a node that is ready."""
        sent = self._note_sent(node_id, [batch])
        try:
            if batch.encoded is None:
                batch.encode(self._codec, self._level)
            if self._codec:
                batch.queue.topic.learn_ratio(batch.observed_ratio)
            self.metrics.batch_sent(batch, sent.sent_ms)
            targets.send(node_id, batch, sent)
        except BaseException as error:
            self._forget(sent)
            self.defect(batch, error)
            raise

    def _encode_ahead(self) -> None:
        """Make the bytes of what is sent next, while the broker is at work.

        Without that one of them works and the other waits, in turns.
        """
        for batch in self._accumulator.closed_first(self._in_flight_max):
            batch.encode(self._codec, self._level)

    def _room_at(self, node_id: int) -> int:
        """How many batches may be sent to the node now; -1 when it is not connected."""
        room = self._in_flight_max - self._in_flight.get(node_id, 0)
        if room > 0 and not self._transport.is_ready(node_id):
            return -1
        latencies = self._accumulator.latencies
        if latencies.is_watching:
            latencies.batch_was_ready(node_id, self._now_ms, could_be_sent=room > 0)
        return max(room, 0)

    def _may_be_sent(self, batch: ProducerBatch, node_id: int) -> bool:
        """Does the node take a batch now, and does the order of numbers allow this one?"""
        is_ready = self._transport.is_ready(node_id)
        if not is_ready:
            self._unready[node_id] = None
        elif self._in_flight.get(node_id, 0) >= self._in_flight_max:
            is_ready = False
        latencies = self._accumulator.latencies
        if latencies.is_watching:
            latencies.batch_was_ready(node_id, self._now_ms, could_be_sent=is_ready)
        return is_ready and (self._transactions is None or self._transactions.may_drain(batch))

    def _find_leaders(self, topics: dict[str, None], now_ms: int) -> int | None:
        for topic in topics:
            self._metadata.want(topic)
        self._metadata.request_update()
        delay = self._metadata.advance(now_ms)
        self._watch(self._metadata.pending)
        return delay

    def _watch(self, pending: Pending[Any] | None) -> None:
        """Make sure that the next pass happens when `pending` is done."""
        if pending is not self._watched and pending is not None:
            self._watched = pending
            pending.add_callback(lambda _: self.arrived())

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

    def _note_sent(self, node_id: int, batches: list[ProducerBatch]) -> SentRequest:
        sent = SentRequest(node_id, batches, self._clock.monotonic_ms(), self._answers)
        self._sent[sent] = None
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
        if self._in_flight_max == 1:
            for batch in batches:
                batch.queue.is_muted = True
        return sent

    def _await(self, sent: SentRequest, pending: Pending[Any]) -> None:
        sent.pending = pending
        if pending.done():
            self._answers.append(sent)
        else:
            pending.add_callback(lambda _: self._answer_arrived(sent))

    def _request(self, sent: SentRequest) -> ProduceRequest | RecordsRequest | None:
        """The request for the batches of `sent` that fit into one; the others are queued again."""
        if self._targets is not None and len(sent.batches) == 1:
            (batch,) = sent.batches
            if not self._fits(batch):
                sent.batches.clear()
                return None
            self.metrics.batch_sent(batch, sent.sent_ms)
            return self._targets.request(batch)
        topics: dict[str, TopicProduceData] = {}
        for batch in list(sent.batches):
            if not self._fits(batch):
                sent.batches.remove(batch)
                continue
            self.metrics.batch_sent(batch, sent.sent_ms)
            name = batch.topic
            data = PartitionProduceData(index=batch.partition, records=batch.encoded)
            batch.topic_id = self._metadata.topics[name].topic_id
            if name in topics:
                topics[name].partition_data.append(data)
            else:
                topics[name] = TopicProduceData(
                    name=name,
                    topic_id=batch.topic_id,
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
            batch.queue.topic.learn_ratio(batch.observed_ratio)
        if len(encoded) <= self._request_size_max or batch.record_count == 1:
            return True
        batch.queue.is_muted = batch.is_on_wire = False
        self.outcomes.split(batch, max(self._request_size_max - _REQUEST_OVERHEAD, 1))
        return False

    # Answers

    def _answer_arrived(self, sent: SentRequest) -> None:
        self._answers.append(sent)
        self.arrived()

    def _forget(self, sent: SentRequest) -> None:
        """The request has ended, well or not."""
        self._sent.pop(sent, None)
        self._in_flight[sent.node_id] -= 1
        for batch in sent.batches:
            batch.is_on_wire = False
            if self._in_flight_max == 1:
                batch.queue.is_muted = False
        if sent.memory:
            self._accumulator.give_back(sent.memory)

    def _take_answer(self, sent: SentRequest, now_ms: int) -> None:
        if sent not in self._sent:
            return  # given up already
        self._forget(sent)
        batches = [batch for batch in sent.batches if batch.error is None]
        pending = sent.pending or sent
        error = pending.error()
        self.metrics.answered(now_ms - sent.sent_ms)
        if error is not None:
            for batch in batches:
                self._attempt_failed(batch, error, now_ms)
            return
        response = pending.result()
        if response is None or type(response) is int:
            # Nobody was asked (acks 0), or there is nothing to tell but the offset.
            for batch in batches:
                self.outcomes.written(batch, -1 if response is None else response, -1)
            return
        self._take_response(response, batches, now_ms)

    def _take_response(
        self, response: ProduceResponse, batches: list[ProducerBatch], now_ms: int
    ) -> None:
        self.metrics.throttled(response.throttle_time_ms)
        answers = by_partition(response, {batch.topic_id: batch.topic for batch in batches})
        if any(answer.error_code for answer in answers.values()):
            self._metadata.learn_leaders(*leaders_in(response, answers))
        for batch in batches:
            self.outcomes.answered(batch, answers.get((batch.topic, batch.partition)), now_ms)

    def _attempt_failed(self, batch: ProducerBatch, error: BaseException, now_ms: int) -> None:
        if isinstance(error, KafkaError):
            self.outcomes.refused(batch, error, now_ms)
        else:
            batch.may_be_written = True
            reason = error if isinstance(error, EmbedlogError) else error_for(-1, repr(error))
            self.outcomes.failed(batch, reason)

    # Giving up

    def _expire(self, now_ms: int) -> None:
        """Give up what is older than delivery.timeout.ms, and find when to look again."""
        limit = now_ms - self._delivery_timeout_ms
        expired, oldest = self._accumulator.take_expired(limit)
        for sent in list(self._sent):
            for batch in sent.batches:
                if batch.error is not None:
                    continue
                if batch.created_ms > limit:
                    oldest = min(oldest, batch.created_ms)
                    continue
                # Its bytes are held until the request ends.
                sent.memory, batch.memory = sent.memory + batch.memory, 0
                self.outcomes.too_old(batch, "in flight")
        for batch in expired:
            self.outcomes.too_old(batch, "waiting")
        self._expiry_ms = min(oldest, now_ms) + self._delivery_timeout_ms

    def _give_up(self, sent: SentRequest, error: EmbedlogError) -> None:
        for batch in sent.batches:
            if batch.error is None:
                self.outcomes.failed(batch, error)
        self._forget(sent)

    def _fail_waiting(self, error: EmbedlogError) -> None:
        waiting, _ = self._accumulator.take_expired(NEVER)
        for batch in waiting:
            self.outcomes.failed(batch, error)

    def _tell(self) -> None:
        try:
            self.outcomes.tell()
        finally:
            self.arrived()


def _nobody_waits() -> None:
    """Until there is a driver."""


def _sooner(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
