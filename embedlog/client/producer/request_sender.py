"""`RequestSender`: batches become produce requests to brokers over the network.

It is a state machine that one thread at a time runs (see `drivers`). A pass does everything that
needs no waiting: take the answers that arrived, run the callbacks, refresh metadata, give up
batches that are too old, drain, send.
"""

from __future__ import annotations

from embedlog.client.backoff import sooner
from embedlog.client.producer.accumulator import NEVER
from embedlog.client.producer.metrics import RequestMetrics
from embedlog.client.producer.outcomes import BatchOutcomes, SentRequest, Upkeep
from embedlog.client.producer.settings import SenderSettings
from embedlog.errors import EmbedlogError
from wire.schemas.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.metadata import Metadata, PartitionInfo
    from embedlog.client.producer.accumulator import RecordAccumulator
    from embedlog.client.producer.batch import ProducerBatch
    from embedlog.client.producer.queues import NodeLatencies
    from embedlog.client.producer.transactions.sequences import Sequences
    from embedlog.client.settings import Settings
    from embedlog.transport import Transport


class RequestSender:
    """Drains the accumulator of one producer. One thread at a time makes its passes."""

    encodes_at_once = False
    """False: batches are encoded while brokers work."""

    def __init__(
        self,
        transport: Transport,
        metadata: Metadata,
        accumulator: RecordAccumulator,
        settings: Settings,
        latencies: NodeLatencies,
        *,
        transactions: Sequences | None,
    ) -> None:
        self._transport = transport
        self._metadata = metadata
        self._accumulator = accumulator
        self._latencies = latencies
        self._transactions = transactions
        self._clock = transport.runtime.clock
        self._settings = SenderSettings(settings, in_process=transport.in_process)
        self.outcomes = BatchOutcomes(accumulator, metadata, transactions, settings, transport)
        self.upkeep = Upkeep(
            transport, metadata, accumulator, self.outcomes, transactions, settings
        )
        self._in_flight: dict[int, int] = {}
        """Unanswered requests, by node."""
        self._planned: dict[int, int] = {}
        """Bytes of the requests that the pass is putting together, by node."""
        self._unready: dict[int, None] = {}
        """Nodes that are not ready, although batches wait for them."""
        self._now_ms = 0
        self.metrics = RequestMetrics()

    def run_once(self) -> int | None:
        """Make a pass; return the milliseconds until time makes the next one useful, None if never.

        If a user's callback raises, the pass ends with its exception; the next pass goes on with
        the following callback.
        """
        now_ms = self._now_ms = self._clock.monotonic_ms()
        upkeep, settled = self.upkeep, self.outcomes.settled
        self._accumulator.has_sendable = False
        while True:
            took = bool(upkeep.answers)
            if took:
                while upkeep.answers:
                    self._take_answer(upkeep.answers.popleft(), now_ms)
                if now_ms < upkeep.quiet_until_ms and upkeep.may_send:
                    # Send first: the broker works while the callbacks run.
                    self._send_ready(now_ms)
            if took or settled:
                upkeep.tell()
                numbers = self._transactions
                has_duties = numbers is not None and numbers.has_duties
                is_idle = not self._accumulator.active and not upkeep.sent and not has_duties
                if is_idle and not self._metadata.is_asking:
                    return None
            delay = self._advance(now_ms)
            if not upkeep.answers and not settled:
                self._encode_ahead()
                return delay

    def abort_all(self, error: EmbedlogError) -> None:
        self.upkeep.give_up_all(error)
        self._in_flight.clear()

    def recover(self) -> None:
        """Give every batch of an interrupted pass an outcome: Ctrl-C may end a pass between any two
        steps.

        Batches on the network are sent again, as after any lost connection.
        """
        self._transport.drop_requests("interrupted")
        self.upkeep.follow_again()
        self._in_flight.clear()
        for sent in self.upkeep.sent:
            self._in_flight[sent.node_id] = self._in_flight.get(sent.node_id, 0) + 1

    # A pass

    def _advance(self, now_ms: int) -> int | None:
        try:
            while True:
                delay = self.upkeep.advance(now_ms)
                if self.upkeep.may_send and self._accumulator.active:
                    delay = sooner(delay, self._send_ready(now_ms))
                if self._transactions is None or not self._transactions.is_due:
                    break
        except EmbedlogError as error:
            self.upkeep.give_up_waiting(error)
            return None
        return delay

    def _send_ready(self, now_ms: int) -> int | None:
        """Send the batches that may be sent; return the milliseconds until more can be sent."""
        if not self._settings.acks:
            return self._send_all(now_ms)  # with acks=0, each request must leave at once
        self._transport.writes.hold()
        try:
            return self._send_all(now_ms)
        finally:
            self._transport.writes.release()

    def _send_all(self, now_ms: int) -> int | None:
        has_asked = False
        accumulator, linger_ms = self._accumulator, self._settings.linger_ms
        while True:
            self._planned.clear()
            requests: dict[int, list[ProducerBatch]] = {}
            for batch in accumulator.ready(
                now_ms, linger_ms, self._metadata.topics, self._may_be_sent, False
            ):
                assert batch.leader is not None, batch
                requests.setdefault(batch.leader.leader, []).append(batch)
            for node_id, batches in requests.items():
                self._send(node_id, batches)
            delay = None if accumulator.next_due_ms == NEVER else accumulator.next_due_ms - now_ms
            while self._unready:
                delay = sooner(delay, self._transport.prepare(self._unready.popitem()[0]))
            if accumulator.lacks_leader:
                later, has_asked = self.upkeep.find_leaders(
                    accumulator.lacks_leader, now_ms, has_asked=has_asked
                )
                delay = sooner(delay, later)
                if has_asked:
                    continue
            if not requests or self.upkeep.answers or self.outcomes.settled:
                return delay

    def _encode_ahead(self) -> None:
        """Encode the next batches while the broker works.

        Otherwise client and broker work in turns: a stream of 1 KiB records took 1.4 times as long
        with gzip and 1.15 with zstd. Plain batches are encoded in hardly any time.
        """
        settings = self._settings
        if self.upkeep.sent and settings.codec:
            for batch in self._accumulator.closed_first(settings.in_flight_max):
                self._encode(batch)

    def _encode(self, batch: ProducerBatch) -> int:
        settings = self._settings
        batch.is_transactional = settings.transactional_id is not None
        return len(batch.encode(settings.codec, settings.level))

    def _may_be_sent(self, batch: ProducerBatch, leader: PartitionInfo) -> bool:
        """Return whether the node takes the batch in this request, and the order of sequences
        allows it.

        A request holds at most max.request.size bytes, or one larger batch.
        """
        node_id = leader.leader
        is_ready = self._transport.is_ready(node_id)
        if not is_ready:
            self._unready[node_id] = None
        elif self._in_flight.get(node_id, 0) >= self._settings.in_flight_max:
            is_ready = False
        if self._latencies.is_watching:
            self._latencies.batch_was_ready(node_id, self._now_ms, could_be_sent=is_ready)
        if not is_ready or not (self._transactions is None or self._transactions.may_drain(batch)):
            return False
        size = self._planned.get(node_id, 0) + batch.size
        may_go = size <= self._settings.request_size_max or node_id not in self._planned
        self._planned[node_id] = size  # even without room: no later batch may overtake it
        return may_go

    # A request

    def _send(self, node_id: int, batches: list[ProducerBatch]) -> None:
        sent = SentRequest(node_id, batches, self._clock.monotonic_ms())
        self.upkeep.sent[sent] = None
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
        try:
            for batch in list(batches):
                batch.queue.is_muted = self._settings.in_flight_max == 1
                if self._transactions is not None:
                    self._transactions.number(batch)
                if self._fits(batch):
                    self.metrics.batch_sent(batch, sent.sent_ms)
                else:
                    batches.remove(batch)
            if not batches:
                self._forget(sent)
                return
            version = None
            if self._transactions is not None:
                version = self._transactions.produce_version(node_id)
            pending = self._transport.send(node_id, self._request(batches), version=version)
        except BaseException as error:
            # A defect of this client: its caller sees it, and so do the threads that wait for the
            # records.
            self._forget(sent)
            for batch in batches:
                self.outcomes.defect(batch, error)
            raise
        self.upkeep.follow(sent, pending)

    def _request(self, batches: list[ProducerBatch]) -> ProduceRequest:
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name = batch.topic
            batch.topic_id = self._metadata.topics[name].topic_id
            assert type(batch.encoded) is bytes, batch
            data = PartitionProduceData(index=batch.partition, records=batch.encoded)
            if name in topics:
                topics[name].partition_data.append(data)
            else:
                topics[name] = TopicProduceData(
                    name=name, topic_id=batch.topic_id, partition_data=[data]
                )
        return ProduceRequest(
            transactional_id=self._settings.transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=[*topics.values()],
        )

    def _fits(self, batch: ProducerBatch) -> bool:
        """Encode the batch; if it is too large for a request, queue its parts instead."""
        settings = self._settings
        size = self._encode(batch)
        if settings.codec:
            batch.queue.topic.learn_ratio(batch.observed_ratio)
        if size <= settings.request_size_max or batch.record_count == 1:
            return True
        batch.queue.is_muted = batch.is_on_wire = False
        self.outcomes.split(batch, settings.part_size_max)
        return False

    # Answers

    def _take_answer(self, sent: SentRequest, now_ms: int) -> None:
        if sent not in self.upkeep.sent:
            return  # given up already
        self._forget(sent)
        self.metrics.answered(now_ms - sent.sent_ms)
        self.outcomes.take_answer(sent, self.metrics, now_ms)

    def _forget(self, sent: SentRequest) -> None:
        self.upkeep.forget(sent)
        self._in_flight[sent.node_id] -= 1
