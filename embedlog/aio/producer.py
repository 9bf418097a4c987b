"""`Producer` for asyncio."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from embedlog.aio.lanes import Lanes
from embedlog.aio.outcomes import Outcomes
from embedlog.aio.shared_producer import SharedProducer
from embedlog.aio.threads import in_thread
from embedlog.client.arguments import timeout_s
from embedlog.client.errors import IllegalState
from embedlog.client.producer.passes import milliseconds
from embedlog.client.producer.records import own_columns, unchanging
from embedlog.errors import ClosedError, EmbedlogError, TimedOut
from embedlog.runtime.forks import stays_in_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from embedlog.aio.consumer import Consumer
    from embedlog.client.connect import Target
    from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata
    from embedlog.client.metadata import PartitionInfo
    from embedlog.client.producer.batch import BatchMetadata, RecordMetadata
    from embedlog.client.producer.sizes import Headers
    from embedlog.client.producer.transactional import GivenOffsets
    from embedlog.client.producer.transactions.prepared import PreparedTransaction

    T = TypeVar("T")

_DRAIN = "embedlog-aio-drain"
_CLOSE = "embedlog-aio-close"
_LOOK_UP = "embedlog-aio-metadata"
_TRANSACTIONS = "embedlog-aio-transactions"


class Producer:
    """Sends records. Many tasks may use one producer.

    See `embedlog.Producer` for the settings and for what each call does. `send` and `send_batch`
    return at once, with a future: await it, or gather many. Without linger.ms, what is sent in one
    turn of the event loop travels together, at its end.

    Serializers and `on_send` of interceptors run in the event loop's thread; for a record that
    has to wait for metadata or room, in a thread that waits with it. `on_acknowledgement` runs in
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
        self._client = SharedProducer(target, config, settings)
        self._outcomes = Outcomes()
        self._lanes = Lanes(self._client, self._outcomes, self._in_thread, self._lane_moved)
        self._held = self._lanes.topics
        self._threads: set[asyncio.Future[Any]] = set()
        """What waits in a thread of its own."""
        self._will_push = False
        self._flush_count = 0
        self._is_draining = False
        self._closed: asyncio.Future[None] | None = None
        """Done when `close` is; None until it was called."""
        self._is_closed = False
        """Is the client closed, so that nothing may be sent any more?"""
        if self._client.in_process:
            stays_in_parent(self)

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

        Records of a topic are written in the order of the calls. Whoever does not await the future
        flushes now and then: nothing else holds him back when brokers are slow. Cancelling it does
        not take the record back.

        Raises:
            ClosedError, SerializationError, TypeError, ValueError: as `embedlog.Producer.send`;
                of a record that has to wait the future fails with it.
        """
        if self._closed is not None:
            self._check_open()
        client = self._client
        if topic in self._held or not client.surely_takes(topic, partition):
            given = (value,), None if key is None else (key,), headers
            if topic in self._held or client.would_wait(topic, partition, given, is_bulk=False):
                send = partial(
                    client.sync.send,
                    topic,
                    unchanging(value),
                    unchanging(key),
                    partition=partition,
                    timestamp_ms=timestamp_ms,
                    headers=headers,
                )
                return self._lanes.add(send, topic, partition, given, is_bulk=False)
        if partition is None and timestamp_ms is None and headers is None:
            sent = client.sync.send(topic, value, key)
        else:
            sent = client.sync.send(
                topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
            )
        if not self._will_push and client.push_delay_ms is not None:
            self._push_later()
        return self._outcomes.of_record(sent)

    async def append(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
        timeout: float | None = None,
    ) -> RecordMetadata:
        """Append one record, and return where it is: `await send(...)`, at most `timeout` seconds.

        Raises:
            TimedOut: time is over; the record is still on its way. The others as `send`.
        """
        sent = self.send(
            topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )
        try:
            return await asyncio.wait_for(sent, timeout_s(timeout, "append"))
        except TimeoutError:
            raise TimedOut(f"the record has no outcome after {timeout} s") from None

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
        self._check_open()
        owned = own_columns(values, keys, timestamps, headers, wall_ms=self._client.wall_ms)
        send = partial(self._client.send_columns, topic, owned, partition)
        given = owned[0], owned[1], owned[3]
        if topic in self._held or self._client.would_wait(topic, partition, given, is_bulk=True):
            return self._lanes.add(send, topic, partition, given, is_bulk=True)
        sent = send()
        future = self._outcomes.new()
        self._outcomes.watch(future, sent)
        self._push_later()
        return future

    async def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait, at most `timeout` seconds, until all of it is settled.

        What failed tells its future, not this call.

        Raises:
            TimedOut: time is over; the rest is still on its way.
        """
        self._check_open()
        await self._flush(timeout)

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of `topic`, as the cluster last described them.

        Raises:
            TimedOut: the cluster did not tell within max.block.ms; KafkaError: it refused.
        """
        self._check_open()
        look_up = partial(self._client.sync.partitions_for, topic)
        if not self._client.lacks(topic):
            return look_up()
        return await self._in_thread(_LOOK_UP, look_up)

    # Transactions

    async def init_transactions(self, *, keep_prepared: bool = False) -> None:
        """Get this producer's epoch, once, before the first transaction: see
        `embedlog.Producer.init_transactions`, also for what the others raise.
        """
        init = partial(self._client.sync.init_transactions, keep_prepared=keep_prepared)
        await self._in_thread(_TRANSACTIONS, init)

    def transaction(self) -> Transaction:
        """A transaction for `async with`: committed at its end, aborted when an exception leaves.

        async with producer.transaction() as t:
            t.send("out", b"value")
            await t.send_offsets(consumer)
        """
        self._client.sync.transaction()  # or why there is none
        return Transaction(self)

    async def begin_transaction(self) -> None:
        """Open a transaction; what is sent from here on belongs to it."""
        self._client.sync.begin_transaction()

    async def send_offsets_to_transaction(
        self, offsets: GivenOffsets, group_metadata: ConsumerGroupMetadata
    ) -> None:
        """Commit a group's offsets with the transaction: they count if and when it does."""
        send = partial(self._client.sync.send_offsets_to_transaction, offsets, group_metadata)
        await self._in_thread(_TRANSACTIONS, send)

    async def commit_transaction(self) -> None:
        """Send what is left, wait for all of it, and commit. Cancelled, call it again."""
        await self._end(self._client.sync.commit_transaction)

    async def abort_transaction(self) -> None:
        """Make nothing of what was sent; the futures of what was not written fail."""
        await self._end(self._client.sync.abort_transaction)

    async def prepare_transaction(self) -> PreparedTransaction:
        """Write what is left, and take no more: the first phase of a two-phase commit."""
        return await self._end(self._client.sync.prepare_transaction)

    async def complete_transaction(self, prepared: PreparedTransaction) -> None:
        """Commit the prepared transaction if it is `prepared`, else abort it."""
        await self._end(partial(self._client.sync.complete_transaction, prepared))

    def metrics(self) -> dict[str, float]:
        """What was counted and measured so far, under Kafka's names."""
        return self._client.sync.metrics()

    # Life

    async def close(self, timeout: float | None = None) -> None:
        """Send everything, wait for it at most `timeout` seconds, give back what is held.

        What is not settled by then is given up: its futures fail with ClosedError. Cancelled, it
        waits no more. Again is allowed, and waits for the first. A transaction that is open is
        aborted, unless it is prepared.
        """
        if self._closed is not None:
            await asyncio.wait([self._closed])
            return
        self._closed = asyncio.get_running_loop().create_future()
        try:
            await self._abort_open(timeout)
            with suppress(TimedOut):
                await self._flush(timeout)
        finally:
            self._is_closed = True
            close = partial(self._client.sync.close, 0)
            if self._client.in_process:
                close()
            else:
                await asyncio.shield(self._in_thread(_CLOSE, close))
            self._outcomes.take_done()
            while self._threads:
                await asyncio.wait(self._threads)
            self._closed.set_result(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # Inside

    async def _end(self, call: Callable[[], T]) -> T:
        """Make a call that ends a transaction, after what waits in threads to belong to it."""
        while self._lanes.topics and self._threads:
            await asyncio.wait([*self._threads])
        try:
            return await self._in_thread(_TRANSACTIONS, call)
        finally:
            self._outcomes.take_done()

    async def _abort_open(self, timeout: float | None) -> None:
        """End a transaction that nobody has ended, before the client is closed."""
        transactions = self._client.transactions
        if transactions is not None:
            timeout_ms = milliseconds(timeout, "close")
            await self._in_thread(_TRANSACTIONS, partial(transactions.close, timeout_ms))

    async def _flush(self, timeout: float | None) -> None:
        self._push()
        self._flush_count += 1
        try:
            await self._outcomes.until_settled(timeout)
        finally:
            self._flush_count -= 1

    def _lane_moved(self) -> None:
        """Records have got through that had to wait."""
        if self._flush_count:
            self._push()
        else:
            self._push_later()

    def _push_later(self) -> None:
        """See that what was sent goes, as linger.ms says."""
        delay_ms = self._client.push_delay_ms
        if self._will_push or delay_ms is None:
            return
        self._will_push = True
        loop = asyncio.get_running_loop()
        if delay_ms:
            loop.call_later(delay_ms / 1000, self._push)
        else:
            loop.call_soon(self._push)

    def _push(self) -> None:
        """Send what waits for company."""
        self._will_push = False
        if self._is_closed:
            return
        self._outcomes.expect()  # in process most is done in this call
        try:
            self._client.push()
        finally:
            self._outcomes.take_done()
        if self._client.in_process:
            self._drain()

    def _drain(self) -> None:
        """In process: have a thread drive what waits for the disk, or for another attempt."""
        if self._client.has_unsettled and not self._is_draining and not self._is_closed:
            self._is_draining = True
            drained = self._in_thread(_DRAIN, self._client.sync.flush)
            drained.add_done_callback(self._is_drained)

    def _is_drained(self, drained: asyncio.Future[None]) -> None:
        self._is_draining = False
        if drained.exception() is None:
            self._drain()  # there may be more since

    def _in_thread(self, name: str, call: Callable[[], T]) -> asyncio.Future[T]:
        future = in_thread(self._client.scheduler, name, call)
        self._threads.add(future)
        future.add_done_callback(self._threads.discard)
        return future

    def _check_open(self) -> None:
        if self._closed is not None:
            raise ClosedError("the producer is closed")


class Transaction:
    """One transaction of a producer, from entering the `async with` to leaving it."""

    __slots__ = ("_is_open", "_producer")

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._is_open = False

    def send(
        self, topic: str, value: Any = None, key: Any = None, **more: Any
    ) -> asyncio.Future[RecordMetadata]:
        """Hand over one record, as `Producer.send` does: it counts once the block has ended.

        Nobody needs to await the future: the commit waits for it, and fails if it does.
        """
        self._check_open("send")
        return _seen(self._producer.send(topic, value, key, **more))

    def send_batch(
        self, topic: str, values: Sequence[Any], **more: Any
    ) -> asyncio.Future[list[BatchMetadata]]:
        """Hand over many records, as `Producer.send_batch` does."""
        self._check_open("send_batch")
        return _seen(self._producer.send_batch(topic, values, **more))

    async def send_offsets(self, consumer: Consumer, offsets: Any = None) -> None:
        """Commit what `consumer` has read, or `offsets`, for its group with the transaction.

        See `embedlog.Transaction.send_offsets`.
        """
        self._check_open("send_offsets")
        if offsets is None:
            offsets = await consumer.consumed_offsets()
        metadata = await consumer.group_metadata()
        await self._producer.send_offsets_to_transaction(offsets, metadata)

    async def __aenter__(self) -> Self:
        await self._producer.begin_transaction()
        self._is_open = True
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        raised: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._is_open = False
        if raised is not None:
            await self._abort(raised)
            return
        try:
            await self._producer.commit_transaction()
        except EmbedlogError as error:
            if error.remedy == "abort":
                await self._abort(error)
            raise

    async def _abort(self, why: BaseException) -> None:
        """Abort; what stands in the way of that must not hide `why` it is aborted."""
        try:
            await self._producer.abort_transaction()
        except EmbedlogError as error:
            why.add_note(f"and the transaction could not be aborted: {error}")

    def _check_open(self, call: str) -> None:
        if not self._is_open:
            raise IllegalState(
                f"{call}: the transaction has ended, or was not entered with `async with`"
            )


def _seen(future: asyncio.Future[Any]) -> asyncio.Future[Any]:
    """The future; asyncio need not warn that nobody asked for its error, as the commit has it."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future
