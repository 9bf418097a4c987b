"""`Producer` for asyncio."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from embedlog.aio.shared_producer import SharedProducer
from embedlog.aio.threads import attempt, in_thread, settle, tell
from embedlog.client.delivery import BatchFuture, DeliveryFuture
from embedlog.errors import ClosedError, TimedOut

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from embedlog.aio.shared_producer import Columns
    from embedlog.client.connect import Target
    from embedlog.client.delivery import BatchMetadata, RecordMetadata
    from embedlog.client.metadata import PartitionInfo
    from embedlog.client.producer_batch import Headers, ProducerBatch

    T = TypeVar("T")
    Sent = DeliveryFuture | BatchFuture
    Send = Callable[[], Sent]

_LANE = "embedlog-aio-send"
_DRAIN = "embedlog-aio-drain"
_CLOSE = "embedlog-aio-close"
_LOOK_UP = "embedlog-aio-metadata"


class Producer:
    """Sends records. Many tasks may use one producer.

    See `embedlog.Producer` for the settings and for what each call does. `send` and `send_batch`
    return at once, with a future: await it, or gather many.

    Serializers and `on_send` of interceptors run in the event loop's thread; for a record that
    has to wait for metadata or room, in a thread that waits for it. `on_acknowledgement` runs in
    the thread that sends: in process the loop's, over the network the client's own.

    >>> import asyncio, embedlog, embedlog.aio
    >>> async def main(cluster):
    ...     async with embedlog.aio.Producer(cluster) as producer:
    ...         written = await producer.send("events", b"value", key=b"key")
    ...         return written.offset
    >>> with embedlog.open() as cluster:
    ...     asyncio.run(main(cluster))
    0
    """

    def __init__(
        self, target: Target = None, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self._client = SharedProducer(target, config, **settings)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._serial = 0
        """Futures so far."""
        self._open: dict[asyncio.Future[Any], int] = {}
        """Futures without an outcome and their numbers, in order."""
        self._waiting: dict[ProducerBatch, list[tuple[asyncio.Future[Any], Sent]]] = {}
        """Who waits for which batch."""
        self._done: deque[ProducerBatch] = deque()
        """Batches with an outcome that the loop has not taken yet; filled by any thread."""
        self._is_told = False
        """Will the loop look at `_done`?"""
        self._lanes: dict[str, deque[_Call]] = {}
        """Of topics whose next record would wait for metadata or room: all that come after it."""
        self._flushes: list[tuple[int, asyncio.Future[None]]] = []
        """Flushes, and the number of the last future each waits for."""
        self._is_armed = False
        """In process: is a push under way?"""
        self._is_draining = False
        self._threads: set[asyncio.Future[Any]] = set()
        """What waits in a thread of its own."""
        self._is_closing = False
        self._is_closed = False

    # Sending

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Hand over one record; the future is done when it is written, or fails with why not.

        Records of a topic are written in the order of the calls. In process those that were sent
        in one turn of the event loop (linger.ms, if more) travel together. Whoever does not await
        the future flushes now and then: nothing else holds him back when brokers are slow.
        Cancelling it does not take the record back.

        Raises:
            ClosedError, SerializationError, TypeError, ValueError: as `embedlog.Producer.send`;
                of a record that has to wait the future fails with it.
        """
        send = partial(
            self._client.send,
            topic,
            value,
            key,
            partition=partition,
            timestamp_ms=timestamp_ms,
            headers=headers,
        )
        keys = None if key is None else (key,)
        return self._send(_Call(send, topic, partition, ((value,), keys, headers), is_bulk=False))

    def send_batch(
        self,
        topic: str,
        values: Sequence[Any],
        *,
        keys: Sequence[Any] | None = None,
        timestamps: Sequence[int] | int | None = None,
        headers: Sequence[Headers] | None = None,
        partition: int | None = None,
    ) -> asyncio.Future[list[BatchMetadata]]:
        """Send many records at once: the fast way; the rest is as with `send`."""
        send = partial(
            self._client.send_batch,
            topic,
            values,
            keys=keys,
            timestamps=timestamps,
            headers=headers,
            partition=partition,
        )
        given = (values, keys, headers)
        return self._send(_Call(send, topic, partition, given, is_bulk=True))

    async def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait, at most `timeout` seconds, until all of it is settled.

        What failed tells its future, not this call.

        Raises:
            TimedOut: time is over; the rest is still on its way.
        """
        self._check_open()
        await self._flush(timeout)

    async def close(self, timeout: float | None = None) -> None:
        """Send everything, wait for it at most `timeout` seconds, give back what is held.

        What is not settled by then is given up: its futures fail with ClosedError. Again is
        allowed.
        """
        if self._is_closing:
            return
        self._is_closing = True
        try:
            with suppress(TimedOut):
                await self._flush(timeout)
        finally:
            close = partial(self._client.close, 0)
            self._is_closed = True
            if self._client.in_process:
                close()
            else:
                await asyncio.shield(self._in_thread(_CLOSE, close))
            self._take_done()
            while self._threads:
                await asyncio.wait(self._threads)

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of `topic`, as the cluster last described them.

        Raises:
            TimedOut: the cluster did not tell within max.block.ms; KafkaError: it refused.
        """
        self._check_open()
        look_up = partial(self._client.partitions_for, topic)
        if not self._client.lacks(topic):
            return look_up()
        return await self._in_thread(_LOOK_UP, look_up)

    def metrics(self) -> dict[str, float]:
        """What was counted and measured so far, under Kafka's names."""
        return self._client.metrics()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # From a call to the client

    def _send(self, call: _Call) -> asyncio.Future[Any]:
        self._check_open()
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        lane = self._lanes.get(call.topic)
        sent = None
        if lane is not None:
            lane.append(call)
        elif self._would_wait(call):
            self._lanes[call.topic] = deque([call])
            self._send_in_thread(call)
        else:
            sent = call.send()
        self._serial += 1
        self._open[call.outcome] = self._serial
        if sent is not None:
            self._watch(call.outcome, sent)
        return call.outcome

    def _would_wait(self, call: _Call) -> bool:
        return self._client.would_wait(call.topic, call.partition, call.given, is_bulk=call.is_bulk)

    def _watch(self, outcome: asyncio.Future[Any], sent: Sent) -> None:
        """The client has the records: settle the future when their batches have an outcome."""
        batches = sent.batches if isinstance(sent, BatchFuture) else (sent.batch,)
        if not batches:
            self._settle(outcome, sent.result(), None)
        for batch in batches:
            waiting = self._waiting.get(batch)
            if waiting is None:
                waiting = self._waiting[batch] = []
                batch.on_done = self._batch_is_done
                if batch.is_done:
                    self._batch_is_done(batch)
            waiting.append((outcome, sent))
        if self._client.in_process and not self._is_armed:
            self._is_armed = True
            loop = asyncio.get_running_loop()
            if self._client.linger_ms:
                loop.call_later(self._client.linger_ms / 1000, self._push)
            else:
                loop.call_soon(self._push)

    # Records that have to wait for metadata or room

    def _send_in_thread(self, call: _Call) -> None:
        """Have a thread send the first record of a lane."""
        sent = self._in_thread(_LANE, call.send)
        sent.add_done_callback(lambda done: self._lane_moves(call, done))

    def _lane_moves(self, call: _Call, sent: asyncio.Future[Sent]) -> None:
        """The first of a lane is sent, or never will be; so are those behind it that may."""
        lane = self._lanes[call.topic]
        lane.popleft()
        error = sent.exception() or _refusal(sent.result())
        self._take(call, sent.result)
        if isinstance(error, TimedOut | ClosedError) or (error and self._client.lacks(call.topic)):
            # What is behind it has waited for the same thing.
            while lane:
                self._settle(lane.popleft().outcome, None, error)
        while lane and not self._would_wait(lane[0]):
            following = lane.popleft()
            self._take(following, following.send)
        if lane:
            self._send_in_thread(lane[0])
        else:
            del self._lanes[call.topic]
        if self._flushes:
            self._client.push()

    def _take(self, call: _Call, send: Send) -> None:
        sent, error = attempt(send)
        if sent is None:
            self._settle(call.outcome, None, error)
        else:
            self._watch(call.outcome, sent)

    # From the client to the futures

    def _push(self) -> None:
        """Send what waits for company, and see that it ends."""
        self._is_armed = False
        if self._is_closed:
            return
        self._is_told = True  # what is done in this call is taken in this call
        try:
            self._client.push()
        finally:
            self._take_done()
        if self._client.in_process:
            self._drain()

    def _drain(self) -> None:
        """In process: have a thread drive what waits for the disk, or for another attempt."""
        if self._client.has_unsettled and not self._is_draining and not self._is_closed:
            self._is_draining = True
            drained = self._in_thread(_DRAIN, self._client.flush)
            drained.add_done_callback(self._is_drained)

    def _is_drained(self, drained: asyncio.Future[None]) -> None:
        self._is_draining = False
        if drained.exception() is None:
            self._drain()  # there may be more since

    def _batch_is_done(self, batch: ProducerBatch) -> None:
        """Called in whichever thread drives the client."""
        self._done.append(batch)
        if not self._is_told:
            self._is_told = True
            assert self._loop is not None, "bound by the first send"
            tell(self._loop, self._take_done)

    def _take_done(self) -> None:
        self._is_told = False
        while self._done:
            for outcome, sent in self._waiting.pop(self._done.popleft(), ()):
                if isinstance(sent, DeliveryFuture):
                    batch, index = sent.batch, sent.index
                    error = batch.error_of(index)
                    self._settle(outcome, None if error else batch.outcome(index), error)
                elif all(batch.is_done for batch in sent.batches):
                    error = sent.exception()
                    self._settle(outcome, None if error else sent.result(), error)
        if self._flushes:
            self._answer_flushes()

    def _settle(
        self, outcome: asyncio.Future[Any], result: Any, error: BaseException | None
    ) -> None:
        self._open.pop(outcome, None)
        settle(outcome, result, error)

    async def _flush(self, timeout: float | None) -> None:
        self._push()
        if not self._open:
            return
        last = self._serial
        done = asyncio.get_running_loop().create_future()
        self._flushes.append((last, done))
        try:
            async with asyncio.timeout(timeout):
                await done
        except TimeoutError:
            count = sum(serial <= last for serial in self._open.values())
            raise TimedOut(f"{count} calls had no outcome after {timeout} s") from None

    def _answer_flushes(self) -> None:
        """End the flushes that have nothing left to wait for."""
        oldest = next(iter(self._open.values()), self._serial + 1)
        for last, done in self._flushes:
            if last < oldest:
                settle(done, None, None)
        self._flushes = [each for each in self._flushes if not each[1].done()]

    def _in_thread(self, name: str, call: Callable[[], T]) -> asyncio.Future[T]:
        future = in_thread(self._client.scheduler, name, call)
        self._threads.add(future)
        future.add_done_callback(self._threads.discard)
        return future

    def _check_open(self) -> None:
        if self._is_closing:
            raise ClosedError("the producer is closed")


class _Call:
    """One call of `send` or `send_batch`."""

    __slots__ = ("given", "is_bulk", "outcome", "partition", "send", "topic")

    def __init__(
        self, send: Send, topic: str, partition: int | None, given: Columns, *, is_bulk: bool
    ) -> None:
        self.send = send
        self.topic = topic
        self.partition = partition
        self.given = given
        self.is_bulk = is_bulk
        self.outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


def _refusal(sent: Sent) -> Exception | None:
    """The error that the client gave a record at once, without sending it."""
    return sent.exception() if sent.done() else None
