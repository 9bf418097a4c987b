"""A network that fails by plan, to a broker that refuses by plan, in simulated time.

Bytes go through both ends of the protocol as over TCP. Every request and every answer may be lost
with its connection, late, swallowed, delivered after its connection has ended, or answered twice or
in the wrong order. One seed gives one course of events.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from struct import Struct
from typing import Any

from embedlog.client.network.network_client import NetworkClient
from embedlog.client.parse_settings import parse
from embedlog.client.settings import COMMON
from embedlog.cluster.cluster import Cluster
from embedlog.runtime.pending import Pending
from embedlog.runtime.randomness import Random
from embedlog.server.service import BrokerService
from embedlog.testing import SimRuntime
from wire.records import RecordBatch
from wire.schemas.produce import PartitionProduceResponse, ProduceRequest, TopicProduceResponse

_SIZE = Struct(">i")

REQUEST_LOST = "the connection ends before the request arrives"
RESPONSE_LOST = "the connection ends before the answer arrives"
BLACK_HOLE = "nothing arrives any more, and nobody says so"
DEAF = "no answer arrives any more, and nobody says so"
LATE_REQUEST = "the connection ends, and the request arrives long after"
SLOW = "the answer takes seconds"
TWICE = "the answer comes twice"
SWAPPED = "the answer comes after the next one"
FAULTS = (REQUEST_LOST, RESPONSE_LOST, BLACK_HOLE, DEAF, LATE_REQUEST, SLOW, TWICE, SWAPPED)


class Plan:
    """Draws faults, one at a time, for `rate` in a thousand requests."""

    def __init__(self, random: Random, rate: int, faults: tuple[str, ...] = FAULTS) -> None:
        self.below = random.below
        self.rate = rate
        self.faults = faults
        self.drawn: dict[str, int] = {}

    def draw(self) -> str | None:
        if self.below(1000) >= self.rate:
            return None
        fault = self.faults[self.below(len(self.faults))]
        self.drawn[fault] = self.drawn.get(fault, 0) + 1
        return fault


class FaultyTransport(NetworkClient):
    """The network client of a producer under test."""

    def __init__(self, cluster: Cluster, plan: Plan, **settings: Any) -> None:
        assert isinstance(cluster.runtime, SimRuntime)
        self.channels = FaultyChannels(cluster, plan)
        known = parse(COMMON, {k: v for k, v in settings.items() if k.replace("_", ".") in COMMON})
        in_flight = settings.get("max_in_flight_requests_per_connection", 5)
        super().__init__(
            [("faulty", 9092)],
            {**known, "max.in.flight.requests.per.connection": in_flight},
            runtime=cluster.runtime,
            channels=self.channels,
        )


class FaultyChannels:
    """Replaces `wire.net.SocketChannels`; its events happen as a duty of the clock."""

    is_waiting = False

    def __init__(self, cluster: Cluster, plan: Plan) -> None:
        self.service = BrokerService(cluster.broker().core)
        self.plan = plan
        self.scheduler = cluster.runtime.scheduler
        self.clock = cluster.runtime.clock
        self.ends: set[_End] = set()
        self._signal: Pending[object] = Pending()
        self._events: list[_Event] = []
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self.scheduler.add(self)

    # For the network client

    def connect(self, host: str, port: int, *, timeout_ms: int) -> _End:
        end = _End(self, host, port)
        if self.plan.draw() is REQUEST_LOST:
            self.after(1, lambda: self.happened(_Event(end, reason="connection refused")))
            return end
        self.ends.add(end)
        self.service.connected(end)  # type: ignore[arg-type]
        self.after(1, lambda: self.happened(_Event(end)))
        return end

    def send(self, channel: _End, buffers: Any) -> None:
        data = b"".join(buffers)
        position = 0
        while position < len(data) and not channel.is_closed:
            (size,) = _SIZE.unpack_from(data, position)
            position += _SIZE.size
            channel.send(memoryview(data)[position : position + size])
            position += size

    def poll(self, timeout_ms: int | None) -> list[_Event]:
        if not self._events:
            self.scheduler.run_due(self.clock.monotonic_ms())
        if not self._events and timeout_ms != 0:
            self.scheduler.wait(self._signal, timeout_ms)
        self._signal = Pending()
        events, self._events = self._events, []
        return [event for event in events if not event.channel.is_forgotten]

    def close(self, channel: _End) -> None:
        channel.is_forgotten = True
        channel.end()

    def close_all(self) -> None:
        for end in list(self.ends):
            self.close(end)

    def wake(self) -> None:
        self._signal.complete(None)

    # Time

    def run_once(self, now_ms: int) -> int | None:
        while self._due and self._due[0][0] <= now_ms:
            heapq.heappop(self._due)[2]()
        return self._due[0][0] - now_ms if self._due else None

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._due, (self.clock.monotonic_ms() + delay_ms, self._number, action))
        self.scheduler.notify(self)

    def happened(self, event: _Event) -> None:
        self._events.append(event)
        self._signal.complete(None)


class _Event:
    """Opened (neither frame nor reason), a frame, or closed for a reason."""

    is_refused = False

    def __init__(self, channel: _End, *, frame: memoryview | None = None, reason: str = "") -> None:
        self.channel = channel
        self.frame = frame
        self.reason = reason


class _End:
    """One connection: the client's channel and the broker's peer."""

    def __init__(self, channels: FaultyChannels, host: str, port: int) -> None:
        self.local_host, self.local_port, self.peer_host = host, port, host
        self.state: object = None
        self.is_closed = False
        self.is_forgotten = False
        self._channels = channels
        self._is_black_hole = False
        self._is_deaf = False
        self._is_busy = False
        self._waiting: list[tuple[memoryview, str | None]] = []
        self._fault: str | None = None
        self._held: memoryview | None = None
        self._answered_ms = 0

    # The client's side

    def send(self, frame: memoryview) -> None:
        fault = self._channels.plan.draw()
        if fault is BLACK_HOLE:
            self._is_black_hole = True
        elif fault is DEAF:
            self._is_deaf = True
        elif fault is REQUEST_LOST:
            self._break("cut before the request arrived")
        elif fault is LATE_REQUEST:
            self._break("cut, and the request is still on its way")
            self._channels.after(
                self._channels.plan.below(5_000), lambda: self._arrive(frame, fault)
            )
        if not self._is_black_hole and not self.is_closed:
            self._channels.after(1, lambda: self._arrive(frame, fault))

    def end(self) -> None:
        """Pass no further byte; the broker still works off the bytes that it has."""
        if not self.is_closed:
            self.is_closed = True
            self._channels.ends.discard(self)

    def _break(self, reason: str) -> None:
        if not self.is_closed:
            self.end()
            self._channels.happened(_Event(self, reason=reason))

    # The broker's side

    def _arrive(self, frame: memoryview, fault: str | None) -> None:
        self._waiting.append((frame, fault))
        self._serve()

    def _serve(self) -> None:
        while self._waiting and not self._is_busy:
            frame, self._fault = self._waiting.pop(0)
            self._is_busy = True
            answer = self._channels.service.handle(self, frame)  # type: ignore[arg-type]
            if answer is not None:
                self._answer(answer)

    def respond_with(self, make: Callable[[], Any]) -> None:
        self._answer(make())
        self._serve()

    def close(self) -> None:
        self._break("closed by the broker")

    def _answer(self, buffers: Any) -> None:
        self._is_busy = False
        if not buffers:
            return
        frame = memoryview(b"".join(buffers))[_SIZE.size :]
        fault, plan = self._fault, self._channels.plan
        if fault is RESPONSE_LOST:
            self._break("cut before the answer arrived")
        elif fault is SWAPPED and self._held is None:
            self._held = frame
        else:
            self._pass_on(frame, plan.below(4_000) if fault is SLOW else 1)
            if fault is TWICE:
                self._pass_on(frame, 1)
            if self._held is not None:
                held, self._held = self._held, None
                self._pass_on(held, 1)

    def _pass_on(self, frame: memoryview, delay_ms: int) -> None:
        """Deliver an answer, not before earlier ones."""
        now_ms = self._channels.clock.monotonic_ms()
        self._answered_ms = max(self._answered_ms, now_ms + delay_ms)

        def deliver() -> None:
            if not self.is_closed and not self._is_deaf:
                self._channels.happened(_Event(self, frame=frame))

        self._channels.after(self._answered_ms - now_ms, deliver)


class FaultyBroker:
    """Makes a cluster's broker refuse produce requests by plan, before or after writing.

    6 NOT_LEADER_OR_FOLLOWER, 19 NOT_ENOUGH_REPLICAS, 3 UNKNOWN_TOPIC_OR_PARTITION write nothing;
    7 REQUEST_TIMED_OUT, 20 NOT_ENOUGH_REPLICAS_AFTER_APPEND come after the records are in the log,
    and so may 6 NOT_LEADER_OR_FOLLOWER and 56 KAFKA_STORAGE_ERROR.
    10 MESSAGE_TOO_LARGE is for all batches of several records above a size. Before a request the
    broker may forget all but the last batch of its producer, like Kafka's broker at a restart.
    """

    BEFORE = (6, 19, 3)
    AFTER = (7, 20, 6, 56)
    BATCH_SIZE_MAX = 280

    def __init__(
        self, cluster: Cluster, random: Random, rate: int, *, forgetting_rate: int = 0
    ) -> None:
        self._below = random.below
        self._rate = rate
        self._forgetting_rate = forgetting_rate
        self._replicas = cluster.broker().core.replica_manager
        self._handle = cluster.broker().core.handle
        cluster.broker().core.handle = self.handle  # type: ignore[method-assign]

    def handle(self, context: Any, request: Any) -> Any:
        if not isinstance(request, ProduceRequest):
            return self._handle(context, request)
        is_calm = self._below(1000) >= self._rate
        if self._forgetting_rate and self._below(1000) < self._forgetting_rate:
            self._forget(request)
        refused = [self._take_some(topic, is_calm) for topic in request.topic_data]
        answer = self._handle(context, request)
        assert not isinstance(answer, Pending)
        if not is_calm:
            self._spoil(answer)
        answer.responses += refused
        return answer

    def _forget(self, request: ProduceRequest) -> None:
        (topic,) = request.topic_data
        for data in topic.partition_data:
            log = self._replicas.partition("t", data.index).log
            producer_id = RecordBatch(memoryview(bytes(data.records))).producer_id
            entry = log.transactions.producers.get(producer_id)
            if entry is not None:
                entry.batches = entry.batches[-1:]

    def _spoil(self, answer: Any) -> None:
        answer.throttle_time_ms = self._below(50) * self._below(2)
        code = self.AFTER[self._below(len(self.AFTER))]
        for topic in answer.responses:
            for written in topic.partition_responses:
                if self._below(4) == 0 and not written.error_code:
                    written.error_code, written.base_offset = code, -1

    def _take_some(self, topic: Any, is_calm: bool) -> TopicProduceResponse:
        """Refuse some of the partitions, and take them out of the request."""
        answers = []
        for data in list(topic.partition_data):
            batch = RecordBatch(memoryview(bytes(data.records)))
            code = 0
            if batch.record_count > 1 and batch.size > self.BATCH_SIZE_MAX:
                code = 10
            elif not is_calm and self._below(2):
                code = self.BEFORE[self._below(len(self.BEFORE))]
            if code:
                topic.partition_data.remove(data)
                answers.append(
                    PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
                )
        return TopicProduceResponse(
            name=topic.name, topic_id=topic.topic_id, partition_responses=answers
        )


def stored(cluster: Cluster, topic: str, partition: int) -> list[bytes | None]:
    """The values in a partition's log."""
    log = cluster.broker().core.replica_manager.partition(topic, partition).log
    values: list[bytes | None] = []
    offset = log.offsets.log_start_offset
    while offset < log.log_end_offset:
        read = log.reader.read(offset, max_bytes=1, end_offset=log.log_end_offset)
        batch = RecordBatch(read.records)
        values += [record.value for record in batch.records()]
        offset = batch.next_offset
    return values
