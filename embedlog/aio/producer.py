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

    from embedlog.aio.consumer import Consumer
    from embedlog.client.connect import Target
    from embedlog.client.consumer.group.group_offsets import ConsumerGroupMetadata, GivenOffsets
    from embedlog.client.metadata import PartitionInfo
    from embedlog.client.producer.batch import BatchMetadata, RecordMetadata
    from embedlog.client.producer.sizes import Headers
    from embedlog.client.producer.transactions.prepared import PreparedTransaction

    T = TypeVar("T")

_DRAIN = "embedlog-aio-drain"
_CLOSE = "embedlog-aio-close"
_LOOK_UP = "embedlog-aio-metadata"
_TRANSACTIONS = "embedlog-aio-transactions"


class Producer:
    """Sends records. Many tasks may use one producer.

    It has the settings and calls of `embedlog.Producer`. `send` and `send_batch` return a future
    at once: await it, or gather many. Without linger.ms, all records of one turn of the event loop
    are sent together at the end of the turn.

    Serializers and the `on_send` of interceptors run in the event loop's thread. If a record must
    wait for metadata or for room in buffer.memory, they run in the thread that waits.
    `on_acknowledgement` runs in the thread that sends: in process the event loop's thread, over a
    network the client's own thread.

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
        """The futures of calls in temporary threads."""
        self._will_push = False
        self._flush_count = 0
        self._is_draining = False
        self._closed: asyncio.Future[None] | None = None
        """Completes with `close`; None until `close` is called."""
        self._is_closed = False
        """True once the client is closed and must not be used."""
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
        """Send one record. The future completes when the record is written, or fails with an error.

        Records of a topic are written in the order of the calls. If you do not await the futures,
        call `flush` now and then: nothing else makes you wait for slow brokers. Cancelling the
        future does not take the record back.

        Raises:
            ClosedError, SerializationError, TypeError, ValueError: as in `embedlog.Producer.send`.
                If the record must wait, its future fails with the error instead.
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
        """Send one record and wait at most `timeout` seconds until it is written.

        Raises:
            TimedOut: there was no outcome in time; the record may still be written.
            Exception: an error of `send`, or of the future that it returns.
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
        """Send many records in one call, which is faster than many calls of `send`.

        Otherwise it is like `send`.
        """
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
        """Send all records now and wait at most `timeout` seconds for their outcomes.

        A failed record fails its own future, not this call.

        Raises:
            TimedOut: some records had no outcome in time; they may still be written.
        """
        self._check_open()
        await self._flush(timeout)

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the partitions of `topic` from the last metadata; request an unknown topic's.

        Raises:
            TimedOut: the cluster did not answer within max.block.ms; KafkaError: it refused.
        """
        self._check_open()
        look_up = partial(self._client.sync.partitions_for, topic)
        if not self._client.lacks(topic):
            return look_up()
        return await self._in_thread(_LOOK_UP, look_up)

    # Transactions

    async def init_transactions(self, *, keep_prepared: bool = False) -> None:
        """Get this producer's epoch. Call it once, before the first transaction.

        `embedlog.Producer` describes the errors of all transactional calls.
        """
        init = partial(self._client.sync.init_transactions, keep_prepared=keep_prepared)
        await self._in_thread(_TRANSACTIONS, init)

    def transaction(self) -> Transaction:
        """Return a transaction for `async with`: committed at the end, aborted on an exception.

        async with producer.transaction() as t:
            t.send("out", b"value")
            await t.send_offsets(consumer)
        """
        self._client.sync.transaction()  # raises if transactions are not possible
        return Transaction(self)

    async def begin_transaction(self) -> None:
        """Begin a transaction; records that are sent later belong to it."""
        self._client.sync.begin_transaction()

    async def send_offsets_to_transaction(
        self, offsets: GivenOffsets, group_metadata: ConsumerGroupMetadata
    ) -> None:
        """Commit a group's offsets as part of the transaction."""
        send = partial(self._client.sync.send_offsets_to_transaction, offsets, group_metadata)
        await self._in_thread(_TRANSACTIONS, send)

    async def commit_transaction(self) -> None:
        """Send and await all records, then commit. If this call was cancelled, call it again."""
        await self._end(self._client.sync.commit_transaction)

    async def abort_transaction(self) -> None:
        """Abort the transaction. If a record was not written, its future fails."""
        await self._end(self._client.sync.abort_transaction)

    async def prepare_transaction(self) -> PreparedTransaction:
        """Write all records and accept no more: the first phase of a two-phase commit."""
        return await self._end(self._client.sync.prepare_transaction)

    async def complete_transaction(self, prepared: PreparedTransaction) -> None:
        """Commit the open prepared transaction if it equals `prepared`, else abort it."""
        await self._end(partial(self._client.sync.complete_transaction, prepared))

    def metrics(self) -> dict[str, float]:
        """Return the present metrics under Kafka's names."""
        return self._client.sync.metrics()

    # Closing

    async def close(self, timeout: float | None = None) -> None:
        """Send all records, wait at most `timeout` seconds for them, and free the resources.

        Futures without an outcome after this time fail with ClosedError. A cancelled `close` stops
        waiting. A second `close` waits for the first. An open transaction is aborted unless it is
        prepared.
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

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    # Inside

    async def _end(self, call: Callable[[], T]) -> T:
        """Wait until no record waits in a lane, then make a call that ends the transaction."""
        while self._lanes.topics and self._threads:
            await asyncio.wait([*self._threads])
        try:
            return await self._in_thread(_TRANSACTIONS, call)
        finally:
            self._outcomes.take_done()

    async def _abort_open(self, timeout: float | None) -> None:
        """Abort the open transaction unless it is prepared, before the client is closed."""
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
        """Push, at once or after linger.ms, because records of a lane have got into batches."""
        if self._flush_count:
            self._push()
        else:
            self._push_later()

    def _push_later(self) -> None:
        """Schedule a push after linger.ms."""
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
        """Send all batches now, even if linger.ms is not over."""
        self._will_push = False
        if self._is_closed:
            return
        self._outcomes.expect()  # in process most batches complete in this call
        try:
            self._client.push()
        finally:
            self._outcomes.take_done()
        if self._client.in_process:
            self._drain()

    def _drain(self) -> None:
        """In process, start a thread to complete the batches that wait for the disk or a retry."""
        if self._client.has_unsettled and not self._is_draining and not self._is_closed:
            self._is_draining = True
            drained = self._in_thread(_DRAIN, self._client.sync.flush)
            drained.add_done_callback(self._is_drained)

    def _is_drained(self, drained: asyncio.Future[None]) -> None:
        self._is_draining = False
        if drained.exception() is None:
            self._drain()  # more batches may have begun to wait meanwhile

    def _in_thread(self, name: str, call: Callable[[], T]) -> asyncio.Future[T]:
        future = in_thread(self._client.scheduler, name, call)
        self._threads.add(future)
        future.add_done_callback(self._threads.discard)
        return future

    def _check_open(self) -> None:
        if self._closed is not None:
            raise ClosedError("the producer is closed")


class Transaction:
    """One transaction of a producer: the body of an `async with`."""

    __slots__ = ("_is_open", "_producer")

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._is_open = False

    def send(
        self, topic: str, value: Any = None, key: Any = None, **more: Any
    ) -> asyncio.Future[RecordMetadata]:
        """Send one record like `Producer.send`; the end of the block commits it.

        You need not await the future: the commit waits for it, and fails if the record fails.
        """
        self._check_open("send")
        return _seen(self._producer.send(topic, value, key, **more))

    def send_batch(
        self, topic: str, values: Sequence[Any], **more: Any
    ) -> asyncio.Future[list[BatchMetadata]]:
        """Send many records like `Producer.send_batch`."""
        self._check_open("send_batch")
        return _seen(self._producer.send_batch(topic, values, **more))

    async def send_offsets(self, consumer: Consumer, offsets: Any = None) -> None:
        """Commit offsets for the group of `consumer` as part of the transaction.

        The offsets are `offsets`, or by default the consumer's positions. See
        `embedlog.Transaction.send_offsets`.
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

    async def __aexit__(self, _kind: object, raised: BaseException | None, _trace: object) -> None:
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
        """Abort the transaction. If the abort fails, its error becomes a note of `why`."""
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
    """Keep asyncio from warning that nobody saw the future's error: the commit raises it."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future
