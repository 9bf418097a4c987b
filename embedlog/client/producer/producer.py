"""`Producer`: sends records to topics, in process or over the network.

    with cluster.producer() as producer:
        where = producer.send("events", b"value", key=b"key").result()

When a record that `send` accepted is in the log:

    result(), flush(), close()     when they return
    a batch of it is full          with the call that filled it
    nobody asks, in process        within linger.ms, or 1 ms, where a thread waits for records or a
                                   listener serves; else within some 20 ms
    nobody asks, over TCP          after linger.ms (5 by default), as in Kafka
    the cluster is closed first    when it is closed, within 10 s
    the program ends without any   when it ends, within 10 s; a ResourceWarning says so

In process, and over TCP with linger.ms=0, the calls do the work themselves; what they leave behind
is seen to by a thread, "embedlog-producer", that exists while there is any. Callbacks run in the
one or the other, and never in a listener's thread. Over TCP with another linger.ms the thread does
all of it. What else differs in process says `producer_settings.complete`.
"""

from __future__ import annotations

from embedlog.client.arguments import partition_number, timeout_s, topic_name
from embedlog.client.connect import connect
from embedlog.client.driver import Driver
from embedlog.client.metadata import Metadata
from embedlog.client.parse_settings import close_converters, converters, parse
from embedlog.client.producer.accumulator import RecordAccumulator
from embedlog.client.producer.columns import own_columns
from embedlog.client.producer.delivery import BatchFuture, DeliveryFuture
from embedlog.client.producer.destinations import Destinations
from embedlog.client.producer.direct_append import DirectAppend
from embedlog.client.producer.in_process_sender import InProcessSender
from embedlog.client.producer.metrics import described
from embedlog.client.producer.sends import (
    ColumnSends,
    MemoryWait,
    RecordSends,
    SendParts,
)
from embedlog.client.producer.settings import (
    PRODUCER,
    SenderSettings,
    complete,
    interceptors,
)
from embedlog.client.producer.sizes import SMALL_OVERHEAD, SMALL_VALUE_MAX, RecordLimits
from embedlog.client.producer.unattended import Endings, UnattendedPasses
from embedlog.common import deque
from embedlog.errors import ClosedError, TimedOut
from embedlog.transport import InProcessTransport
from embedlog.user_warnings import warn_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from embedlog.client.connect import Target
    from embedlog.client.metadata import PartitionInfo
    from embedlog.client.producer.batches import Headers, ProducerBatch
    from embedlog.client.producer.delivery import DeliveryCallback, RecordMetadata
    from embedlog.client.producer.records import Given
    from embedlog.client.producer.request_sender import RequestSender
    from embedlog.client.producer.transactions import TransactionManager
    from embedlog.client.settings import Settings
    from embedlog.transport import Transport

_THREAD_STOP_MS = 10_000
_LEAST_USUAL_SIZE = 16_384


class Producer:
    """Sends records. Thread-safe: one producer may serve a whole program.

    `target` is a cluster of this process or "host:port"; settings are Kafka's keys, as keyword
    arguments (`linger_ms=5`) or in a dict (`{"linger.ms": 5}`).

    >>> with embedlog.open() as cluster, embedlog.Producer(cluster) as producer:
    ...     producer.send("events", b"value", key=b"key").result().offset
    0
    """

    _is_attended = False
    """Does an event loop see that what was sent goes? Then no thread has to, in process; over the
    network one sends also with linger.ms=0."""

    def __init__(
        self, target: Target = None, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        given = parse(PRODUCER, config, settings)
        self._transport = connect(self, target, given)
        try:
            self._build(complete(given, in_process=self._transport.in_process))
        except BaseException:
            self._transport.close()
            raise

    def _build(self, settings: Settings) -> None:
        self._settings = settings
        transport = self._transport
        runtime = transport.runtime
        self._clock = runtime.clock
        self._wall_source = runtime.clock.wall_source()
        self._serialize_key, self._serialize_value = converters(settings, "serializer")
        self._interceptors = interceptors(settings)
        self._limits = RecordLimits(settings)
        self._metadata = Metadata(transport, settings, create_topics=True)
        self._accumulator = RecordAccumulator(
            settings, self, runtime, is_exact=not transport.in_process
        )
        numbers = _numbers(transport, settings)
        self._sender = sender = _sender(
            transport, self._metadata, self._accumulator, settings, numbers
        )
        threaded = not transport.in_process and (settings["linger.ms"] > 0 or self._is_attended)
        self._is_threaded = threaded
        self._is_eager = not transport.in_process and not threaded
        """Does every `send` make a pass, or only one that filled a batch?"""
        self._driver = Driver(transport, sender.run_once, sender.recover, threaded=threaded)
        sender.on_arrival(self._driver.arrived)
        self._destinations = Destinations(
            self._metadata, self._accumulator, self._driver, settings, transport
        )
        self._topics = self._destinations.known
        self._quick_topics = {} if self._is_choosy else self._topics
        """Where a small record needs no closer look."""
        self._lock = self._accumulator.lock
        self._accumulator.needs_attention = self._is_eager
        self._memory = MemoryWait(self._accumulator, self._driver, settings, self._clock)
        parts = SendParts(
            self,
            destinations=self._destinations,
            accumulator=self._accumulator,
            memory=self._memory,
            limits=self._limits,
            serializers=(self._serialize_key, self._serialize_value),
            clock=self._clock,
            interceptors=self._interceptors,
            failures=self._sender.outcomes.failures,
        )
        self._records = RecordSends(parts)
        self._columns = ColumnSends(parts, is_built=sender.encodes_at_once)
        self._direct = self._direct_append(settings)
        self._flush_ns = 0
        self._unattended: UnattendedPasses | None = None
        if not threaded and not self._is_attended:
            self._unattended = UnattendedPasses(
                self._driver, self._accumulator, transport, linger_ms=max(settings["linger.ms"], 1)
            )
        self._endings = Endings(self, self._accumulator, runtime.scheduler)
        transport.before_end = self._endings.cluster_ends
        self._is_closed = False

    def _direct_append(self, settings: Settings) -> DirectAppend | None:
        """For `append`; None when each of its records has to be sent."""
        transport = self._transport
        chosen = SenderSettings(settings, in_process=transport.in_process)
        is_plain = (
            chosen.acks
            and not chosen.codec
            and not settings["enable.idempotence"]
            and not settings["partitioner.ignore.keys"]
        )
        if not is_plain or self._is_choosy or not isinstance(transport, InProcessTransport):
            return None
        return DirectAppend(
            transport,
            self._accumulator,
            self._topics,
            self._sender.outcomes,
            chosen,
            self._limits.surely_fits,
        )

    @property
    def _is_choosy(self) -> bool:
        """Does even a small record need a closer look?"""
        return (
            self._is_eager
            or self._serialize_value is not None
            or self._serialize_key is not None
            or self._settings["partitioner.class"] is not None
            or self._interceptors is not None
            or self._limits.size_max < _LEAST_USUAL_SIZE
        )

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
        on_delivery: DeliveryCallback | None = None,
    ) -> DeliveryFuture:
        """Hand over one record; returns before it is written.

        Without a serializer `value` and `key` are bytes or None; None is given to no serializer.
        `headers` are (name, bytes or None) pairs. What is refused, also after max.block.ms, fails
        the future, and `on_delivery(metadata, error)`, which is called once by who drives.

        Raises:
            ClosedError; SerializationError; TypeError, ValueError: an argument is unfit.
        """
        queues = self._quick_topics.get(topic) if type(topic) is str else None
        if (queues is None or type(value) is not bytes or partition is not None) or (
            (timestamp_ms is not None or headers is not None)
            or (on_delivery is not None and not callable(on_delivery))
        ):
            return self._send_any(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        stamp = self._wall_source.time_ns() // 1_000_000
        size, queue = len(value), queues.sticky_queue
        if key is not None:
            queue = queues.by_key.get(key) if type(key) is bytes else None
            size += 0 if queue is None else len(key)
        if queue is not None and size <= SMALL_VALUE_MAX:
            size += SMALL_OVERHEAD
            with self._lock:
                batch = queue.open
                if batch is not None:
                    keys, filled = batch.keys, batch.size + size
                    if filled < batch.small_size_limit and (key is None or keys is not None):
                        batch.size = filled
                        future = DeliveryFuture()
                        future.batch, future.index = batch, len(batch.values)
                        try:
                            batch.values.append(value)
                            batch.timestamps.append(stamp)
                            if keys is not None:
                                keys.append(key)
                            if on_delivery is not None:
                                batch.add_callback(on_delivery)
                        except BaseException:
                            batch.trim(future.index)
                            raise
                        return future
            appended = self._accumulator.append(
                queue, size, stamp, key, value, None, on_delivery, key is None
            )
            if appended is not None:
                if self._accumulator.needs_attention:
                    self._attend()
                return appended
        return self._send_any(topic, value, key, None, stamp, None, on_delivery)

    def append(
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
        """Append one record, and return where it is: as durable as its topic's level says.

        The arguments are those of `send`, and so is the place in the order: it comes behind all
        that this thread has sent. For an embedded queue this is the direct way: in process it is
        half the work of `send(...).result()`, which it is elsewhere. `timeout` is in seconds.

        >>> with embedlog.open() as cluster, embedlog.Producer(cluster) as producer:
        ...     producer.append("events", b"value", key=b"key").offset
        0

        Raises:
            KafkaError: the record was not written, or not kept, and why.
            TimedOut: time is over; the record is still on its way.
            ClosedError, SerializationError, TypeError, ValueError: as `send`.
        """
        if (
            self._direct is not None
            and type(value) is bytes
            and (key is None or type(key) is bytes)
            and partition is None
            and headers is None
            and timestamp_ms is None
        ):
            timeout_ms = None if timeout is None else _milliseconds(timeout, "append")
            found = self._direct.append(topic, value, key, timeout_ms)
            if found is not None:
                return found
        sent = self.send(
            topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )
        return sent.result(timeout)

    def _send_any(  # noqa: PLR0917  the arguments of send, passed on
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
        on_delivery: DeliveryCallback | None,
    ) -> DeliveryFuture:
        self._check_open()
        queue = self._records.queue
        return self._attended(
            queue(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        )

    def _attended(self, future: DeliveryFuture) -> DeliveryFuture:
        """The future of a record that was just appended, which may have begun or filled a batch."""
        if self._accumulator.needs_attention:
            self._attend()
        return future

    def _attend(self) -> None:
        """A batch was begun or closed: send it, or see that it is sent when its time has come."""
        accumulator = self._accumulator
        accumulator.needs_attention = self._is_eager
        unattended = self._unattended
        if self._is_eager or accumulator.has_sendable or self._is_threaded:
            self._run()
        elif unattended is not None and (unattended.is_relied_on or not unattended.is_armed):
            unattended.arm()

    def _run(self) -> None:
        """Do what can be done now, and leave what remains to nobody's care but one's own."""
        self._driver.run()
        unattended = self._unattended
        if unattended is not None and self._accumulator.incomplete and not unattended.is_armed:
            unattended.arm()

    def send_batch(
        self,
        topic: str,
        values: Sequence[Any],
        *,
        keys: Sequence[Any] | None = None,
        timestamps: Sequence[int] | int | None = None,
        headers: Sequence[Headers] | None = None,
        partition: int | None = None,
    ) -> BatchFuture:
        """Send many records at once: the fast way, 60-100 ns for a record of 100 bytes.

        All go to `partition`; without it, to the partition of each key, or without keys to one
        partition. They become one record batch, or several when max.request.size or buffer.memory
        asks for it. Records sent before come before them.

        The sequences are the caller's again when this returns.

        Raises:
            ClosedError, SerializationError, TypeError: as `send`; ValueError: as there, or columns
                of unlike length.
        """
        given = own_columns(values, keys, timestamps, headers, wall_ms=self._clock.wall_ms)
        return self._send_columns(topic, given, partition)

    def _send_columns(self, topic: str, given: Given, partition: int | None) -> BatchFuture:
        """As `send_batch`, of what `own_columns` made of its arguments."""
        self._check_open()
        topic_name(topic, "send_batch")
        if type(partition) is not int and partition is not None:
            partition = partition_number(partition, "send_batch")
        batches = self._columns.queue(topic, given, partition)
        if batches:
            self._run()
        return BatchFuture(batches)

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait, at most `timeout` seconds, until all of it is settled.

        What failed tells its future and its callback, not this call.

        Raises:
            TimedOut: time is over; the rest is still on its way.
        """
        self._check_open()
        timeout_ms = _milliseconds(timeout, "flush")
        began_us = self._clock.monotonic_us()
        try:
            is_done = self._flush(timeout_ms)
        finally:
            self._flush_ns += (self._clock.monotonic_us() - began_us) * 1000
        if not is_done:
            count = self._accumulator.record_count()
            raise TimedOut(f"{count} records had no outcome after {timeout} s; they are still sent")

    def close(self, timeout: float | None = None) -> None:
        """Send everything, wait for it at most `timeout` seconds, give back what is held.

        What is not settled by then is given up: its futures fail with ClosedError. Again is
        allowed. From a delivery callback it does not wait. Of records that failed and nobody asked
        for, a warning tells; leaving a `with` raises.
        """
        self._close(_milliseconds(timeout, "close"))
        error = self._sender.outcomes.failures.take_unseen()
        if error is not None:
            warn_user(error.__notes__[-1], RuntimeWarning)

    def _close(self, timeout_ms: int | None) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._endings.forget()
        self._destinations.close()
        self._accumulator.close()
        try:
            if not self._driver.is_running_here:
                self._flush(timeout_ms)
        finally:
            gone = ClosedError("the producer was closed before the record had an outcome")
            self._driver.exclusively(lambda: self._sender.abort_all(gone))
            self._driver.close(_THREAD_STOP_MS)
            if self._unattended is not None:
                self._unattended.close()
            self._transport.close()
            if self._interceptors is not None:
                self._interceptors.close()
            close_converters(self._serialize_key, self._serialize_value)

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of `topic`, as the cluster last described them.

        Raises:
            TimedOut: the cluster did not tell within max.block.ms; KafkaError: it refused.
        """
        return list(self._destinations.topic(topic).info.partitions)

    def __repr__(self) -> str:
        # Without a lock: a debugger may ask at any moment.
        count = len(self._accumulator.incomplete)
        state = "closed" if self._is_closed else f"{count} batches on their way"
        return f"<Producer {self._settings['client.id']!r}, {state}>"

    def metrics(self) -> dict[str, float]:
        """What was counted and measured so far, under Kafka's names."""
        age_ms = self._metadata.age_ms(self._clock.monotonic_ms())
        return {
            **described(
                self._accumulator,
                self._sender.metrics,
                self._sender.outcomes,
                self._sender.request_count,
            ),
            "buffer-exhausted-total": self._memory.exhausted_count,
            "bufferpool-wait-time-ns-total": self._memory.waited_ns,
            "flush-time-ns-total": self._flush_ns,
            "metadata-age": age_ms / 1000,
            "metadata-wait-time-ns-total": self._destinations.waited_ns,
            "record-error-total": self._sender.outcomes.failed_count
            + self._columns.refused_count
            + self._records.refused_count,
        }

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: object, *_exception: object) -> None:
        """Close. When nothing was raised inside, raise what records failed with unseen."""
        try:
            self._close(None)
        finally:
            error = self._sender.outcomes.failures.take_unseen()
        if error is not None and kind is None:
            raise error

    # For the futures

    def run(self) -> None:
        """Take what has arrived; never waits."""
        self._driver.run()

    def wait_for(self, batch: ProducerBatch, timeout: float | None) -> None:
        """Send `batch` now if it still waits, and return when it is done; else raise TimedOut."""
        batch.is_wanted = True
        if self._unattended is not None:
            self._unattended.is_relied_on = False
        if self._transport.in_process:
            self._driver.run()
            if batch.is_done:
                return

        def is_done() -> bool:
            return batch.is_done

        if not self._driver.wait(is_done, _milliseconds(timeout, "result"), is_news=is_done):
            raise TimedOut(
                f"{batch} has no outcome after {timeout} s; it is given up after "
                f"delivery.timeout.ms={self._settings['delivery.timeout.ms']}"
            )

    # Inside

    def _flush(self, timeout_ms: int | None) -> bool:
        accumulator = self._accumulator
        accumulator.close_all()
        with accumulator.lock:
            waited = deque(accumulator.incomplete)
        newest = [waited[-1] if waited else None]

        def is_settled() -> bool:
            # Those that are done, in about this order, are forgotten.
            while waited and waited[0].is_done:
                waited.popleft()
            while waited and waited[-1].is_done:
                waited.pop()
            newest[0] = waited[-1] if waited else None
            return not waited

        def is_news() -> bool:
            batch = newest[0]
            return batch is None or batch.is_done

        return self._driver.wait(is_settled, timeout_ms, is_news=is_news)

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the producer is closed")


def _numbers(transport: Transport, settings: Settings) -> TransactionManager | None:
    """What numbers the batches of an idempotent producer."""
    if not settings["enable.idempotence"]:
        return None
    from embedlog.client.producer.transactions import TransactionManager

    return TransactionManager(transport, settings)


def _sender(
    transport: Transport,
    metadata: Metadata,
    accumulator: RecordAccumulator,
    settings: Settings,
    numbers: TransactionManager | None,
) -> InProcessSender | RequestSender:
    """The sender for what is behind the transport."""
    if isinstance(transport, InProcessTransport) and transport.appends:
        return InProcessSender(transport, metadata, accumulator, settings, transactions=numbers)
    from embedlog.client.producer.request_sender import RequestSender

    return RequestSender(transport, metadata, accumulator, settings, transactions=numbers)


def _milliseconds(seconds: float | None, call: str) -> int | None:
    checked = timeout_s(seconds, call)
    return None if checked is None else int(checked * 1000)
