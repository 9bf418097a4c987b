"""`Producer`: sends records to topics, in process or over the network.

    with cluster.producer() as producer:
        where = producer.send("events", b"value", key=b"key").result()

In process everything happens on the caller's thread. Records wait in an open batch until it is
full, somebody asks (`flush`, `result`, `close`), or a millisecond (linger.ms, if more) is over and
anything of the cluster waits, be it a consumer's `poll` or a listener. Over the network linger.ms
is 5 and a thread sends, as in Kafka; with linger.ms=0 the caller's thread does. What else differs
in process says `producer_settings.complete`.
"""

from __future__ import annotations

from embedlog.client.bulk import Columns, make_batch
from embedlog.client.connect import connect
from embedlog.client.delivery import BatchFuture, DeliveryFuture
from embedlog.client.destinations import Destinations
from embedlog.client.driver import Driver
from embedlog.client.metadata import Metadata
from embedlog.client.producer_batch import ProducerBatch
from embedlog.client.producer_settings import complete
from embedlog.client.record_accumulator import (
    SMALL_OVERHEAD,
    SMALL_VALUE_MAX,
    RecordAccumulator,
    record_size,
    size_upper_bound,
)
from embedlog.client.sender import Sender
from embedlog.client.settings import PRODUCER, parse
from embedlog.errors import ClosedError, EmbedlogError, KafkaError, TimedOut, error_for
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from embedlog.client.connect import Target
    from embedlog.client.delivery import DeliveryCallback
    from embedlog.client.metadata import PartitionInfo
    from embedlog.client.producer_batch import Headers
    from embedlog.client.record_accumulator import PartitionQueue
    from embedlog.client.transaction_manager import TransactionManager

_THREAD_STOP_MS = 10_000
_TIMESTAMP_MAX = 2**63 - 1
_LEAST_USUAL_SIZE = 16_384


class Producer:
    """Sends records. Thread-safe: one producer may serve a whole program.

    `target` is a cluster of this process or "host:port"; settings are Kafka's keys, as keyword
    arguments (`linger_ms=5`) or in a dict (`{"linger.ms": 5}`).

    >>> with embedlog.open() as cluster, embedlog.Producer(cluster) as producer:
    ...     producer.send("events", b"value", key=b"key").result().offset
    0
    """

    def __init__(
        self, target: Target = None, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        given = parse(PRODUCER, config, settings)
        self._transport = connect(target, given)
        runtime = self._transport.runtime
        self._settings = complete(given, in_process=self._transport.in_process)
        self._clock = runtime.clock
        self._wall_ms = runtime.clock.wall_ms
        self._max_block_ms: int = self._settings["max.block.ms"]
        self._request_size_max: int = self._settings["max.request.size"]
        self._serialize_key = self._settings["key.serializer"]
        self._serialize_value = self._settings["value.serializer"]
        self._is_choosy = (
            self._serialize_value is not None
            or self._settings["partitioner.class"] is not None
            or min(self._request_size_max, self._settings["buffer.memory"]) < _LEAST_USUAL_SIZE
        )
        """Does even a small record without a key need a closer look?"""
        self._metadata = Metadata(self._transport, self._settings, create_topics=True)
        self._accumulator = RecordAccumulator(self._settings, self, runtime)
        self._sender = Sender(
            self._transport,
            self._metadata,
            self._accumulator,
            self._settings,
            transactions=self._transactions(),
        )
        linger_ms: int = self._settings["linger.ms"]
        threaded = not self._transport.in_process and linger_ms > 0
        self._is_eager = not self._transport.in_process and not threaded
        """Does every `send` make a pass, or only one that filled a batch?"""
        self._driver = Driver(
            self._transport,
            self._sender.run_once,
            threaded=threaded,
            name="embedlog-producer",
        )
        self._sender.arrived = self._driver.arrived
        self._destinations = Destinations(
            self._metadata, self._accumulator, self._driver, self._settings
        )
        self._topics = self._destinations.known
        self._accumulator.needs_attention = self._is_eager
        self._duty: _LingerDuty | None = None
        if self._transport.in_process:
            self._duty = _LingerDuty(self._driver, self._accumulator)
            runtime.scheduler.add(self._duty)
        self._is_closed = False

    def _transactions(self) -> TransactionManager | None:
        if not self._settings["enable.idempotence"]:
            return None
        from embedlog.client.transaction_manager import TransactionManager

        return TransactionManager(self._transport, self._settings)

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

        Without a serializer `value` and `key` are bytes or None. `headers` are (name, bytes or
        None) pairs. `on_delivery(metadata, error)` is called once, in a thread that drives this
        producer. A record that the cluster or a limit refuses fails its future and its callback.

        Raises:
            ClosedError: the producer is closed.
            TimedOut: buffer.memory stayed full for max.block.ms.
            TypeError: value or key is not bytes; ValueError: the timestamp is negative.
        """
        queues = self._topics.get(topic)
        # Any other record takes the long way round; this is the one that comes by millions.
        if (
            queues is None
            or type(value) is not bytes
            or self._is_choosy
            or key is not None
            or partition is not None
            or timestamp_ms is not None
            or headers is not None
            or len(value) > SMALL_VALUE_MAX
        ):
            return self._send_any(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        accumulator = self._accumulator
        queue = queues.sticky_queue
        if queue is None:
            queue = accumulator.sticky_queue(queues)
        size = len(value) + SMALL_OVERHEAD
        stamp = self._wall_ms()
        future = accumulator.append(queue, size, stamp, None, value, None, on_delivery, True)
        if future is None:
            future = self._append_when_free(
                queue, size, stamp, None, value, None, on_delivery, True
            )
        if accumulator.needs_attention:
            self._attend()
        return future

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
        if self._serialize_value is not None:
            value = self._serialize_value(value)
        if self._serialize_key is not None:
            key = self._serialize_key(key)
        if type(value) is not bytes and value is not None:
            value = _as_bytes(value, "value")
        if type(key) is not bytes and key is not None:
            key = _as_bytes(key, "key")
        if headers:
            headers = _checked_headers(headers)
        if timestamp_ms is None:
            timestamp_ms = self._wall_ms()
        elif not 0 <= timestamp_ms <= _TIMESTAMP_MAX:
            raise ValueError(f"timestamp_ms={timestamp_ms}: must be between 0 and 2^63 - 1")
        try:
            queue = self._destinations.queue(topic, partition, key, value)
            self._check_size(key, value, headers)
        except (KafkaError, TimedOut) as error:
            return self._failed(topic, partition, error, on_delivery)
        record = (
            record_size(key, value, headers),
            timestamp_ms,
            key,
            value,
            headers or None,
            on_delivery,
            self._destinations.is_sticky(partition, key),
        )
        future = self._accumulator.append(queue, *record)
        if future is None:
            future = self._append_when_free(queue, *record)
        if self._accumulator.needs_attention:
            self._attend()
        return future

    def _attend(self) -> None:
        """A batch was begun or closed: send it, or let the scheduler know that it waits."""
        accumulator = self._accumulator
        accumulator.needs_attention = self._is_eager
        if self._duty is None or accumulator.has_sendable:
            self._driver.run()
        elif not self._duty.is_armed:
            self._arm()

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
        partition. They become one record batch, or several when max.request.size asks for it.
        Records sent before come before them.

        Raises:
            ClosedError, TimedOut, TypeError: as `send`; ValueError: columns of unlike length.
        """
        if self._serialize_value is not None:
            values = list(map(self._serialize_value, values))
        if self._serialize_key is not None and keys is not None:
            keys = list(map(self._serialize_key, keys))
        if timestamps is None:
            timestamps = self._clock.wall_ms()
        columns = Columns(values, keys, timestamps, headers)
        batches: list[ProducerBatch] = []
        if len(values) == 0:
            return BatchFuture(batches)
        try:
            for queue, records in self._destinations.divide(topic, columns, partition):
                for piece in records.pieces(self._request_size_max):
                    batches.append(self._add_batch(queue, piece))
        except (KafkaError, TimedOut) as error:
            failed = ProducerBatch(topic, -1, self, created_ms=0, size_limit=0)
            failed.fail(error)
            failed.finish()
            batches.append(failed)
        self._driver.run()
        return BatchFuture(batches)

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait, at most `timeout` seconds, until all of it is settled.

        What failed tells its future and its callback, not this call.

        Raises:
            TimedOut: time is over; the rest is still on its way.
        """
        self._check_open()
        if not self._flush(timeout):
            count = sum([batch.record_count for batch in list(self._accumulator.incomplete)])
            raise TimedOut(f"{count} records had no outcome after {timeout} s; they are still sent")

    def close(self, timeout: float | None = None) -> None:
        """Send everything, wait for it at most `timeout` seconds, give back what is held.

        What is not settled by then is given up: its futures fail with ClosedError. Again is
        allowed. From a delivery callback it does not wait.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._destinations.close()
        try:
            if not self._driver.is_running_here:
                self._flush(timeout)
        finally:
            gone = ClosedError("the producer was closed before the record had an outcome")
            self._driver.exclusively(lambda: self._sender.abort_all(gone))
            self._driver.close(_THREAD_STOP_MS)
            if self._duty is not None:
                self._transport.runtime.scheduler.remove(self._duty)
            self._transport.close()

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of `topic`, as the cluster last described them.

        Raises:
            TimedOut: the cluster did not tell within max.block.ms; KafkaError: it refused.
        """
        return list(self._destinations.topic(topic).info.partitions)

    def metrics(self) -> dict[str, int]:
        """A few counters, under Kafka's names."""
        pool = self._accumulator.pool
        return {
            "record-send-total": self._sender.sent_count,
            "record-error-total": self._sender.failed_count,
            "requests-in-flight": self._sender.request_count,
            "buffer-available-bytes": pool.available,
            "buffer-total-bytes": pool.total,
        }

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # For the futures

    def run(self) -> None:
        """Take what has arrived; never waits."""
        self._driver.run()

    def wait_for(self, batch: ProducerBatch, timeout: float | None) -> None:
        """Send `batch` now if it still waits, and return when it is done; else raise TimedOut."""
        batch.is_wanted = True
        if self._duty is not None:
            self._driver.run()
            if batch.is_done:
                return
        timeout_ms = None if timeout is None else int(timeout * 1000)
        if not self._driver.wait(lambda: batch.is_done, timeout_ms):
            raise TimedOut(
                f"{batch} has no outcome after {timeout} s; it is given up after "
                f"delivery.timeout.ms={self._settings['delivery.timeout.ms']}"
            )

    # Inside

    def _flush(self, timeout: float | None) -> bool:
        accumulator = self._accumulator
        accumulator.close_all()
        with accumulator.lock:
            waited = list(accumulator.incomplete)
        return self._driver.wait(
            lambda: all(batch.is_done for batch in waited), _milliseconds(timeout)
        )

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the producer is closed")

    def _arm(self) -> None:
        """An open batch waits: whoever drives the scheduler shall send it when it is time."""
        assert self._duty is not None, self
        self._duty.is_armed = True
        self._transport.runtime.scheduler.notify()

    def _check_size(self, key: bytes | None, value: bytes | None, headers: Headers | None) -> None:
        size = size_upper_bound(key, value, headers)
        for name in ("max.request.size", "buffer.memory"):
            if size > self._settings[name]:
                raise error_for(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"a record of up to {size} bytes is larger than {name}={self._settings[name]}",
                )

    def _failed(
        self,
        topic: str,
        partition: int | None,
        error: EmbedlogError,
        callback: DeliveryCallback | None,
    ) -> DeliveryFuture:
        batch = ProducerBatch(
            topic, -1 if partition is None else partition, self, created_ms=0, size_limit=0
        )
        batch.fail(error)
        batch.finish()
        if callback is not None:
            callback(batch.metadata(0), error)
        return DeliveryFuture(batch, 0)

    def _append_when_free(self, queue: PartitionQueue, *record: Any) -> DeliveryFuture:
        """Append once buffer.memory has room again; everything that waits is sent meanwhile."""
        appended: list[DeliveryFuture] = []

        def is_appended() -> bool:
            future = self._accumulator.append(queue, *record)
            if future is not None:
                appended.append(future)
            return future is not None

        self._wait_for_memory(is_appended)
        return appended[0]

    def _wait_for_memory(self, is_done: Any) -> None:
        self._accumulator.close_all()
        if not self._driver.wait(is_done, self._max_block_ms):
            pool = self._accumulator.pool
            raise TimedOut(
                f"buffer.memory={pool.total} has {pool.available} bytes free after max.block.ms="
                f"{self._max_block_ms}: records come faster than the brokers take them"
            )

    def _add_batch(self, queue: PartitionQueue, columns: Columns) -> ProducerBatch:
        if len(columns.values) == 1:
            self._check_size(
                None if columns.keys is None else columns.keys[0],
                columns.values[0],
                None if columns.headers is None else columns.headers[0],
            )
        batch = make_batch(
            columns,
            queue.topic.name,
            queue.partition,
            self,
            self._clock.monotonic_ms(),
            is_built=self._sender.has_short_way,
        )
        accumulator = self._accumulator
        if not accumulator.add_batch(queue, batch):
            self._wait_for_memory(lambda: accumulator.add_batch(queue, batch))
        return batch


class _LingerDuty:
    """Sends open batches that have waited long enough, for whoever drives the scheduler."""

    __slots__ = ("_accumulator", "_driver", "is_armed")

    def __init__(self, driver: Driver, accumulator: RecordAccumulator) -> None:
        self._driver = driver
        self._accumulator = accumulator
        self.is_armed = False
        """Does the scheduler know that a batch waits?"""

    def run_once(self, now_ms: int) -> int | None:
        self.is_armed = True
        delay = self._driver.run_if_free()
        # After the pass: a record appended meanwhile sees True and counts on the delay, or False.
        self.is_armed = bool(self._accumulator.active)
        return delay


def _as_bytes(value: Any, what: str) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"{what} is {type(value).__name__}, not bytes: give a {what}.serializer")


def _checked_headers(headers: Headers) -> Headers:
    """The headers as a tuple of (str, bytes or None)."""
    checked = []
    for name, value in headers:
        if not isinstance(name, str):
            raise TypeError(f"header {name!r}: its name is {type(name).__name__}, not str")
        checked.append((name, None if value is None else _as_bytes(value, f"header {name!r}")))
    return tuple(checked)


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1000)
