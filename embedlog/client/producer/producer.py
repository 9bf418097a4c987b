"""`Producer`: sends records to topics, in process or over the network.

    with cluster.producer() as producer:
        where = producer.send("events", b"value", key=b"key").result()

A record that `send` accepted is in the log

    result(), flush(), close()     when the call returns
    a batch is full                when the call that filled it returns
    no such call, in process       within linger.ms, or 1 ms, if a thread waits for records or a
                                   listener serves; else within some 20 ms
    no such call, over TCP         after linger.ms (5 by default), as in Kafka
    the cluster is closed first    when it is closed, within 10 s
    the program ends without any   when it ends, within 10 s; a ResourceWarning says so

In process, and over TCP with linger.ms=0, the calls do the work themselves. A thread,
"embedlog-producer", finishes the work that they leave, and exists only while there is any.
Callbacks run in those calls or in that thread, never in a listener's thread. Over TCP with another
linger.ms the thread does all the work. `settings.complete` describes the other differences in
process.
"""

from __future__ import annotations

from _thread import get_ident
from _weakref import ref
from sys import is_finalizing

from embedlog.client.connect import connect
from embedlog.client.parse_settings import close_converters, parse
from embedlog.client.producer.futures import DeliveryFuture
from embedlog.client.producer.in_process_sender import DirectAppend
from embedlog.client.producer.parts import ProducerParts
from embedlog.client.producer.passes import milliseconds
from embedlog.client.producer.records import own_columns
from embedlog.client.producer.sends import ColumnSends, RecordSends
from embedlog.client.producer.settings import SenderSettings, complete
from embedlog.client.producer.sizes import SMALL_OVERHEAD, SMALL_VALUE_MAX
from embedlog.client.producer.transactional import Transactional
from embedlog.client.settings import PRODUCER
from embedlog.client.user_code import attempt
from embedlog.errors import ClosedError, EmbedlogError, TimedOut, again
from embedlog.logger import Logger
from embedlog.runtime.at_exit import PRODUCERS
from embedlog.runtime.outer_call import (
    INSIDE,
    PUT_OFF,
    closed_during,
    end_calls,
    is_gone,
    nested,
    outer,
    outer_close,
)
from embedlog.transport import InProcessTransport
from embedlog.user_warnings import warn_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from embedlog.client.connect import Target
    from embedlog.client.metadata import PartitionInfo
    from embedlog.client.producer.accumulator import RecordAccumulator
    from embedlog.client.producer.batch import DeliveryCallback, RecordMetadata
    from embedlog.client.producer.futures import BatchFuture
    from embedlog.client.producer.sizes import Headers
    from embedlog.client.producer.transaction import Transaction
    from embedlog.runtime import Scheduler

_LEAST_USUAL_SIZE = 16_384


class Producer(Transactional):
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
        self._open(target, config, settings, is_attended=False)

    def _open(
        self,
        target: Target,
        config: Mapping[str, Any] | None,
        settings: Mapping[str, Any],
        *,
        is_attended: bool,
    ) -> ProducerParts:
        given = parse(PRODUCER, config, settings)
        transport = connect(self, target, given)
        try:
            known = complete(
                given, in_process=transport.in_process, loses_answers=transport.loses_answers
            )
            parts = ProducerParts(transport, known, owner=self, is_attended=is_attended)
        except BaseException:
            transport.close()
            raise
        self._parts = parts
        self._passes = parts.passes
        self._accumulator = parts.accumulator
        self._enqueue = parts.accumulator.append
        self._join = parts.accumulator.join
        self._wall_source = parts.clock.wall_source()
        self._records = RecordSends(parts)
        self._columns = ColumnSends(parts)
        is_choosy = _is_choosy(parts)
        self._quick_topics = {} if is_choosy else parts.destinations.known
        """The topics whose small records need no check."""
        if parts.transactions is not None and not is_choosy:
            self._quick_topics = {}
            parts.transactions.on_open(_told_of_transactions(ref(self)))
        self._direct = None if is_choosy else _direct_append(parts)
        self._endings = Endings(self, parts.accumulator, transport.runtime.scheduler)
        transport.before_end = self._endings.cluster_ends
        self._is_closed = False
        return parts

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

        Without a serializer `value` and `key` are bytes or None; None is never serialized.
        `headers` are (name, bytes or None) pairs. A record that is refused, or gets no metadata or
        room in max.block.ms, fails its future. A pass calls `on_delivery(metadata, error)` once.

        Raises ClosedError, SerializationError; TypeError or ValueError for a wrong argument.
        """
        me = get_ident()
        if me in INSIDE:
            raise nested("Producer.send")
        INSIDE[me] = "Producer.send"
        try:
            try:
                queues = self._quick_topics.get(topic)
            except TypeError:  # a topic that is not hashable
                queues = None
            if (queues is None or type(value) is not bytes or partition is not None) or (
                (timestamp_ms is not None or headers is not None)
                or (on_delivery is not None and not callable(on_delivery))
            ):
                return self._send_any(
                    topic, value, key, partition, timestamp_ms, headers, on_delivery
                )
            stamp = self._wall_source.time_ns() // 1_000_000
            size, queue = len(value), queues.sticky_queue
            if key is not None:
                queue = queues.by_key.get(key) if type(key) is bytes else None
                size += 0 if queue is None else len(key)
            if queue is not None and size <= SMALL_VALUE_MAX:
                size, batch = size + SMALL_OVERHEAD, queue.open
                if batch is not None:
                    future = self._join(batch, size, stamp, key, value, on_delivery)
                    if future is not None:
                        return future
                sent = self._enqueue(queue, size, stamp, key, value, None, on_delivery, key is None)
                if sent is not None:
                    if self._accumulator.needs_attention:
                        self._passes.attend()
                    return sent
            return self._send_any(topic, value, key, None, stamp, None, on_delivery)
        finally:
            del INSIDE[me]
            if PUT_OFF:
                end_calls()

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
        """Append one record; return its metadata once the record has its topic's durability.

        The arguments are the same as for `send`, and the record comes after all that this thread
        has sent. This is the direct way for an embedded queue: in process it is half the work of
        `send(...).result()`; elsewhere it is the same call. `timeout` is in seconds.

        >>> with embedlog.open() as cluster, embedlog.Producer(cluster) as producer:
        ...     producer.append("events", b"value", key=b"key").offset
        0

        Raises:
            KafkaError: the reason why the record was not written, or not kept.
            TimedOut: the time is over; the record is still on its way.
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
            me = get_ident()
            if me in INSIDE:
                raise nested("Producer.append")
            INSIDE[me] = "Producer.append"
            try:
                timeout_ms = None if timeout is None else milliseconds(timeout, "append")
                found = self._direct.append(topic, value, key, timeout_ms)
            except EmbedlogError as error:
                if is_gone(self, error):
                    raise closed_during("Producer.append") from error
                raise
            finally:
                del INSIDE[me]
                if PUT_OFF:
                    end_calls()
            if found is not None:
                return found
        sent = self.send(
            topic, value, key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )
        return sent.result(timeout)

    def _send_any(self, *given: Any) -> DeliveryFuture:
        """Send a record that needs a check; `given` are the arguments of `send`, in their order."""
        self._check_open()
        transactions = self._parts.transactions
        if transactions is not None:
            transactions.check_send("send")
        self._passes.begin()
        sent = self._records.queue(*given)
        if transactions is not None:
            transactions.saw(sent.batch)
        if self._accumulator.needs_attention:  # it may have begun or filled a batch
            self._passes.attend()
        return sent

    @outer
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

        All go to `partition`; without it, each to the partition of its key, or, without keys, all
        to one partition. They become one record batch, or several if max.request.size or
        buffer.memory requires it. They come after all earlier records.

        The caller may change the sequences once this returns.

        Raises:
            ClosedError, SerializationError, TypeError, ValueError: as `send`. ValueError also if
                the columns have different lengths.
        """
        self._check_open()
        self._passes.begin()
        given = own_columns(values, keys, timestamps, headers, wall_ms=self._parts.clock.wall_ms)
        return self._columns.send(topic, given, partition)

    def transaction(self) -> Transaction:
        """Return a transaction for `with`: committed at its end, aborted when an exception leaves
        it.

            with producer.transaction() as t:
                t.send("out", b"value")
                t.send_offsets(consumer)

        If the commit fails with an error that requires an abort, the transaction is aborted before
        the error is raised.

        Raises:
            IllegalState: there is no transactional.id. Entering the `with` raises the errors of
                `begin_transaction`.
        """
        self._of_transactions("transaction")
        from embedlog.client.producer.transaction import Transaction

        return Transaction(self, self.send, self.send_batch)

    @outer
    def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait, at most `timeout` seconds, until every record has an
        outcome.

        A failed record fails its future and calls its callback, but does not fail this call.

        Raises:
            TimedOut: the time is over; the rest is still on its way.
        """
        self._check_open()
        if not self._passes.flush(milliseconds(timeout, "flush")):
            count = self._accumulator.incomplete.record_count()
            raise TimedOut(
                f"{count} records had no outcome after {timeout} s; they are still being sent"
            )

    @outer_close(in_callbacks=True)
    def close(self, timeout: float | None = None) -> None:
        """Send everything, wait for it at most `timeout` seconds, and give back all resources.

        Records without an outcome by then are given up: their futures fail with ClosedError.
        Closing twice is allowed. Called from a delivery callback, it does not wait. A warning
        reports failed records whose futures nobody looked at; leaving a `with` raises instead. An
        open transaction is aborted, unless it is prepared.
        """
        self._close(milliseconds(timeout, "close"))
        error = self._parts.sender.outcomes.failures.take_unseen()
        if error is not None:
            warn_user(error.__notes__[-1], RuntimeWarning)

    def _close(self, timeout_ms: int | None) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        parts = self._parts
        self._endings.forget()
        parts.destinations.close()
        parts.accumulator.close()
        try:
            if not self._passes.driver.is_running_here:
                if parts.transactions is not None:
                    parts.transactions.close(timeout_ms)
                self._passes.flush(timeout_ms)
        finally:
            gone = ClosedError("the producer was closed before the record had an outcome")
            self._passes.close(lambda: parts.sender.abort_all(gone))
            if parts.transactions is not None:
                parts.transactions.end(gone)
            parts.transport.close()
            if parts.interceptors is not None:
                parts.interceptors.close()
            close_converters(parts.serialize_key, parts.serialize_value)

    @outer
    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the partitions of `topic` from the newest metadata.

        Raises:
            TimedOut: the topic is still unknown after max.block.ms. KafkaError: the cluster
                refused.
        """
        return list(self._parts.destinations.topic(topic).info.partitions)

    def __repr__(self) -> str:
        # Without a lock: a debugger may call it at any moment.
        count = len(self._accumulator.incomplete)
        state = "closed" if self._is_closed else f"{count} batches on their way"
        return f"<Producer {self._parts.settings['client.id']!r}, {state}>"

    def metrics(self) -> dict[str, float]:
        """Return the counters and measurements so far, under Kafka's names."""
        return self._parts.metrics()

    def __del__(self) -> None:
        parts: ProducerParts | None = self.__dict__.get("_parts")
        if parts is None or parts.transport.is_closed or is_finalizing():
            return
        if parts.transactions is None or not parts.transactions.is_open:
            parts.passes.abandon()
            return
        from embedlog.client.producer.abandoned import AbandonedTransaction

        warn_user(
            f"{self!r} of transactional.id={parts.settings['transactional.id']!r} was not closed: "
            f"its transaction is aborted",
            ResourceWarning,
        )
        AbandonedTransaction(parts)

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: object, *_exception: object) -> None:
        """Close. If the `with` body raised nothing, raise the first unseen error of a record."""
        try:
            self._leave()
        finally:
            error = self._parts.sender.outcomes.failures.take_unseen()
        if error is not None and kind is None:
            raise again(error)

    @outer_close(in_callbacks=True)
    def _leave(self) -> None:
        self._close(None)

    def _is_gone(self) -> bool:
        return self._is_closed or self._parts.transport.is_closed

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the producer is closed")


_LAST_S = 10.0
"""How long a producer may send waiting records: unreachable brokers must not hold up an exit."""
_log = Logger("client")


class Endings:
    """Closes a producer that is still open when its cluster or the program ends."""

    def __init__(
        self, producer: Producer, accumulator: RecordAccumulator, scheduler: Scheduler
    ) -> None:
        self._producer = ref(producer)
        self._accumulator = accumulator
        reference = ref(self)

        def end() -> None:
            endings = reference()
            if endings is not None:
                endings.program_ends()

        self.forget: Callable[[], None] = scheduler.at_exit(end, PRODUCERS)
        """Cancels `end` at the exit of the program; `close` calls it."""

    def __del__(self) -> None:
        self.forget()

    def cluster_ends(self) -> None:
        """The cluster of this process is being closed: send the waiting records."""
        self._finish()

    def program_ends(self) -> None:
        """The interpreter ends: warn of records without an outcome, and send them."""
        count = self._accumulator.incomplete.record_count()
        if count:
            warn_user(
                f"a producer was not closed: {count} records had no outcome when the program "
                f"ended; they get {_LAST_S:g} s",
                ResourceWarning,
            )
        self._finish()

    def _finish(self) -> None:
        producer = self._producer()
        if producer is None:
            return
        error = attempt(producer.close, _LAST_S)
        if error is not None:
            # A user's callback raised: the cluster or the interpreter must end all the same.
            _log.error("closing a forgotten producer failed: %s", error, exc_info=error)


def attended(
    target: Target, config: Mapping[str, Any] | None, settings: Mapping[str, Any]
) -> tuple[Producer, ProducerParts]:
    """Make a producer for an event loop that sends its open batches; also return its parts."""
    made = Producer.__new__(Producer)
    return made, made._open(target, config, settings, is_attended=True)


def _told_of_transactions(producer: ref[Producer]) -> Callable[[bool], None]:
    """Return a function that notes whether a transaction is open: only then records may skip the
    checks. It does not keep the producer alive, because the producer's thread holds it.
    """

    def tell(is_open: bool) -> None:
        told = producer()
        if told is not None:
            told._quick_topics = told._parts.destinations.known if is_open else {}

    return tell


def _is_choosy(parts: ProducerParts) -> bool:
    """Return whether even a small record needs a check."""
    return (
        parts.passes.is_eager
        or parts.serialize_value is not None
        or parts.serialize_key is not None
        or parts.settings["partitioner.class"] is not None
        or parts.interceptors is not None
        or parts.limits.size_max < _LEAST_USUAL_SIZE
    )


def _direct_append(parts: ProducerParts) -> DirectAppend | None:
    """Return the fast path of `append`; None if all its records must go through `send`."""
    transport, settings = parts.transport, parts.settings
    chosen = SenderSettings(settings, in_process=transport.in_process)
    if (
        not chosen.acks
        or chosen.codec
        or settings["enable.idempotence"]
        or settings["partitioner.ignore.keys"]
        or not isinstance(transport, InProcessTransport)
        or not transport.appends
    ):
        return None
    return DirectAppend(
        transport,
        parts.accumulator,
        parts.destinations.known,
        parts.sender.outcomes,
        chosen,
        parts.limits.surely_fits,
    )
